"""The contract of an instruction set architecture: `Isa`.

An ISA is a folder, `emu/isa/<isa>/`. Each of its files defines one attribute of `Isa`; the levels
say what works with it, and each level depends on those above it.

| level | file | gives | attribute |
| --- | --- | --- | --- |
| code runs | `registers.py` | `REGISTERS`: names, slots in the CPU state, D's regs[] | `registers` |
| code runs | `instruction.py` | lengths of instructions, events that a CPU counts | `instruction_length`, `events` |
| code runs | `unicorn.py`, `unicorn.ll` | `UNICORN`: how Unicorn models the CPU | `unicorn` |
| code runs | `elf.py` | `ELF`: e_machine, operands in assembly | `elf` |
| functions, stacks | `calling_convention.py` | `CALLING`: arguments, results, frames | `calling` |
| guests have page tables | `page_tables.py` | `PAGING`: a page walk without side effects | `paging` |
| traps are taken | `traps.py` | `TRAPS`: breakpoints, the pc in a trap, the trap frame | `traps` |
| FBT's stub emulates | `stub.py` | `STUB`: what is done with each displaced instruction | `stub` |
| SDT's sites are patched | `traps.py` | `JUMP`: the jump and the nop | `jump` |
| CPUs race | `fetch.py` | `FETCHING`: fetches of code that another CPU writes | `fetching` |
| refusals are explained | `extensions.py` | `LACKS`: the extensions that the CPU lacks | `lacks` |
| Linux programs run | `linux.py` | `LINUX`: calls, structures, signals, faults | `linux` |

Providers have a port for each ISA, `providers/<provider>/<isa>.py`; the kernel guest has its
machine-dependent part in `testbins/kernel/<isa>/`.  docs/adding-an-isa.md lists all of these files,
and the few registries that name an ISA; tests/emu/isa/ checks that this list is complete.

Only the assembler and the linker import an ISA's `assembly.py` and `relocations.py`: they are not
attributes.  The experiments that find its state in Unicorn are in `emu.unicorn_layout`.

Nearly everything here is data; a feature that an ISA lacks is None.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntFlag
from functools import cached_property

from emu.displaced.decision import DisplacedTable
from emu.isa.elf_format import ElfFormat
from emu.isa.extensions import Extension
from emu.isa.fetch import Fetching
from emu.isa.linux_abi import LinuxAbi
from emu.isa.unicorn_model import UnicornModel
from emu.support.immutable import immutable


@immutable
class Repetition:
    """The repetition of an instruction that counts `registers.counter` down to 0."""

    mask: int
    """The bits of the register that count."""
    condition: int | None = None
    """The number of the condition that must hold for the next repetition; None: the count alone
    decides."""


def no_repetition(code: bytes) -> Repetition | None:
    """Return None: no instruction of the ISA repeats itself."""
    del code
    return None


class Events(IntFlag):
    """The events of one instruction."""

    LOAD = 1
    STORE = 2
    BRANCH = 4
    """A transfer of control, if its condition holds; a system call or a trap is not a branch."""


@immutable
class Register:
    """One register.

    `slot` is the index of its 64-bit word in Unicorn's CPU state (`emu.engine.qemu.layout` checks
    the build), None if it is not kept as a plain word there.  Unicorn's numbers of registers are in
    `UnicornModel.ids`.
    """

    name: str
    slot: int | None = None


@dataclass(frozen=True)
class RegisterFile:
    """The registers of an ISA, and the names of those with a special role."""

    registers: tuple[Register, ...]
    pc: str
    sp: str
    fp: str
    link: str | None
    """Register that holds the return address on function entry; None: it is on the stack."""
    zero: str | None
    """Register that always reads 0."""
    root: str
    """Register whose value is the root of the current process's address space."""
    kernel_root: str
    """Register whose value is the root of the kernel's address space."""
    dtrace: tuple[str, ...]
    """D's regs[]: register name by index; "" for an index whose register is not available."""
    bases: tuple[str, ...] = ()
    """Registers, beside the general ones, from which user programs compute addresses: those of
    thread-local storage."""
    dwarf: tuple[str, ...] = ()
    """Register names by the numbers that DWARF gives them; "" for one that is not available."""
    counter: str | None = None
    """The register that a repeated string instruction decrements; None: the ISA has none."""

    @cached_property
    def by_name(self) -> Mapping[str, Register]:
        """Registers by name."""
        return {register.name: register for register in self.registers}

    @cached_property
    def slots(self) -> Mapping[str, int]:
        """Slot in the CPU state, for the registers that have one."""
        return {register.name: register.slot for register in self.registers if register.slot is not None}


