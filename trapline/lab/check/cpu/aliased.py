"""An address space in which every address is valid: eight pages, repeated throughout."""

from __future__ import annotations

import ctypes
import random
from functools import cache
from typing import Final

from emu.engine.memory.access import Access
from emu.engine.memory.pages import PAGE
from emu.guest.linux.mm.address_space import Area, Space
from emu.guest.linux.mm.page_frames import Frames
from trapline.lab.check.cpu.states import KINDS

_BOTH: Final = Access.READ | Access.WRITE
# The rights of a page, by its number modulo `KINDS`.
RIGHTS: Final = (_BOTH, _BOTH, _BOTH, _BOTH, _BOTH, Access.READ, _BOTH, Access(0))


@cache
def pristine_memory() -> bytes:
    """Return the first content of the pages of each kind: random words, most not addresses."""
    return random.Random(1).randbytes(KINDS * PAGE)  # noqa: S311


class AliasedSpace(Space):
    """An address space in which an unmapped address refers to one of eight pages, by its kind."""

    def __init__(self, frames: Frames, lowest: int, highest: int) -> None:
        super().__init__(frames, lowest, highest)
        taken = [frames.take() for _ in range(KINDS)]
        self.memory_at = taken[0]
        """Physical address of the eight pages."""
        self.host_wrote = ctypes.c_uint64()
        """Is set when the host itself may write to them."""
        assert taken == list(range(taken[0], taken[0] + KINDS * PAGE, PAGE)), "the first frames follow each other"

    def area_at(self, address: int) -> Area | None:
        """Return the area that contains an address; a read-only page is an area of its own."""
        area = super().area_at(address)
        page = address // PAGE
        if area is None and RIGHTS[page % KINDS] is Access.READ:
            return Area(page * PAGE, (page + 1) * PAGE, Access.READ, shared=True)
        return area

    def mapped(self, address: int) -> Area | None:
        """Return the area of the program or of a provider that contains an address."""
        return super().area_at(address)

    def look_up(self, address: int, access: Access) -> tuple[int, Access] | None:
        """Serve a miss of the TLB."""
        if self.mapped(address) is not None:
            return super().look_up(address, access)
        kind = address // PAGE % KINDS
        return (self.memory_at + address % (KINDS * PAGE), RIGHTS[kind]) if access in RIGHTS[kind] else None

    def reach(self, address: int, access: Access) -> int | None:
        """Return the physical address for the host's own access."""
        if self.mapped(address) is not None:
            return super().reach(address, access)
        if access not in RIGHTS[address // PAGE % KINDS]:
            return None
        if Access.WRITE in access:
            self.host_wrote.value = 1
        return self.memory_at + address % (KINDS * PAGE)
