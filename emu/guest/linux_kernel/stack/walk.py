"""Stacks of a Linux kernel: by frame pointers, or by the ORC tables that x86-64 kernels carry.

Source: Linux 6.12 arch/riscv/kernel/stacktrace.c, arch/arm64/kernel/stacktrace.c,
arch/x86/kernel/unwind_orc.c, arch/x86/include/asm/orc_types.h.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from contextlib import suppress
from enum import IntEnum
from typing import Final, NamedTuple, Protocol

from emu.displaced.frame import Frame
from emu.engine.engine import Engine
from emu.guest.linux_kernel.files.facts import KernelFacts
from emu.guest.linux_kernel.modules import Modules
from emu.guest.linux_kernel.stack.orc_modules import ModuleOrc
from emu.guest.linux_kernel.tasks import Tasks
from emu.support.words import WORD_MASK, BadAddressError

# The largest number of frames of a stack: a damaged stack may be circular.
MOST: Final = 128
_WORD: Final = 8


class Unwinder(Protocol):
    """Finds the callers of an interrupted context of the kernel."""

    def callers(self, frame: Frame, *, framed: bool) -> list[int]:
        """Return return addresses, the innermost first.

        `framed`: the function's own frame exists; otherwise the context is at its entry or its
        return.
        """
        ...


class FramePointers:
    """Walks the chain of frame records: RISC-V and AArch64.

    At the frame of an exception, the saved registers identify the interrupted code.
    """

    def __init__(self, engine: Engine, facts: KernelFacts, tasks: Tasks) -> None:
        self._engine = engine
        self._tasks = tasks
        self._registers = engine.isa.registers
        self._calling = engine.isa.calling
        entry, end = (facts.symbols.get(name) for name in ("handle_exception", "ret_from_fork_asm"))
        self.entry = range(entry.value, end.value) if entry and end else range(0)
        """RISC-V's code that saves registers: its frames end where they are saved."""
        self.saved = tasks.abi.pt_regs
        """The registers there, in their order."""

    def callers(self, frame: Frame, *, framed: bool) -> list[int]:
        """Return return addresses."""
        pcs = []
        if not framed and self._registers.link is not None:
            pcs.append(frame.register(self._registers.link))
        return pcs + self._chain(frame.register(self._registers.fp))

    def _chain(self, pointer: int) -> list[int]:
        load, calling, is_kernel = self._engine.load, self._calling, self._engine.isa.is_kernel_address
        pcs: list[int] = []
        while len(pcs) < MOST and is_kernel(pointer) and not pointer & 7:
            try:
                pc, following = load(pointer + calling.frame_return, _WORD), load(pointer + calling.frame_next, _WORD)
                if not is_kernel(pc):
                    break
                pcs.append(pc)
                if pc in self.entry:
                    saved = self._tasks.registers_at(pointer)
                    if not is_kernel(saved["pc"]):
                        break
                    pcs.append(saved["pc"])
                    following = saved[self._registers.fp]
            except BadAddressError:
                break
            pointer = following
        return pcs


class OrcRegister(IntEnum):
    """The base register of an ORC entry (ORC_REG_*)."""

    UNDEFINED = 0
    PREV_SP = 1
    DX = 2
    DI = 3
    BP = 4
    SP = 5
    R10 = 6
    R13 = 7
    BP_INDIRECT = 8
    SP_INDIRECT = 9


# Types of entries (ORC_TYPE_*).
CALL, REGS, REGS_PARTIAL = 2, 3, 4
_ORC: Final = struct.Struct("<hhH")
ORC_ENTRY: Final = _ORC.size
_NAMED: Final = {OrcRegister.R10: "r10", OrcRegister.R13: "r13", OrcRegister.DI: "rdi", OrcRegister.DX: "rdx"}
# struct pt_regs: words from its start.
REGS_IP, REGS_SP, REGS_BP = 16, 19, 4
# A frame of iret: ip, cs, flags, sp.
IRET_SP: Final = 3


class _Entry(NamedTuple):
    sp_offset: int
    bp_offset: int
    sp_register: int
    bp_register: int
    type: int
    signal: bool


