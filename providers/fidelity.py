"""Fidelity: whether the bugs of the real systems are reproduced."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TypeVar

_T = TypeVar("_T")


class Fidelity(Enum):
    """The system whose behaviour is reproduced; docs/fidelity.md lists the differences."""

    EXACT = "exact"
    """The CPU's behaviour: a probed program computes the same as without probes."""
    FREEBSD = "freebsd"
    """FreeBSD's behaviour, with its quirks: FBT, syscall, the pid provider and USDT."""
    LINUX = "linux"
    """Linux' behaviour, with its quirks: uprobes."""


def by_fidelity(exact: _T, *, freebsd: _T | None = None, linux: _T | None = None) -> Mapping[Fidelity, _T]:
    """Return the value for each fidelity: `exact`, unless a system has its own."""
    return {
        Fidelity.EXACT: exact,
        Fidelity.FREEBSD: exact if freebsd is None else freebsd,
        Fidelity.LINUX: exact if linux is None else linux,
    }
