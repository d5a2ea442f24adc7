"""The DIF objects of one consumer as Python functions; equal objects share one, and equal strings."""

from __future__ import annotations

from functools import partial

from trapline.framework.base.engines import ProgramEngine
from trapline.framework.base.memory import SLACK, Memory, Region
from trapline.framework.base.program import Difo
from trapline.framework.dif.interpreter import DifMachine, Loaded
from trapline.framework.dif.translate import Translated, translate


class DifFunctions:
    """See the module; `engine` decides how an object runs."""

    def __init__(self, machine: DifMachine, memory: Memory, engine: ProgramEngine) -> None:
        self._machine = machine
        self._memory = memory
        self._engine = engine
        self._strings: dict[bytes, Region] = {}
        self._translated: dict[Difo, Translated] = {}

    def translate(self, difo: Difo) -> Translated:
        """Return a DIF object as a function; equal objects share one."""
        found = self._translated.get(difo)
        if found is None:
            loaded = Loaded(difo, self.string_table(difo))
            found = self._translated[difo] = self._as_function(loaded)
        return found

    def _as_function(self, loaded: Loaded) -> Translated:
        if self._engine is ProgramEngine.REFERENCE:
            return partial(self._machine.run, loaded)
        return translate(self._machine, loaded)

    def string_table(self, difo: Difo) -> int:
        """Return the address of a DIF object's strings; equal tables share one."""
        strings = self._strings.get(difo.strings)
        if strings is None:
            data = bytearray(difo.strings + bytes(SLACK))
            strings = self._strings[difo.strings] = self._memory.allocate(data)
        return strings.base

    def release(self) -> None:
        """Give the memory of the strings back."""
        for region in self._strings.values():
            self._memory.release(region)
        self._strings.clear()