class Orc:
    """Unwinds by the tables .orc_unwind_ip and .orc_unwind of the kernel and its modules."""

    def __init__(self, engine: Engine, facts: KernelFacts, modules: Modules, bare: range) -> None:
        """`bare` are the addresses of functions without entries, which do not move the sp."""
        self._engine = engine
        self.text = facts.text
        self.bare = bare
        self.modules = ModuleOrc(engine, modules, ORC_ENTRY)
        address = facts.symbols.address
        self.ips, end = address("__start_orc_unwind_ip"), address("__stop_orc_unwind_ip")
        self.count = (end - self.ips) // 4
        self.entries = address("__start_orc_unwind")
        self._known: dict[int, _Entry | None] = {}

    def callers(self, frame: Frame, *, framed: bool) -> list[int]:  # noqa: ARG002  (the tables have it)
        """Return return addresses."""
        pcs: list[int] = []
        with suppress(BadAddressError):  # the addresses found up to there are returned
            self._walk(frame, pcs)
        return pcs

    def _walk(self, frame: Frame, pcs: list[int]) -> None:
        load = self._engine.load
        ip, sp, bp = frame.register("rip"), frame.register("rsp"), frame.register("rbp")
        exact = True  # the ip is that of the next instruction, not of one after a call
        if ip in self.bare:
            ip, sp, exact = load(sp, _WORD), sp + _WORD, False
            pcs.append(ip)
        while len(pcs) < MOST:
            entry = self._entry(ip if exact else ip - 1)
            if entry is None or entry.type not in {CALL, REGS, REGS_PARTIAL}:
                return
            base = self._base(entry, sp, bp, frame.register if not pcs else None)
            if base is None:
                return
            frame_sp, frame_bp = base, bp
            if entry.type == CALL:
                ip, sp = load(base - _WORD, _WORD), base
            elif entry.type == REGS:
                ip, sp = load(base + _WORD * REGS_IP, _WORD), load(base + _WORD * REGS_SP, _WORD)
                bp = load(base + _WORD * REGS_BP, _WORD)
            else:
                ip, sp = load(base, _WORD), load(base + _WORD * IRET_SP, _WORD)
            if entry.bp_register == OrcRegister.PREV_SP:
                bp = load(frame_sp + entry.bp_offset, _WORD)
            elif entry.bp_register == OrcRegister.BP:
                bp = load(frame_bp + entry.bp_offset & WORD_MASK, _WORD)
            if not self._engine.isa.is_kernel_address(ip):
                return
            exact = entry.signal or entry.type != CALL
            pcs.append(ip)

    def _base(self, entry: _Entry, sp: int, bp: int, register: Callable[[str], int] | None) -> int | None:
        """Return the sp at the start of the caller's frame; None: unknown."""
        offset = entry.sp_offset
        match entry.sp_register:
            case OrcRegister.SP:
                return sp + offset
            case OrcRegister.BP:
                return bp + offset & WORD_MASK
            case OrcRegister.SP_INDIRECT:
                return self._engine.load(sp, _WORD) + offset
            case OrcRegister.BP_INDIRECT:
                return self._engine.load(bp + offset & WORD_MASK, _WORD)
            case number if number in _NAMED and register is not None:
                return register(_NAMED[OrcRegister(number)])
        return None

    def _entry(self, ip: int) -> _Entry | None:
        """Return the entry for an address: the last one that does not begin after it."""
        if ip in self._known:
            return self._known[ip]
        of_module = None if ip in self.text else self.modules.entry(ip)
        if of_module is not None:
            return _read(of_module)
        low, high = 0, self.count
        while low < high:
            middle = (low + high) // 2
            if self._ip(middle) <= ip:
                low = middle + 1
            else:
                high = middle
        found = None
        if low:
            found = _read(self._engine.read(self.entries + _ORC.size * (low - 1), _ORC.size))
        self._known[ip] = found
        return found

    def _ip(self, number: int) -> int:
        """Return an address of the table: each is an offset from its own address."""
        at = self.ips + 4 * number
        (distance,) = struct.unpack("<i", self._engine.read(at, 4))
        return at + int(distance)


def _read(entry: bytes) -> _Entry:
    sp, bp, rest = _ORC.unpack(entry)
    return _Entry(sp, bp, rest & 0xF, rest >> 4 & 0xF, rest >> 8 & 7, bool(rest >> 11 & 1))


def unwinder(engine: Engine, facts: KernelFacts, tasks: Tasks, modules: Modules, bare: range) -> Unwinder:
    """Return the unwinder for a kernel: ORC if it has the tables.

    `bare` are the addresses of functions that the kernel does not know, and that have no frames.
    """
    if facts.symbols.get("__start_orc_unwind_ip") is not None:
        return Orc(engine, facts, modules, bare)
    return FramePointers(engine, facts, tasks)
