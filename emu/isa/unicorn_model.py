"""The contract of an ISA's Unicorn.

How the CPU emulator models that CPU, and what has to be done for it.

`emu/isa/<isa>/unicorn.py` gives one `UnicornModel`, which is `Isa.unicorn`.  The engine
(`emu.engine`) knows no ISA: whatever is particular to one CPU is a field here.  Offsets are those
of the pinned build's structures, in bytes; `emu.engine.qemu.layout` checks that this is that build.

The functions that Unicorn calls exist twice: in Python, as fields here, and in machine code, as
functions of the same names in the `unicorn.ll` of the folders that `ir` names.  Tests hold the two
equal.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import field
from types import ModuleType
from typing import Any, Final, NamedTuple, Protocol

from emu.support.immutable import immutable


def register_ids(constants: ModuleType, prefix: str, **others: str) -> Mapping[str, int]:
    """Return Unicorn's numbers of registers by name, from the constants of one CPU.

    `others`: the names here of registers that Unicorn calls otherwise.
    """
    ids = {name.removeprefix(prefix).lower(): n for name, n in vars(constants).items() if name.startswith(prefix)}
    return ids | {name: ids[other] for name, other in others.items()}


class VectorFile(NamedTuple):
    """A run of vector or floating-point registers, by Unicorn's ids."""

    first: int
    last: int
    size: int
    """Bytes of one register."""
    value: Callable[[bytes], Any] = lambda pattern: int.from_bytes(pattern, "little")
    """Turns the bytes of a register into what Unicorn's public call takes."""

    def places(self, size: int) -> list[slice]:
        """Return the bytes of each register in the run of the CPU state, which has `size` bytes.

        There may be others between them.
        """
        stride = (size - self.size) // (self.last - self.first)
        return [slice(start, start + self.size) for start in range(0, size, stride)]


class ModelledCpu(Protocol):
    """The CPU, as the functions of a model see it (`emu.engine.qemu.cpu.Cpu`)."""

    handle: int
    """Address of Unicorn's own structure (struct uc_struct)."""
    env: int
    """Address of the CPU's registers (QEMU's CPUArchState)."""
    exception: ctypes.c_int32
    """Number of the current exception (QEMU's exception_index); -1: none."""

    def deliver(self) -> None:
        """Let QEMU deliver the exception to the guest's own vector."""

    def function(self, name: str) -> Any:
        """Return a function of QEMU's for this CPU."""

    def read_public(self, name: str) -> Any:
        """Return one of the `UnicornModel.ids` by Unicorn's own call: a number, or a tuple."""

    def write_public(self, name: str, value: Any) -> None:
        """Set one of the `UnicornModel.ids` by Unicorn's own call."""


class InterruptedCpu(ModelledCpu, Protocol):
    """The CPU, as the callbacks of a model see it during a run (`emu.engine.python_callbacks`)."""

    pc: ctypes.c_uint64

    def ask(self, number: int) -> int:
        """Return what `TrapTaker.trap` answers: DELIVER or HANDLED."""

    def breakpoint(self) -> int:
        """Return what `TrapTaker.breakpoint` answers: DELIVER or HANDLED."""

    def uncount_user(self, address: int) -> None:
        """Take the instruction at an address off the count, if the address is a user program's."""

    def leave_block(self, size: int) -> None:
        """Count the current block up to the instruction of `size` bytes at the pc, and with it."""


class ServingCpu(Protocol):
    """The CPU for an instruction that the host serves (`emu.engine.emulated_instructions`)."""

    def read_register(self, name: str) -> int:
        """Return a register."""

    def write_register(self, name: str, value: int) -> None:
        """Set a register."""

    def read_public(self, name: str) -> Any:
        """Return one of the `UnicornModel.ids` by Unicorn's own call: a number, or a tuple."""

    def write_public(self, name: str, value: Any) -> None:
        """Set one of the `UnicornModel.ids` by Unicorn's own call."""

    def load(self, address: int, size: int) -> int:
        """Return an unsigned integer of memory.  Raises `BadAddressError`."""

    def store(self, address: int, size: int, value: int) -> None:
        """Store an integer.  Raises `BadAddressError`; then nothing is written."""

    def time(self) -> int:
        """Return virtual nanoseconds since the machine started."""

    def cpu_number(self) -> int:
        """Return the number of the CPU that runs."""

    def random(self) -> int:
        """Return 64 bits that are the same in every run."""


# Raises an exception at the pc; answers as `InterruptedCpu.ask`.
Raise = Callable[[InterruptedCpu], int]


@immutable
class EmulatedInstructions:
    """Instructions that Unicorn is not to translate: it would ask the host, or abort it."""

    found: Callable[[ModelledCpu, Callable[[int], int], int], bool]
    """(cpu, fetch, address): whether one is at an address; `fetch(address)` returns the unit of
    code there, as many bytes as `fetch_unit` says.  `emulated` in machine code."""
    fetch_unit: int
    """Bytes that `fetch` reads: no more than the shortest instruction has."""
    serve: Callable[[ServingCpu, bytes], int | Raise]
    """Does what the one does that starts these bytes, but for the pc; returns its length, or the
    exception with which the CPU refuses it."""
    empty: Callable[[Callable[[int], int], int], bool] = lambda _fetch, _address: False
    """(fetch, address): whether Unicorn makes a block of no bytes of the instruction at an address,
    which the CPU refuses; `serve` returns the exception."""
    after: Callable[[ModelledCpu], Raise | None] = lambda _cpu: None
    """Returns the exception that follows an instruction which the CPU steps; None: there is none."""


