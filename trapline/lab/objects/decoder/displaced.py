"""Displaced instructions: the user's handler on a trap frame is compared with a CPU.

In the first states all registers are 1, 0 and -1.  In the others their values are random, from a
seed, and many point into the scratch memory.  Each distinct instruction is tried once, in as many
states as are asked for.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, Protocol

from emu.guest.function import FunctionFaultError
from providers.uprobes.steps import TRAP_FLAG
from trapline.lab.objects.plain_cpu import SCRATCH, SCRATCH_SIZE, PlainCpu, State
from trapline.lab.objects.structures import LayoutError, View
from trapline.lab.objects.user_code import UserCode

_SEED: Final = 20
_HALF_WORD: Final = 2
# The value of all registers in the first states: counts that are at their ends.
_FIRST: Final = (1, 0, -1)
# The number of registers of which one has any value; the others point into the scratch memory.
_ANY: Final = 3


class Frame:
    """The saved registers of an interrupted program, in a structure of the user's code."""

    def __init__(self, code: UserCode, view: View, keys: dict[str, Any], cpu: PlainCpu) -> None:
        self._code, self._view, self._keys, self._cpu = code, view, keys, cpu
        self._places = {name: view.field(key)[:2] for name, key in keys.items()}
        self.address = view.address
        """The address of the structure."""
        self.fault = ""
        """How a copy of the instruction faulted."""
        self.copied = False
        """Whether a copy of the instruction has run."""
        self.returned_at = ""
        """The place where a handler that returns from the trap has done so."""

    @property
    def names(self) -> Iterable[str]:
        """The registers that the frame has."""
        return self._keys

    def __getitem__(self, register: str) -> int:
        return self._view[self._keys[register]] & self._code.isa.address_mask

    def __setitem__(self, register: str, value: int) -> None:
        self._view[self._keys[register]] = value

    def load(self, state: State) -> None:
        """Fill the frame and the scratch memory."""
        self.fault = state.fault
        self._code.guest.engine.memory.write(SCRATCH, state.memory)
        data = bytearray(self._code.load(self.address, self._view.size))
        for name, (offset, size) in self._places.items():
            data[offset : offset + size] = (state.registers[name] & (1 << 8 * size) - 1).to_bytes(size, "little")
        self._code.store(self.address, bytes(data))

    def state(self) -> State:
        """Return what the frame and the scratch memory hold."""
        memory = self._code.guest.engine.read(SCRATCH, SCRATCH_SIZE)
        isa, data = self._code.isa, self._code.load(self.address, self._view.size)
        registers = {
            name: int.from_bytes(data[offset : offset + size], "little") & isa.address_mask
            for name, (offset, size) in self._places.items()
        }
        if isa.instruction_alignment == _HALF_WORD:  # the register by which a trap returns has no bit 0 (RISC-V sepc)
            registers[isa.registers.pc] &= ~1
        return State(registers, memory, self.fault)

    def writer(self, register: str) -> str:
        """Return the place in the user's code that has last written a register."""
        return self.returned_at or self._code.writer(self.address + self._places[register][0])

    @property
    def pc(self) -> int:
        """The saved pc."""
        return self[self._code.isa.registers.pc]

    @pc.setter
    def pc(self, value: int) -> None:
        self[self._code.isa.registers.pc] = value

    def run_copy(self, code: bytes, *, steps: int = 0, end: str = "") -> bool:
        """Execute code in the slot, from the frame's pc on, with its registers.

        It ends outside the slot, at a breakpoint, after `steps` instructions, if they are not 0, or
        by the fault `end`.  Returns whether it did not fault.
        """
        after = self._cpu.run_copy(self.state(), code, steps, end)
        self.load(after)
        self.copied = True
        return not after.fault


class Handler(Protocol):
    """The user's code that executes displaced instructions on a frame of registers."""

    frame: str
    """The name of the structure of a trap frame."""

    def key(self, frame: View, register: str) -> Any:
        """Return the member that holds a register, None if the frame has none for it."""
        ...

    def execute(self, frame: Frame, address: int, instruction: bytes) -> str:
        """Execute an instruction; return the reason if it cannot be executed, "" if it can.

        Raises `FunctionFaultError` and `GluePanicError`.
        """
        ...


