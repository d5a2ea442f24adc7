"""System V objects and POSIX message queues of the Linux guest."""