@immutable
class CallingConvention:
    """The calling conventions of functions and system calls, and the chain of frames."""

    arguments: tuple[str, ...]
    results: tuple[str, str]
    stack_arguments: int
    """Offset in bytes from sp, on entry to a function, of the first argument passed in memory."""
    system_call_number: str
    system_call_arguments: tuple[str, ...]
    frame_next: int
    """Offset from the frame pointer of the saved caller's frame pointer."""
    frame_return: int
    """Offset from the frame pointer of the return address."""
    ends_with_call: Callable[[bytes], bool]
    """Whether a call can end some bytes of code, of which there are 7 or more."""
    system_call_clobbers: frozenset[str] = frozenset()
    """Registers that a system call overwrites with the address and flags of its caller."""
    user_depth: bool = True
    """Whether D's ustackdepth is computed; False: it is 0 (FreeBSD dtrace_getustackdepth)."""
    taken_by_return: Callable[[bytes], int | None] | None = None
    """Bytes of arguments that the return instruction at the start of code takes off the stack
    beside the return address; None: it is another instruction.  None for the function: a return
    takes nothing off."""


@immutable
class Traps:
    """Breakpoints and how they arrive."""

    breakpoints: tuple[bytes, ...]
    """Encodings that a tracepoint may write, longest first, in the byte order of memory."""
    pc_after: int
    """Distance from the breakpoint to the pc in the trap frame (x86: 1)."""
    frame: tuple[str, ...]
    """The kernel guest's trap frame: a machine word per name (testbins/kernel/<isa>/frame.h)."""
    frame_pc: str
    frame_sp: str
    flags: str
    """Register (or trap frame field) of the condition flags; "" if the ISA has none."""
    wait: bytes
    """The instruction with which a kernel waits for an interrupt."""
    exception: str
    """The exception of FBT's breakpoint, and where its pc points: a sentence for `trapline step`."""
    flush: str
    """The means to make CPUs execute code that was written: sentences for `trapline step`."""
    coherent: bool = False
    """Whether a CPU keeps its instruction cache in step with stores, its own and those of others."""
    states: tuple[int, ...] = (0,)
    """Values of the flags that cover every condition, for `trapline check`."""
    settable: int = 0
    """The flags that may be set in a kernel without causing a trap or an interrupt."""
    kept: frozenset[str] = frozenset()
    """Registers on whose values a kernel's vector relies."""
    repeats_unclaimed: bool = False
    """Whether the kernel returns to a breakpoint that its stub does not emulate."""
    pushed: tuple[tuple[str, int], ...] = ()
    """Fields of the trap frame of a breakpoint that are not registers, but that the CPU or the
    vector pushes."""
    privilege: str = ""
    """Field whose lowest two bits are 0 in a trap from kernel mode, where the CPU pushes no sp: the
    interrupted one is the address of `frame_sp` itself.  "": it always pushes it."""
    moved: int = 0
    """The answer of a handler in kernel text that has set the pc itself: the stub's code or word of
    a nop."""
    moved_adds: int = 0
    """The number that the stub adds to the pc after that answer."""
    user_pc_after: int | None = None
    """`pc_after` in the frame that the kernel's vector has of a user program's breakpoint; None:
    the same."""

    @property
    def saved_user_pc_after(self) -> int:
        """How far past a user program's breakpoint the pc in the kernel's trap frame points."""
        return self.pc_after if self.user_pc_after is None else self.user_pc_after


@immutable
class PageTables:
    """The shape of page tables whose entries have eight bytes, 512 to a table.

    Machine code walks them (`emu.engine.hits.walk_code`); `Paging.translate` does the same in
    Python.
    """

    shifts: tuple[int, ...]
    """Number of bits by which an address is shifted to get its index in the table of each level."""
    root_mask: int
    """The bits of the register that name the root table; if they are 0, the MMU is off."""
    root_shift: int
    """How far those are shifted left to get a physical address."""
    valid: int
    """The bit of a valid entry."""
    frame_mask: int
    """The bits of an entry that name a table or a page."""
    frame_shift: int
    """How far those are shifted left to get a physical address."""
    leaf_mask: int
    """The bits of an entry that say whether it is a page."""
    leaf_set: bool
    """Whether a page has one of these bits set; else it has all of them clear."""
    leaf_last: bool = False
    """Whether the entries of the last level must be marked as pages too."""
    largest_leaf: int = 30
    """How far an address is shifted at the first level whose entries may be pages: no ISA here has
    pages of 512 GiB."""


