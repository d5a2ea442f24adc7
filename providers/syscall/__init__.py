"""The syscall provider: a probe where each system call begins, and one where it returns."""

from __future__ import annotations

from providers.syscall.linux import LinuxCalls
from providers.syscall.syscall import Syscall

__all__ = ["LinuxCalls", "Syscall"]
