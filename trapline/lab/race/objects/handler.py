"""The user's compiled handler of breakpoints, run for a CPU of the model.

It runs on a CPU of its own over the memory of the patcher, whose data are put back to what they
were at that moment of the patcher's run; what the handler itself writes to them is forgotten.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from emu.engine.memory.pages import PAGE
from emu.guest.function import FunctionFaultError
from emu.support.words import BadAddressError
from trapline.lab.objects.glue import GluePanicError
from trapline.lab.objects.user_code import UserCode
from trapline.lab.race.objects.recorder import Snapshots
from trapline.lab.race.own_handler import Answer
from trapline.lab.race.patch import Patch, RaceError
from trapline.lab.race.processor import DATA


class ObjectHandler:
    """A function of the objects that handles breakpoints."""

    def __init__(self, code: UserCode, patch: Patch, name: str) -> None:
        self._code, self._patch, self.name = code, patch, name
        self._glue: Any = code.glue
        page = DATA[patch.isa.word] // PAGE * PAGE
        code.place(page, bytes(PAGE))
        self._page = page
        self._glue.prepare_frame()
        self.snapshots = Snapshots(code)
        self._glue.recorder.snapshots = self.snapshots

    def begin(self) -> None:
        """Let the patcher's data be the first ones again."""
        self._glue.recorder.begin()

    def answer(self, data: int, code: bytes, registers: Mapping[str, int], memory: bytes) -> Answer:
        """Run the handler (`trapline.lab.race.own_handler.Handler`).  Raises `RaceError`."""
        user, engine = self._code, self._code.guest.engine
        before, bytes_before = self.snapshots.present(), engine.read(self._patch.site, len(code))
        self.snapshots.put(data)
        engine.memory.write(self._patch.site, code)
        engine.memory.write(self._page, memory)
        try:
            claimed, after = self._glue.handle(self.name, registers)
            if engine.read(self._patch.site, len(code)) != code:
                raise RaceError(f"{user.name}: {self.name} writes code, which a handler here may not")
            return Answer(claimed, after, engine.read(self._page, PAGE))
        except FunctionFaultError as error:
            return Answer(claimed=False, registers={}, memory=b"", fault=f"{error}, at {user.where(error.pc)}")
        except (GluePanicError, BadAddressError) as error:
            return Answer(claimed=False, registers={}, memory=b"", fault=str(error))
        finally:
            self.snapshots.put(before)
            engine.memory.write(self._patch.site, bytes_before)
