"""The common part of Linux on x86-64 and i386: faults, segments, floating point in signals.

A program loads segment registers with selectors of the descriptor table: of the flat data segment,
and in 32-bit programs of the thread's own entries, whose bases set_thread_area and clone set.
There is no such table here: the load raises an exception, whose handler executes it.  Only fs and
gs can have the thread's entries; the bases of the others stay 0.

The x87 and SSE registers are in the frame of a signal in the format of fxsave and xsave.

Source: Linux 6.12 arch/x86/kernel/traps.c; arch/x86/include/uapi/asm/sigcontext.h,
arch/x86/kernel/fpu/signal.c (copy_fpstate_to_sigframe, convert_from_fxsr),
arch/x86/kernel/signal.c (handle_signal).
"""

from __future__ import annotations

import struct
from functools import partial
from typing import Any, Final, NamedTuple

from emu.isa.disassembly import CS_ARCH_X86, CS_OP_MEM, CS_OP_REG, decoder
from emu.isa.linux_abi import GENERAL_PROTECTION, MISALIGNED, NOTHING_FOLLOWS, Bases, Fault, StoppedCpu
from emu.isa.linux_signals import (
    FPE_INTDIV,
    ILL_ILLOPN,
    SI_KERNEL,
    TRAP_BRKPT,
    TRAP_TRACE,
    FrameState,
    Signal,
    StateCpu,
    Trap,
    read_file,
    write_file,
)
from emu.isa.unicorn_model import ModelledCpu, VectorFile
from emu.isa.x86 import unicorn as x86
from emu.isa.x86.cpuid import AREA, STATES
from emu.isa.x86.instruction import LOCK
from emu.isa.x86.length import PREFIXES
from emu.isa.x86.unicorn import BREAKPOINT, DEBUG, X87
from emu.support.words import BadAddressError

# A number of our own for the debug exception of icebp, of which Linux tells programs another reason.
_ICEBP_VECTOR: Final = 0x101
# Signal by the CPU's vector.
FAULTS: Final = {
    0: Fault(Signal.SIGFPE, FPE_INTDIV),
    1: Fault(Signal.SIGTRAP, TRAP_TRACE),
    _ICEBP_VECTOR: Fault(Signal.SIGTRAP, TRAP_BRKPT),
    BREAKPOINT: Fault(Signal.SIGTRAP, SI_KERNEL, has_address=False),
    4: GENERAL_PROTECTION,
    5: GENERAL_PROTECTION,
    6: Fault(Signal.SIGILL, ILL_ILLOPN),
    13: GENERAL_PROTECTION,
    16: Fault(Signal.SIGFPE, 0),
    17: MISALIGNED._replace(has_address=False),
    19: Fault(Signal.SIGFPE, 0),
}

# QEMU's hflags and hflags2, one word (target/i386/cpu.h): HF_CPL_MASK, the privilege level 3 of programs.
USER: Final = 3
# Floating point as a program finds it: no exception is enabled, x87 computes with 64 bits and has no values
# (arch/x86/kernel/fpu/init.c, fpstate_init_user).
FLOATING_POINT: Final = {"fpcw": 0x37F, "fptag": 0xFFFF, "mxcsr": 0x1F80}
# Interrupts are enabled.
FLAGS: Final = 0x202
# The flags that are clear in a signal's handler: TF, DF and RF (arch/x86/kernel/signal.c, handle_signal).
CLEARED: Final = 0x100 | 0x400 | 0x1_0000

# The selector of the programs' data (__USER_DS of a 64-bit kernel, arch/x86/include/asm/segment.h).
USER_DATA: Final = 0x2B

_OVERFLOW: Final = 4
# The `int` instructions that a program may use but for int3: their gates are open to it (arch/x86/kernel/idt.c,
# SYSG).
_OPEN_GATES: Final = frozenset({_OVERFLOW})
_INT_LENGTH: Final = 2
_ICEBP: Final = 0xF1
_LONGEST: Final = 15


def raised(cpu: ModelledCpu, stopped: StoppedCpu, number: int, pc: int) -> tuple[int, int]:
    """Return the exception that a CPU raises where Unicorn raises `number`, and its frame's pc.

    Unicorn has no table of gates here, so `int 14` looks like a page fault; a CPU gives #GP at the
    instruction.  Prefixes before it are not looked for.  Unicorn does not know icebp (f1); a CPU
    gives #DB behind it.  Before either, LOCK is undefined.  Source: Intel SDM volume 3, 6.4.4 and
    6.12.1.2.
    """
    if number not in _OPEN_GATES and x86.raised_by_int(cpu):
        return x86.GENERAL_PROTECTION, pc - _INT_LENGTH
    if number == x86.INVALID_OPCODE:
        for at in range(pc, pc + _LONGEST):
            byte = stopped.read(at, 1)[0]
            if byte == x86.INT:
                return x86.GENERAL_PROTECTION, pc
            if byte == _ICEBP:
                return _ICEBP_VECTOR, at + 1
            if byte not in PREFIXES or byte == LOCK:
                break
    return number, pc


