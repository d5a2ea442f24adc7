"""One site of a program, in many states, plain and probed."""
