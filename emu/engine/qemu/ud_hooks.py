"""Instructions that the CPU refuses but Unicorn would execute: a hook before each raises #UD.

The only cause of such an instruction is a breakpoint that is a prefix (`emu.isa.x86.instruction`).
So only code that the emulator itself writes is checked.

Two other ways were weighed.  Exits (`emu.engine.qemu.exits`) would be less code, but
a firing would then end the run and begin another, which takes 10 us; a hook takes 0.3 us.  A
decision at translation, as for those, would look at every instruction that is translated, in
machine code with a table of all lockable instructions, to find bytes whose place is known already.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from emu.engine.memory.memory import Memory
from emu.support.words import BadAddressError

_LONGEST: Final = 15
# Bytes of the prefix that makes the CPU refuse an instruction.
_PREFIX: Final = 1


class Refusals:
    """The hooks of one engine.

    `hook(address, code)` adds one, for as long as that prefix is there; `unhook(address)` removes
    it.
    """

    def __init__(
        self,
        refused: Callable[[bytes], bool],
        hook: Callable[[int, bytes], None],
        unhook: Callable[[int], None],
    ) -> None:
        self._refused = refused
        self._hook = hook
        self._unhook = unhook
        self._hooks: set[int] = set()

    def written(self, memory: Memory, address: int, size: int) -> None:
        """Check code that was written, before it is translated.

        An instruction that begins before the written bytes may also be affected.
        """
        for place in range(address - _LONGEST + 1, address + size):
            if place >= address or place in self._hooks:
                self._look(memory, place)

    def _look(self, memory: Memory, place: int) -> None:
        code = _code(memory, place)
        if self._refused(code):
            if place not in self._hooks:
                self._hooks.add(place)
                self._hook(place, code[:_PREFIX])
        elif place in self._hooks:
            self._hooks.remove(place)
            self._unhook(place)


def _code(memory: Memory, place: int) -> bytes:
    """Return an instruction's bytes, fewer where memory ends."""
    try:
        return memory.read(place, _LONGEST)
    except BadAddressError as error:
        return memory.read(place, error.address - place) if error.address > place else b""