_TRAP_FLAG: Final = 0x100
_PAGE: Final = 4096
_FLAT: Final = frozenset({"ds", "es", "ss"})
_WITH_BASE: Final = frozenset({"fs", "gs"})
_SELECTOR: Final = 2


class Loads(NamedTuple):
    """The loads of segments in one mode of the CPU."""

    mode: int
    """Capstone's."""
    general: tuple[str, ...]
    """The general registers by their numbers."""
    pc: str
    flags: str
    mask: int
    """The bits of an address."""

    def execute(self, cpu: StoppedCpu, bases: Bases, exception: int, pc: int) -> int | None:
        """Execute a load, if that is what caused the exception (`LinuxAbi.execute`).

        Raises `BadAddressError`: the instruction or its operand is not in memory.
        """
        load = self._decoded(_code(cpu, pc)) if exception == x86.GENERAL_PROTECTION else None
        if load is None:
            return None
        selector = load.selector(cpu, self.mask)
        base = 0 if selector == USER_DATA else bases(selector >> 3)
        if base is None or (base and load.segment in _FLAT):
            return None
        cpu.write_register(f"{load.segment}_selector", selector)
        if load.segment in _WITH_BASE:
            cpu.write_register(f"{load.segment}_base", base)
        if load.popped:
            sp = self.general[4]
            cpu.write_register(sp, cpu.read_register(sp) + load.popped & self.mask)
        cpu.pc = pc + load.length
        cpu.discount(-1)  # an instruction that faults is not counted, but this one was executed
        # A load of ss delays the debug exception by an instruction.
        stepped = load.segment != "ss" and cpu.read_register(self.flags) & _TRAP_FLAG
        return DEBUG if stepped else NOTHING_FOLLOWS

    def _decoded(self, code: bytes) -> _Load | None:
        """Return how an instruction loads a segment, None if it does not.

        None, too, for an operand in a segment with a base, or with addresses of half the bits.
        """
        insn: Any = next(decoder((CS_ARCH_X86, self.mode), detail=True).disasm(code, 0, 1), None)
        if insn is None or insn.mnemonic not in {"mov", "pop"} or insn.operands[0].type != CS_OP_REG:
            return None
        segment = insn.reg_name(insn.operands[0].reg)
        if segment not in _FLAT | _WITH_BASE:
            return None
        if insn.mnemonic == "pop":
            return _Load(segment, insn.size, popped=insn.operands[0].size, address=((self.general[4], 1),))
        source = insn.operands[1]
        if source.type != CS_OP_MEM:
            return _Load(segment, insn.size, register=self.general[insn.modrm & 7 | (insn.rex & 1) << 3])
        memory = source.mem
        parts = ((memory.base, 1), (memory.index, memory.scale))
        address = tuple((insn.reg_name(number), factor) for number, factor in parts if number)
        known = {self.pc, *self.general}
        if insn.reg_name(memory.segment) in _WITH_BASE or any(name not in known for name, _ in address):
            return None
        behind = insn.size if any(name == self.pc for name, _ in address) else 0
        return _Load(segment, insn.size, address=address, displacement=memory.disp + behind)


class _Load(NamedTuple):
    """An instruction that loads a segment register, and where it takes the selector from."""

    segment: str
    length: int
    popped: int = 0
    """Bytes that it takes off the stack."""
    register: str = ""
    address: tuple[tuple[str, int], ...] = ()
    """Registers and their factors, whose sum with `displacement` is the address."""
    displacement: int = 0

    def selector(self, cpu: StoppedCpu, mask: int) -> int:
        """Return the selector.  Raises `BadAddressError`."""
        if self.register:
            return cpu.read_register(self.register) & 0xFFFF
        address = self.displacement + sum(cpu.read_register(name) * factor for name, factor in self.address)
        return int.from_bytes(cpu.read(address & mask, _SELECTOR), "little")


def _code(cpu: StoppedCpu, pc: int) -> bytes:
    """Return the bytes at pc, fewer if the memory ends with their page."""
    try:
        return cpu.read(pc, _LONGEST)
    except BadAddressError:
        return cpu.read(pc, -pc % _PAGE)


_REGISTERS: Final = 8
_SLOT: Final = 16
_X87_SIZE: Final = 10
# struct fxregs_state: control, status, tag word; mxcsr and its mask; then the registers.
_CONTROL: Final = struct.Struct("<HHB")
_MXCSR_AT, _MXCSR_MASK = 24, 0xFFFF
_ST_AT, _XMM_AT, _SOFTWARE_AT = 32, 160, 464
# struct _fpx_sw_bytes: what is in the frame; the header of xsave behind the 512 bytes, and the mark behind it all.
_SOFTWARE: Final = struct.Struct("<IIQI")
_MAGIC_1, _MAGIC_2 = 0x4650_5853, 0x4650_5845
_HEADER_AT: Final = 512
_SIZE: Final = AREA + 4
# struct fregs_state, in front of it in 32-bit programs: seven words, eight registers, status and magic.
_LEGACY: Final = struct.Struct("<7I80sHH")
_UPPER_ONES: Final = 0xFFFF_0000
_TOP_SHIFT, _EMPTY = 11, 3


