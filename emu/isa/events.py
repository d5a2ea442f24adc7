"""What instructions do that a CPU counts: loads, stores, branches."""

from __future__ import annotations

from enum import IntFlag


class Events(IntFlag):
    """The events of one instruction."""

    LOAD = 1
    STORE = 2
    BRANCH = 4
    """It transfers control, if its condition holds; system calls and traps are no branches."""


NONE = Events(0)