@immutable
class Paging:
    """Page tables of an ISA, as the kernel guest uses them."""

    translate: Callable[[Callable[[int], int], int, int], int | None]
    """(read_physical_word, root, address) -> physical address, or None if unmapped."""
    writable_mask: int
    """The bits of a page's entry that say whether user programs may write."""
    writable: int
    """The value of those bits if they may."""
    root: Callable[[int], int] = lambda table: table
    """Physical address of the root table -> value of the register that names it."""
    tables: PageTables | None = None
    """Their shape, for machine code; None: only Python walks them."""


@immutable
class Jump:
    """The jump that replaces a nop at a site, and the nop.

    Source: FreeBSD sys/<machine>/<machine>/sdt_machdep.c (sdt_tracepoint_valid,
    sdt_tracepoint_patch).
    """

    nop: bytes
    """The bytes of the disabled site, which are as many as those of the jump."""
    alignment: int
    """Of site and target, in bytes."""
    reach: int
    """The largest distance to the target, in bytes, counted from `origin`."""
    origin: int
    """The point from which the distance is counted, in bytes after the site."""
    encode: Callable[[int], bytes]
    """Encodes the jump over a distance."""

    def refusal(self, site: int, target: int) -> str | None:
        """Return why a site cannot be patched, None if it can."""
        if site == target:
            return "it would jump to itself"
        if site % self.alignment or target % self.alignment:
            return f"site and target must be multiples of {self.alignment}"
        if abs(target - site - self.origin) > self.reach:
            return f"the target is {target - site:+#x} away, more than {self.reach:#x}"
        return None

    def patch(self, site: int, target: int) -> bytes:
        """Return the bytes of the jump from a site to its target."""
        return self.encode(target - site - self.origin)


@dataclass(frozen=True, eq=False)
class Isa:
    """An instruction set architecture."""

    name: str
    """The name of its folder, of its ports (`providers/*/<isa>.py`), and on the command line."""
    title: str
    """The name of the ISA in texts for readers."""
    registers: RegisterFile
    calling: CallingConvention
    traps: Traps
    stub: DisplacedTable
    """The displaced instructions of FBT, and the actions of its stub."""
    unicorn: UnicornModel
    """Unicorn's model of the CPU."""
    elf: ElfFormat
    """Its ELF files."""
    linux: LinuxAbi
    """How Linux runs programs on it."""
    paging: Paging
    jump: Jump
    """The jump that SDT writes over the nop of a site."""
    fetching: Fetching
    """How it fetches code that another CPU writes."""
    kernel_base: int
    """The kernel guest maps physical address p at kernel_base + p."""
    instruction_alignment: int
    """In bytes: every instruction begins at a multiple of it."""
    instruction_length: Callable[[bytes], int]
    """Length in bytes of the instruction that starts these bytes; 0 if they do not decode."""
    events: Callable[[bytes], Events]
    """What the instruction that starts these bytes does that a CPU counts."""
    capstone: tuple[int, int]
    """Capstone architecture and mode."""
    condition: Callable[[int, int], bool] | None = None
    """(number, flags) -> whether the condition with that number in an instruction holds; None: no
    flags."""
    word: int = 8
    """Bytes of a pointer, a general register, a stack slot."""
    kernel_start: int = 1 << 63
    """The lowest address of a kernel."""
    refused: Callable[[bytes], bool] | None = None
    """Returns whether the CPU refuses the instruction that starts these bytes, which Unicorn would
    execute; None: it refuses the same ones."""
    lacks: tuple[Extension, ...] = ()
    """The extensions that the emulated CPU lacks, for the messages of programs that need them."""
    repetition: Callable[[bytes], Repetition | None] = no_repetition
    """Returns how the instruction that starts these bytes repeats itself; None: it does not."""
    strict_alignment: bool = True
    """Whether a D program's load from an unaligned address faults (FreeBSD dtrace.c,
    DTRACE_ALIGNCHECK, which is empty on x86)."""
    x87: bool = False
    """Whether a long double of C is the x87's, of 80 bits; else it is IEEE's of 128."""

    @property
    def address_mask(self) -> int:
        """All the bits that an address may have."""
        return (1 << 8 * self.word) - 1

    def is_kernel_address(self, address: int) -> bool:
        """Return whether an address is a kernel's."""
        return address >= self.kernel_start
