"""The state that all consumers share while probes fire: the guest, its CPU, memory, threads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from emu.displaced.cpu_core import CpuCore
from emu.guest.base import Abilities, Guest
from emu.support.words import WORD_MASK
from trapline.framework.base.memory import Memory

SIGN: Final = 0x8000_0000_0000_0000


def signed(value: int) -> int:
    """Return a 64-bit word as int64_t."""
    return value - (WORD_MASK + 1) if value & SIGN else value


@dataclass(slots=True)
class World:
    """What all consumers of one `DTrace` share: the guest, its CPU, memory and threads."""

    guest: Guest
    core: CpuCore
    cpus: int
    memory: Memory
    abilities: Abilities