def _abridged(tags: int) -> int:
    """Return the tag word of fxsave: a bit for each register that is not empty."""
    return sum((tags >> 2 * index & _EMPTY != _EMPTY) << index for index in range(_REGISTERS))


def _whole(abridged: int) -> int:
    """Return a tag word with empty registers and others."""
    return sum((0 if abridged >> index & 1 else _EMPTY) << 2 * index for index in range(_REGISTERS))


def _top(status: int) -> int:
    """Return where the top of the x87's stack is among its registers, in bytes."""
    return (status >> _TOP_SHIFT & 7) * _X87_SIZE


def _save(cpu: StateCpu, _error: int, vectors: VectorFile, *, legacy: bool) -> bytes:
    data = bytearray(_SIZE)
    control, status, tags = (cpu.read_register(name) for name in ("fpcw", "fpsw", "fptag"))
    _CONTROL.pack_into(data, 0, control, status, _abridged(tags))
    struct.pack_into("<II", data, _MXCSR_AT, cpu.read_register("mxcsr"), _MXCSR_MASK)
    registers, top = read_file(cpu, 1, X87), _top(status)
    stack = registers[top:] + registers[:top]
    for index in range(_REGISTERS):
        at = _ST_AT + index * _SLOT
        data[at : at + _X87_SIZE] = stack[index * _X87_SIZE : (index + 1) * _X87_SIZE]
    xmm = read_file(cpu, 0, vectors)
    data[_XMM_AT : _XMM_AT + len(xmm)] = xmm
    _SOFTWARE.pack_into(data, _SOFTWARE_AT, _MAGIC_1, _SIZE + legacy * _LEGACY.size, STATES, AREA)
    struct.pack_into("<Q", data, _HEADER_AT, STATES)
    struct.pack_into("<I", data, AREA, _MAGIC_2)
    if not legacy:
        return bytes(data)
    words = (control | _UPPER_ONES, status | _UPPER_ONES, tags | _UPPER_ONES, 0, 0, 0, _UPPER_ONES)
    return _LEGACY.pack(*words, stack, status, 0) + bytes(data)


def _load(cpu: StateCpu, data: bytes, vectors: VectorFile, *, legacy: bool) -> None:
    before = _LEGACY.size if legacy else 0
    control, status, abridged = _CONTROL.unpack_from(data, before)
    tags, size, at = _whole(abridged), _SLOT, _ST_AT
    if legacy:
        control, status, tags = (word & 0xFFFF for word in struct.unpack_from("<3I", data))
        size, at = _X87_SIZE, 28
    stack = b"".join(data[at + index * size : at + index * size + _X87_SIZE] for index in range(_REGISTERS))
    bottom = len(stack) - _top(status)
    write_file(cpu, 1, X87, stack[bottom:] + stack[:bottom])
    for name, value in {"fpcw": control, "fpsw": status, "fptag": tags}.items():
        cpu.write_register(name, value)
    (mxcsr,) = struct.unpack_from("<I", data, before + _MXCSR_AT)
    cpu.write_register("mxcsr", mxcsr & _MXCSR_MASK)
    at = before + _XMM_AT
    write_file(cpu, 0, vectors, data[at : at + (vectors.last - vectors.first + 1) * _SLOT])


def _reset(cpu: StateCpu) -> None:
    """Set the registers as a program finds them at its start (fpu__clear_user_states)."""
    for file in cpu.vectors():
        file[:] = bytes(len(file))
    for name, value in {"fpsw": 0, **FLOATING_POINT}.items():
        cpu.write_register(name, value)


def frame_state(vectors: VectorFile, pointer: int, *, legacy: bool) -> FrameState:
    """Return the area of a mode of the CPU; `legacy`: that of 32-bit programs."""
    before = _LEGACY.size if legacy else 0
    return FrameState(
        size=_SIZE + before,
        unaligned=before,
        save=partial(_save, vectors=vectors, legacy=legacy),
        load=partial(_load, vectors=vectors, legacy=legacy),
        pointer=pointer,
        reset=_reset,
    )


# The vector of a page fault, and the bits of its error code (arch/x86/include/asm/trap_pf.h).
_PAGE_FAULT: Final = 14
_PRESENT, _WRITE, _USER, _FETCH = 1, 2, 4, 16
_VECTORS: Final = 0xFF


def page_fault(address: int, *, write: bool, fetch: bool, present: bool) -> Trap:
    """Return trapno, err and cr2 after an access to a page that is not mapped, or not for it."""
    error = _USER | present * _PRESENT | write * _WRITE | fetch * _FETCH
    return Trap(_PAGE_FAULT, error, address)


def exception(number: int, before: Trap) -> Trap:
    """Return the same after another exception, which leaves cr2 as it was."""
    return Trap(number & _VECTORS, 0, before.address)
