"""The errors of Linux kernels."""

from __future__ import annotations

from emu.guest.base import GuestError


class KernelFileError(Exception):
    """A kernel that cannot be used or found; the message is one line that names the remedy."""


class LinuxKernelError(GuestError):
    """A kernel that panicked, crashed or did not boot.

    `log` is the end of its console's output.
    """

    def __init__(self, reason: str, log: str = "") -> None:
        super().__init__(reason)
        self.log = log

    def report(self) -> str:
        """Return the reason after the end of the console's log."""
        return f"{self.log.rstrip()}\n{self}" if self.log.strip() else str(self)
