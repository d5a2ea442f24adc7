"""Stacks of the kernel at a probe.

Source: FreeBSD sys/cddl/dev/dtrace/*/dtrace_isa.c, dtrace_getpcstack().
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from emu.displaced.cpu_core import CpuCore
from emu.displaced.plans import Plan, Store, takes_frame_back
from emu.engine.engine import Engine
from emu.guest.kernel.introspection import Introspection
from emu.probe.patcher import Patcher
from emu.probe.trap_frames import LiveFrame
from emu.support.plain import words
from emu.support.words import WORD_MASK

# The number of pcs that machine code knows, a power of two: no two places of a kernel's text have the same low bits.
KNOWN: Final = 1 << 18
# An instruction that does not save the link register.
NO_LINK: Final = 1 << 63


class KnownWord(IntEnum):
    """The data of a pc for machine code."""

    PC = 0
    FRAMED = 1
    """1 if the instruction there removes the function's frame, which is therefore complete."""
    LINK = 2
    """The offset from sp at which the instruction saves the link register, or `NO_LINK`."""


class KernelStacks:
    """Walks the kernel stack of the current thread."""

    def __init__(self, engine: Engine, core: CpuCore, introspection: Introspection, patcher: Patcher) -> None:
        self._engine = engine
        self._isa = engine.isa
        self._core = core
        self._chain = introspection.kernel_chain
        self._patcher = patcher
        self._live = LiveFrame(engine)
        self._plans: dict[int, Plan | None] = {}
        self.known = words(KNOWN * len(KnownWord))
        """By the low bits of pcs: `KnownWord`, of those at which a stack was asked for."""

    def pcs(self, probe_frames: int | None) -> list[int]:
        """Return the kernel pcs of the interrupted context, innermost first.

        `probe_frames` is the number of frames that belong to a probe which the kernel itself calls;
        None: the probe is not such a call.  At a breakpoint of FBT the frame of the probed function
        does not exist (yet, or any more): its caller is in the link register or on the stack, and
        the frame pointer is the caller's.  There are two exceptions.  RISC-V compilers may set the
        frame pointer before they save ra, and the displaced instruction is the one that saves it:
        the frame exists, but without its ra.  On i386 the return site is the instruction that
        removes the frame, which is still complete.
        """
        core, registers = self._core, self._isa.registers
        frame = core.trapframe
        source = frame or self._live
        pc = source.register(registers.pc)
        if not self._isa.is_kernel_address(pc):
            return []
        pointer = source.register(registers.fp)
        if probe_frames is not None:
            if frame is not None:  # a trap in the middle of a function
                return [pc, *self._chain(pointer)[probe_frames:]]
            caller = source.stack_word(0) if registers.link is None else source.register(registers.link)
            return [pc, *[caller, *self._chain(pointer)][probe_frames:]]
        self._remember(pc)
        pcs = [pc]
        if frame is not None and not core.framed and not takes_frame_back(self._displaced(pc), self._isa.registers.fp):
            pcs.append(frame.stack_word(core.pushed) if registers.link is None else frame.register(registers.link))
            place = self._link_place(pc)
            calling = self._isa.calling
            if place is not None and frame.register(registers.sp) + place == pointer + calling.frame_return:
                pointer = self._engine.load(pointer + calling.frame_next, self._isa.word)
        return pcs + self._chain(pointer)

    def _remember(self, pc: int) -> None:
        """Store the facts about a pc for machine code."""
        at = (pc & KNOWN - 1) * len(KnownWord)
        if self.known[at] != pc:
            place = self._link_place(pc)
            self.known[at + KnownWord.FRAMED] = takes_frame_back(self._displaced(pc), self._isa.registers.fp)
            self.known[at + KnownWord.LINK] = NO_LINK if place is None else place & WORD_MASK
            self.known[at] = pc

    def _link_place(self, pc: int) -> int | None:
        """Return the offset from sp where the displaced instruction at pc saves the link register.

        None if it does not.
        """
        plan = self._displaced(pc)
        link, sp = self._isa.registers.link, self._isa.registers.sp
        saves = (op for op in plan.operations if isinstance(op, Store)) if plan and link else ()
        return next((op.offset for op in saves if (op.source, op.base) == (link, sp)), None)

    def _displaced(self, pc: int) -> Plan | None:
        """Return the treatment of the instruction at pc, if a breakpoint may displace it."""
        if pc not in self._plans:
            self._plans[pc] = self._isa.stub.plan(self._patcher.original(pc, 8), pc)
        return self._plans[pc]
