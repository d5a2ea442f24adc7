"""Displaced instructions: the user's handler on a trap frame is compared with a CPU.

Both have the same memory at the same place: a scratch area, in the middle of which sp points.  The
values of registers are random, from a seed; each distinct instruction is tried once, in as many
states as are asked for.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple, Protocol

from emu.engine.access import Access
from emu.engine.errors import GuestCrashError, PageFaultError
from emu.engine.pages import PAGE
from emu.guest.function import FunctionGuest
from trapline.lab.objects.structures import View
from trapline.lab.objects.user_code import UserCode

_SCRATCH: Final = 0x6800_0000
_SIZE: Final = 0x4000
_SEED: Final = 20
_ROOM: Final = 16 << 20


class State(NamedTuple):
    """Registers and memory after an instruction."""

    registers: Mapping[str, int]
    memory: bytes


class Handler(Protocol):
    """The user's code that executes displaced instructions on a frame of registers."""

    frame: str
    """The name of the structure of a trap frame."""

    def key(self, frame: View, register: str) -> Any:
        """Return the member that holds a register, None if the frame has none for it."""
        ...

    def execute(self, frame: int, address: int, instruction: bytes) -> str:
        """Execute an instruction; return the reason if it cannot be executed, "" if it can.

        Raises `FunctionFaultError` and `GluePanicError`.
        """
        ...


class DisplacedCheck:
    """A comparison of the user's handler with a CPU, on displaced instructions.

    `texts` are the places where instructions are, with their sizes in bytes.
    """

    def __init__(self, code: UserCode, handler: Handler, texts: Iterable[tuple[int, int]], states: int) -> None:
        self._code, self._handler, self._states = code, handler, states
        self._isa = isa = code.isa
        texts = tuple(texts)
        self._plain = FunctionGuest(isa, bytes(16), ram=_ROOM + sum((size // PAGE + 2) * PAGE for _, size in texts))
        for address, size in texts:
            self._plain.place(address, bytes(size), Access.READ | Access.WRITE | Access.EXECUTE)
        self._plain.place(_SCRATCH, bytes(_SIZE), Access.READ | Access.WRITE)
        code.place(_SCRATCH, bytes(_SIZE))
        self._random = random.Random(_SEED)  # noqa: S311  states, not secrets
        self._frame = code.view(handler.frame)
        self._keys: dict[str, Any] = {}
        for register in isa.registers.registers:
            kept = register.slot is not None or register.name == isa.traps.flags
            key = handler.key(self._frame, register.name) if kept and register.name != isa.registers.zero else None
            if key is not None:
                self._keys[register.name] = key
        self._known: set[bytes] = set()

    def differences(self, address: int, code: bytes) -> Iterator[str]:
        """Yield a sentence about the first state in which they differ; nothing if they agree.

        `code` are the bytes of the instruction and some after it.  Raises `FunctionFaultError` and
        `GluePanicError`.
        """
        instruction = code[: self._isa.instruction_length(code) or self._isa.instruction_alignment]
        if instruction in self._known:
            return
        self._known.add(instruction)
        self._plain.engine.write_code(address, instruction)
        for number in range(self._states):
            before = self._state(address)
            wanted = self._execute(address, before)
            found, refusal = self._handle(address, instruction, before)
            text = refusal or "; ".join(_unlike(found, wanted))
            if text:
                yield refusal or f"state {number}: {text}"
                return

    @property
    def tried(self) -> int:
        """The number of distinct instructions that were tried."""
        return len(self._known)

    def _state(self, address: int) -> State:
        values = {name: self._random.getrandbits(8 * self._isa.word) for name in self._keys}
        values[self._isa.registers.sp] = _SCRATCH + _SIZE // 2
        values[self._isa.registers.pc] = address
        if self._isa.traps.flags in values:
            values[self._isa.traps.flags] &= self._isa.traps.settable
        if self._isa.registers.link is not None:  # a return goes to an address of code
            values[self._isa.registers.link] &= ~3
        return State(values, self._random.randbytes(_SIZE))

    def _execute(self, address: int, before: State) -> State:
        """Execute the instruction on the plain CPU."""
        engine = self._plain.engine
        engine.memory.write(_SCRATCH, before.memory)
        for name, value in before.registers.items():
            engine.write_register(name, value)
        engine.pc = address
        # Only the fetch from the target of a return can fail: the instruction itself was executed.
        with suppress(GuestCrashError, PageFaultError):
            engine.step()
        return State({name: engine.read_register(name) for name in before.registers}, engine.read(_SCRATCH, _SIZE))

    def _handle(self, address: int, instruction: bytes, before: State) -> tuple[State, str]:
        """Return the state after the handler, and the reason if it refuses the instruction."""
        code, frame = self._code, self._frame
        code.guest.engine.memory.write(_SCRATCH, before.memory)
        for name, value in before.registers.items():
            frame[self._keys[name]] = value
        with code.showing(_SCRATCH, _SIZE, writable=True):
            refusal = self._handler.execute(frame.address, address, instruction)
        mask = self._isa.address_mask
        registers = {name: frame[self._keys[name]] & mask for name in before.registers}
        return State(registers, code.guest.engine.read(_SCRATCH, _SIZE)), refusal


def _unlike(found: State, wanted: State) -> Sequence[str]:
    """Return the differences of two states."""
    unlike = [
        f"{name} is {value:#x}, on the CPU {wanted.registers[name]:#x}"
        for name, value in found.registers.items()
        if value != wanted.registers[name]
    ]
    if found.memory != wanted.memory:
        at = next(index for index in range(_SIZE) if found.memory[index] != wanted.memory[index])
        offset = at - _SIZE // 2
        unlike.append(f"memory differs from sp{offset:+#x} on")
    return unlike
