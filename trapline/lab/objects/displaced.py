"""Displaced instructions: the user's handler on a trap frame against the instruction on a CPU.

Both have the same memory at the same place: a scratch area, in the middle of which sp points.  The
values of registers are random, from a seed; each distinct instruction is tried once, in as many
states as are asked for.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from emu.elf import Image, SegmentFlag
from emu.engine.access import Access
from emu.engine.errors import GuestCrashError, PageFaultError
from emu.engine.pages import PAGE
from emu.guest.function import FunctionGuest
from trapline.lab.objects.fbt import FbtKernel, ObjectSite, frame_key
from trapline.lab.objects.structures import View
from trapline.lab.objects.user_code import UserCode

# FreeBSD's function for a breakpoint of the kernel, in dtrace_subr.c of the ISAs whose emulation is in C.
HANDLER: Final = "dtrace_invop_start"
_SCRATCH: Final = 0x6800_0000
_SIZE: Final = 0x4000
_SEED: Final = 20
_REFUSED: Final = 0xFFFF_FFFF
_ROOM: Final = 16 << 20


class State(NamedTuple):
    """Registers and memory after an instruction."""

    registers: Mapping[str, int]
    memory: bytes


class DisplacedCheck:
    """Executes displaced instructions by the user's handler, and by a CPU."""

    def __init__(self, code: UserCode, image: Image, states: int) -> None:
        glue = code.glue
        assert isinstance(glue, FbtKernel)
        self._code, self._glue, self._states = code, glue, states
        self._isa = isa = code.isa
        texts = [one for one in image.segments if one.flags & SegmentFlag.EXECUTE]
        self._plain = FunctionGuest(
            isa, bytes(16), ram=_ROOM + sum((len(one.data) // PAGE + 2) * PAGE for one in texts)
        )
        for segment in texts:
            self._plain.place(segment.vaddr, bytes(segment.data), Access.READ | Access.WRITE | Access.EXECUTE)
        self._plain.place(_SCRATCH, bytes(_SIZE), Access.READ | Access.WRITE)
        code.place(_SCRATCH, bytes(_SIZE))
        self._random = random.Random(_SEED)  # noqa: S311  states, not secrets
        frame = code.view("trapframe")
        self._keys: dict[str, Any] = {}
        for register in isa.registers.registers:
            key = frame_key(frame, register.name)
            if register.slot is not None and key is not None and register.name != isa.registers.zero:
                self._keys[register.name] = key
        self._known: set[bytes] = set()

    def differences(self, site: ObjectSite) -> Iterator[str]:
        """Yield a sentence for the first state in which they differ; nothing if they do not.

        Raises `FunctionFaultError` and `GluePanicError`.
        """
        size = self._isa.instruction_length(self._plain.engine.read(site.address, 16)) or 4
        instruction = self._plain.engine.read(site.address, size)
        if instruction in self._known:
            return
        self._known.add(instruction)
        for number in range(self._states):
            before = self._state(site.address)
            wanted = self._execute(site.address, before)
            found, status = self._handle(before)
            if status:
                yield f"their handler does not emulate it: {HANDLER} returns {status - (1 << 32)}"
                return
            text = "; ".join(_unlike(found, wanted))
            if text:
                yield f"state {number}: {text}"
                return

    @property
    def tried(self) -> int:
        """The number of distinct instructions that were tried."""
        return len(self._known)

    def _state(self, address: int) -> State:
        values = {name: self._random.getrandbits(8 * self._isa.word) for name in self._keys}
        values[self._isa.registers.sp] = _SCRATCH + _SIZE // 2
        values[self._isa.registers.pc] = address
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
        try:
            engine.step()
        except (GuestCrashError, PageFaultError):
            pass  # the fetch from where a return goes; the instruction itself was executed
        return State({name: engine.read_register(name) for name in before.registers}, engine.read(_SCRATCH, _SIZE))

    def _handle(self, before: State) -> tuple[State, int]:
        """Return what the handler makes of a trap frame, and its result."""
        code = self._code
        code.guest.engine.memory.write(_SCRATCH, before.memory)
        frame: View = self._glue.frame(before.registers)
        with code.showing(_SCRATCH, _SIZE, writable=True):
            status = code.call(HANDLER, frame.address) & _REFUSED
        mask = self._isa.address_mask
        registers = {name: frame[self._keys[name]] & mask for name in before.registers}
        return State(registers, code.guest.engine.read(_SCRATCH, _SIZE)), status


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