class DisplacedCheck:
    """A comparison of the user's handler with a CPU, on displaced instructions.

    `texts` are the places where instructions are, with their sizes in bytes.  `on_stack`: the trap
    saves registers on the interrupted stack, so memory below sp is lost, and the frame pointer
    points above it.
    """

    def __init__(
        self, code: UserCode, handler: Handler, texts: Iterable[tuple[int, int]], states: int, *, on_stack: bool = False
    ) -> None:
        self._code, self._handler, self._states, self._on_stack = code, handler, states, on_stack
        self._isa = isa = code.isa
        self._cpu = PlainCpu(isa, texts)
        code.place(SCRATCH, bytes(SCRATCH_SIZE))
        self._random = random.Random(_SEED)  # noqa: S311  states, not secrets
        view = code.view(handler.frame)
        keys: dict[str, Any] = {}
        for register in isa.registers.registers:
            kept = register.slot is not None or register.name == isa.traps.flags
            key = handler.key(view, register.name) if kept and register.name != isa.registers.zero else None
            if key is not None:
                keys[register.name] = key
        for needed in filter(None, (isa.registers.pc, isa.registers.sp, isa.registers.link)):
            if needed not in keys:
                raise LayoutError(f"{code.name}: struct {handler.frame} has no member for {needed} of {isa.name}")
        self._names = tuple(keys)
        self._frame = Frame(code, view, keys, self._cpu)
        if code.shadow is not None:
            code.shadow.watch(view.address, view.size)
        self._tried: set[bytes] = set()
        self._known: dict[bytes, list[tuple[str, str]]] = {}
        self.trapping = 0
        """The number of states that are not compared, because the instruction sets the trap flag."""

    def differences(self, address: int, code: bytes, *, again: bool = False) -> Iterator[tuple[str, str]]:
        """Yield a sentence about the first state in which they differ, and the line at fault.

        Nothing is yielded if they agree, nor if the instruction was tried before, except `again`.

        `code` are the bytes of the instruction and some after it.  Raises `FunctionFaultError` and
        `GluePanicError`.
        """
        instruction = code[: self._isa.instruction_length(code) or self._isa.instruction_alignment]
        if instruction in self._known:
            yield from self._known[instruction] if again else ()
            return
        self._tried.add(instruction)
        found = self._known[instruction] = list(self._different(address, instruction))
        yield from found

    def _different(self, address: int, instruction: bytes) -> Iterator[tuple[str, str]]:
        """Yield the first difference; the states depend only on the instruction."""
        self._random.seed(_SEED.to_bytes(1, "little") + instruction)
        self._cpu.write(address, instruction)
        for number in range(self._states):
            before = self._state(address, number)
            wanted = self._cpu.step(address, before)
            if wanted.is_refused:  # the emulated CPU may lack the instruction
                continue
            if wanted.registers.get(self._isa.traps.flags, 0) & TRAP_FLAG:  # only x86 has flags with such a bit
                self.trapping += 1
                continue
            try:
                refusal = self._handle(address, instruction, before)
            except FunctionFaultError:
                if wanted.fault:  # both access memory that is not there
                    continue
                raise
            if wanted.fault and not self._frame.copied:
                continue  # what a simulation does then is decided by the rest of its kernel
            found = self._frame.state()
            lost = wanted.registers[self._isa.registers.sp] - SCRATCH if self._on_stack else 0
            text = refusal or "; ".join(_unlike(found, wanted, lost))
            if text:
                wrong = next((name for name, value in found.registers.items() if value != wanted.registers[name]), None)
                yield refusal or f"state {number}: {text}", "" if wrong is None else self._frame.writer(wrong)
                return

    @property
    def tried(self) -> int:
        """The number of distinct instructions that were tried."""
        return len(self._tried)

    def _state(self, address: int, number: int) -> State:
        values = {name: _FIRST[number] if number < len(_FIRST) else self._value() for name in self._names}
        values[self._isa.registers.sp] = SCRATCH + SCRATCH_SIZE // 2
        values[self._isa.registers.pc] = address
        if self._on_stack:
            values[self._isa.registers.fp] = (
                SCRATCH + SCRATCH_SIZE // 2 + self._random.randrange(SCRATCH_SIZE // 16) * 8
            )
        if self._isa.traps.flags in values:
            values[self._isa.traps.flags] = self._random.getrandbits(8 * self._isa.word) & self._isa.traps.settable
        values = {name: value & self._isa.address_mask for name, value in values.items()}
        if self._isa.registers.link is not None:  # a return goes to an address of code
            values[self._isa.registers.link] &= ~3
        return self._cpu.settled(State(values, self._random.randbytes(SCRATCH_SIZE)))

    def _value(self) -> int:
        if self._random.randrange(_ANY):
            return SCRATCH + self._random.randrange(SCRATCH_SIZE // 8) * 8
        return self._random.getrandbits(8 * self._isa.word)

    def _handle(self, address: int, instruction: bytes, before: State) -> str:
        """Call the handler on the frame; return the reason if it refuses the instruction."""
        self._frame.load(before)
        self._frame.copied, self._frame.returned_at = False, ""
        if self._code.shadow is not None:
            self._code.shadow.forget_writers()
        with self._code.showing(SCRATCH, SCRATCH_SIZE, writable=True):
            return self._handler.execute(self._frame, address, instruction)


def _unlike(found: State, wanted: State, lost: int) -> Sequence[str]:
    """Return the differences of two states; the first `lost` bytes of memory may differ."""
    if found.fault != wanted.fault:
        return [f"{found.fault or 'no fault'}, on the CPU {wanted.fault or 'no fault'}"]
    if found.fault:
        return []
    unlike = [
        f"{name} is {value:#x}, on the CPU {wanted.registers[name]:#x}"
        for name, value in found.registers.items()
        if value != wanted.registers[name]
    ]
    if found.memory[lost:] != wanted.memory[lost:]:
        at = next(index for index in range(lost, SCRATCH_SIZE) if found.memory[index] != wanted.memory[index])
        offset = at - SCRATCH_SIZE // 2
        unlike.append(f"memory differs from sp{offset:+#x} on")
    return unlike
