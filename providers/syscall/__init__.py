"""The syscall provider: a probe at the entry of each system call, and one at its return.

`providers.syscall.linux` has the calls of Linux programs; it is imported only where they run,
because it imports the whole Linux guest.
"""

from __future__ import annotations

from providers.syscall.syscall import Syscall

__all__ = ["Syscall"]
