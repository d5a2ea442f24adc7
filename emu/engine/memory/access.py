"""The permitted accesses to a page."""

from __future__ import annotations

from enum import IntFlag


class Access(IntFlag):
    """Unicorn's UC_PROT_*."""

    READ = 1
    WRITE = 2
    EXECUTE = 4
