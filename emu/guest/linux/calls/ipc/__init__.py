"""System calls on IPC objects, by the names of Linux' own sources in ipc/."""
