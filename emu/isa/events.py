"""The events of instructions that a CPU counts: loads, stores, branches."""

from __future__ import annotations

from enum import IntFlag


class Events(IntFlag):
    """The events of one instruction."""

    LOAD = 1
    STORE = 2
    BRANCH = 4
    """A transfer of control, if its condition holds; a system call or a trap is not a branch."""
