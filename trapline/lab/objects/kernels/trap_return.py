"""The handler of a trap that is assembly, and that returns from the trap itself (x86).

The CPU and the kernel's entry have saved the interrupted registers on the interrupted stack, below
its sp, when the handler begins.  It moves and changes what iret takes off the stack, so a return
from the trap is read from there: at the handler's iret, which is not executed.  Source: FreeBSD
sys/amd64/amd64/exception.S (bpt), sys/i386/i386/exception.s (ill),
sys/cddl/dev/dtrace/<machine>/dtrace_asm.S; illumos usr/src/uts/intel/ml/exception.S.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Final, NamedTuple

import capstone

from emu.guest.function import LANDING
from emu.isa import disassembly
from providers.fbt.port import AssemblyHandler
from trapline.lab.objects.decoder.displaced import Frame
from trapline.lab.objects.glue import GluePanicError
from trapline.lab.objects.kernels.fbt import HANDLER, frame_key
from trapline.lab.objects.structures import View
from trapline.lab.objects.user_code import ObjectError, UserCode

# The handler's exit for what it does not emulate.
_OTHERS: Final = "dtrace_invop_calltrap_addr"
_DECIDES: Final = "dtrace_invop"
# The flags that the kernel's entry leaves: none is set but the one that always is.
_FLAGS: Final = 2


class TrapNotTakenError(GluePanicError):
    """The handler has left a trap to the rest of the kernel."""


class TrapCode(NamedTuple):
    """How the traps of a system are written."""

    name: str
    """The function that is entered."""
    body: str
    """The function that has its irets."""
    frame: str
    """The structure of saved registers."""
    key: Callable[[View, str], Any]
    """Finds the member of that structure for a register."""
    selectors: Mapping[str, int]
    """The selectors of the kernel's code and data."""


# GSEL(GCODE_SEL, SEL_KPL), GSEL(GDATA_SEL, SEL_KPL).
FREEBSD: Final = TrapCode(HANDLER, HANDLER, "trapframe", frame_key, {"cs": 0x20, "ss": 0x28})


class ReturningHandler:
    """A handler of x86 that is assembly, as FreeBSD's dtrace_invop_start."""

    on_stack: ClassVar[bool] = True

    def __init__(self, code: UserCode, trap: AssemblyHandler, system: TrapCode) -> None:
        """Prepare the handler's ends.  Raises `ObjectError`: it has no iret."""
        self._code, self._trap, self._isa, self._system = code, trap, code.isa, system
        self.name, self.frame = system.name, system.frame
        code.glue.assembly = trap
        if code.image.defines(_OTHERS):
            code.store(code.address(_OTHERS), LANDING.to_bytes(self._isa.word, "little"))
        self._returns = frozenset(self._find_returns())
        if not self._returns:
            raise ObjectError(f"{code.name}: {system.body} has no iret: it does not return from the trap")
        for address in self._returns:
            code.guest.engine.write_code(address, self._isa.traps.wait)
        self._places = self._saved_places()

    def _find_returns(self) -> Iterator[int]:
        """Yield the addresses of the handler's instructions that return from the trap."""
        symbol = self._code.image.symbol(self._system.body)
        body = self._code.load(symbol.value, symbol.size)
        decoder = disassembly.decoder(self._isa.capstone, detail=True)
        for offset, size in disassembly.instructions(self._isa.instruction_length, body):
            for found in decoder.disasm(body[offset : offset + size], symbol.value + offset):
                if capstone.CS_GRP_IRET in found.groups:
                    yield found.address

    def _saved_places(self) -> dict[str, int]:
        """Return the offsets of registers in what is saved on the stack."""
        word, trap = self._isa.word, self._trap
        if trap.pushed is not None:
            return {name: index * word for index, name in enumerate((*trap.pushed, *trap.returned))}
        view = self._code.view(self.frame)
        general = (one.name for one in self._isa.registers.registers if one.slot is not None)
        names = (*general, *trap.returned)
        keys = {name: self._system.key(view, name) for name in names}
        return {name: view.field(key)[0] for name, key in keys.items() if key is not None}

    @property
    def answers(self) -> Mapping[int, bytes]:
        """The instructions that the handler emulates, by the answers of dtrace_invop.

        A dtrace_invop of the objects themselves asks fbt_invop, which prepares no call.
        """
        answers = dict(self._trap.answers)
        if self._code.defines(_DECIDES):
            answers.pop(self._trap.pushing, None)
        return answers

    def key(self, frame: View, register: str) -> Any:
        """Return the member that holds a register, None if the frame has none for it."""
        return self._system.key(frame, register)

    def execute(self, frame: Frame, address: int, _instruction: bytes) -> str:
        """Execute the instruction of the record for an address, as at its breakpoint."""
        isa, trap, engine = self._isa, self._trap, self._code.guest.engine
        names = isa.registers
        before = {**self._system.selectors, **frame.state().registers, names.pc: address + isa.traps.pc_after}
        top = before[names.sp] - before[names.sp] % trap.alignment
        if names.sp not in trap.returned:  # what pushal saves
            before[names.sp] = top - isa.word * len(trap.returned)
        saved = bytearray(self._places[trap.returned[-1]] + isa.word)
        for name, offset in self._places.items():
            saved[offset : offset + isa.word] = before[name].to_bytes(isa.word, "little")
        engine.memory.write(top - len(saved), bytes(saved))
        entered = {one.name: before[one.name] for one in names.registers if one.name in frame.names}
        try:
            end = self._code.enter(self.name, {**entered, names.sp: top - len(saved), isa.traps.flags: _FLAGS})
        except TrapNotTakenError as error:
            return f"their handler does not emulate it: {self.name} {error}"
        if end not in self._returns:
            how = f"jumps to *{_OTHERS}" if end == LANDING else "does not return from the trap"
            return f"their handler does not emulate it: {self.name} {how}"
        return self._take_back(frame, end)

    def _take_back(self, frame: Frame, end: int) -> str:
        """Fill the frame with the registers after the iret at `end`; return what is wrong."""
        isa, engine, returned = self._isa, self._code.guest.engine, self._trap.returned
        sp = engine.read_register(isa.registers.sp)
        words = engine.read(sp, isa.word * len(returned))
        popped = {
            name: int.from_bytes(words[index * isa.word :][: isa.word], "little") for index, name in enumerate(returned)
        }
        after = {isa.registers.sp: sp + len(words), **popped}
        frame.returned_at = self._code.where(end)
        for name in frame.names:
            frame[name] = after[name] if name in after else engine.read_register(name)
        wrong = [
            f"{name} is {popped[name]:#x} at iret, {value:#x} before"
            for name, value in self._system.selectors.items()
            if popped.get(name, value) != value
        ]
        return "; ".join(wrong)
