"""The syscall provider: a probe where each system call begins, and one where it returns.

`providers.syscall.linux` has the calls of Linux programs; it is imported where they run, since it
brings the whole Linux guest with it.
"""

from __future__ import annotations

from providers.syscall.syscall import Syscall

__all__ = ["Syscall"]
