"""The course: lab sheets with a task, a starter and a checker, and a student's work on them."""