@immutable
class Accruing:
    """Instructions that read or replace exceptions which floating-point operations have accrued.

    It is for a CPU whose QEMU notes those where no instruction sees them.
    """

    found: Callable[[Callable[[int], int], int], bool]
    """(fetch, address): whether one is at an address; `fetch(address)` returns the byte there.
    `accruing` in machine code."""
    merge: Callable[[int], None]
    """Moves what has accrued to the registers of the CPU state at an address in this process.
    `merge_accrued` in machine code."""


@immutable
class Corrections:
    """Instructions that Unicorn executes wrongly in a state of the CPU that is rare.

    A hook before each looks whether the CPU is in that state; if so, the host executes it.
    """

    found: Callable[[Callable[[int], int], int], bool]
    """(fetch, address): whether one is at an address; `fetch(address)` returns the byte there.
    `corrected` in machine code."""
    needed: Callable[[int, Callable[[int], int], int], bool]
    """(place of the CPU state in this process, fetch, address): whether the state is such for the
    instruction at an address. `correction_needed` in machine code."""
    execute: Callable[[ServingCpu, bytes, int | None], bool | Raise]
    """(CPU, code, address of the operand in memory): executes it, but for the pc; False: Unicorn
    does it right.  Or returns the exception that a program gets.  Raises `BadAddressError`."""


# So many temporaries are safe in one block, of 512: one instruction may take dozens, which it frees.
MOST_TEMPORARIES: Final = 384


class Leaking(NamedTuple):
    """Offsets in QEMU's context for translation, for a CPU whose translator keeps temporaries.

    `emu.engine.qemu.temporaries` says what follows from that.
    """

    temporaries: int
    """The number of temporaries that a block has so far (nb_temps)."""
    operations: int
    """The number of its operations (nb_ops)."""


@immutable
class UnicornModel:
    """One CPU as Unicorn models it."""

    architecture: int
    mode: int
    """The second argument of `unicorn.Uc`; `architecture` is the first."""
    target: str
    """QEMU's name of the CPU, at the end of its functions' names."""
    deliver: str
    """QEMU's function that delivers an exception to the guest's own vector."""
    ids: Mapping[str, int]
    """Unicorn's number of each register, by name: those of `Isa.registers`, and all others."""
    check_register: str
    """The register that `emu.engine.qemu.layout` looks for at the start."""
    check_offset: int
    """The offset of that register in the CPU state."""
    interrupt: Callable[[ModelledCpu], None]
    """Delivers the clock interrupt to the guest's own vector."""
    emulated: EmulatedInstructions
    vectors: tuple[VectorFile, ...]
    """The vector and floating-point registers; plans set those of the first file."""
    breakpoint: int | None = None
    """Unicorn's number of a breakpoint's exception; None: it arrives as an invalid instruction."""
    breakpoint_length: int = 0
    """How far behind the breakpoint the pc is in the hook, where `Traps.pc_after` is 0."""
    pc_ahead: int = 0
    """How far Unicorn moves the pc on before every hook of an exception."""
    system_call: int | None = None
    """Unicorn's number of a system call's exception; None: it has an instruction hook of its own."""
    system_call_instruction: int | None = None
    """Unicorn's number of that instruction."""
    has_gate: Callable[[ModelledCpu, int], bool] = lambda _cpu, _number: True
    """(CPU, exception) -> whether the guest's table has an entry for it."""
    undefined: int | None = None
    """Number that `TrapTaker.trap` gets for an undefined instruction, which may be a breakpoint
    of SDT as illumos has it (LOCK over a nop); None: breakpoints are never such."""
    page_size: int | None = None
    """Set as the size of pages before all else; None: Unicorn's own choice is 4096 bytes."""
    untagged: Callable[[int], int] = lambda address: address
    """Returns a data address without the bits that the CPU ignores; Unicorn's TLB does not."""
    prepare: Callable[[ModelledCpu], None] = lambda _cpu: None
    """Brings the CPU into the state in which firmware leaves it."""
    handled: Callable[[ModelledCpu], None] | None = None
    """Makes QEMU forget an exception that the host has handled; None: nothing is to be forgotten."""
    accruing: Accruing | None = None
    """None: QEMU's own accounts of exceptions are right."""
    corrections: Corrections | None = None
    """None: there are no such instructions."""
    leaking: Leaking | None = None
    """None: QEMU's translator frees all temporaries."""
    left_out: tuple[str, ...] = ()
    """Registers that Unicorn's contexts do not keep, or only in part."""
    reservation: int | None = None
    """Offset of the address that a load-exclusive has reserved; all ones: none.  None: there are no
    such instructions."""
    trap_flag: int | None = None
    """Offset of the word of the CPU state whose bit 8 makes the CPU trap after an instruction;
    None: it has no such bit."""
    names: Mapping[str, int] = field(default_factory=dict)
    """The names that `unicorn.ll` may use after a dollar sign."""
    ir: tuple[str, ...] = ()
    """Packages whose `unicorn.ll` hold the callbacks in machine code."""
    on_invalid: Callable[[InterruptedCpu], int] | None = None
    """Takes an invalid instruction, and answers DELIVER or HANDLED; None: none arrives.  `invalid`
    in machine code."""
    on_refused: Callable[[InterruptedCpu, int], None] | None = None
    """Raises the exception of an instruction, of so many bytes, that Unicorn would execute and the
    CPU refuses; None: there are none.  `refused` in machine code."""
    on_system_call: Callable[[InterruptedCpu], None] | None = None
    """Enters the guest's kernel; None: QEMU does it.  `system_call` in machine code."""
