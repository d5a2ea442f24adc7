"""Stacks of the kernel at a probe, in Python and in machine code.

At a breakpoint of FBT or SDT Python determines once how the displaced instruction at a pc changes
the frame, and stores this in a table for machine code (`KernelStacks.known`); for a pc that is not
in the table Python walks the stack.  At a probe that the kernel itself calls, all is in registers.

Source: FreeBSD sys/cddl/dev/dtrace/*/dtrace_isa.c, dtrace_getpcstack().
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Final

from emu.displaced.cpu_core import CoreWord, CpuCore
from emu.displaced.plans import Plan, Store, takes_frame_back
from emu.engine.engine import Engine
from emu.engine.hits.tracepoint_blocks import Firing
from emu.guest.kernel.introspection import Introspection
from emu.isa.base import Isa
from emu.native.builder import Callee, Function, Variable
from emu.native.operations import Condition, Value, Word
from emu.probe.patcher import Patcher
from emu.probe.trap_frames import LiveFrame
from emu.support.plain import address_of, words
from emu.support.words import WORD_MASK

# The number of pcs that machine code knows, a power of two: no two addresses of a kernel's text have the same low bits.
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
            offset = self._link_offset(pc)
            calling = self._isa.calling
            if offset is not None and frame.register(registers.sp) + offset == pointer + calling.frame_return:
                pointer = self._engine.load(pointer + calling.frame_next, self._isa.word)
        return pcs + self._chain(pointer)

    def _remember(self, pc: int) -> None:
        """Store the facts about a pc for machine code."""
        at = (pc & KNOWN - 1) * len(KnownWord)
        if self.known[at] != pc:
            offset = self._link_offset(pc)
            self.known[at + KnownWord.FRAMED] = takes_frame_back(self._displaced(pc), self._isa.registers.fp)
            self.known[at + KnownWord.LINK] = NO_LINK if offset is None else offset & WORD_MASK
            self.known[at] = pc

    def _link_offset(self, pc: int) -> int | None:
        """Return the offset from sp where the displaced instruction at pc saves the link register.

        None if it does not.
        """
        plan = self._displaced(pc)
        link, sp = self._isa.registers.link, self._isa.registers.sp
        saves = (op for op in plan.operations if isinstance(op, Store)) if plan and link else ()
        return next((op.offset for op in saves if (op.source, op.base) == (link, sp)), None)

    def _displaced(self, pc: int) -> Plan | None:
        """Return the decision of the instruction at pc, if a breakpoint may displace it."""
        if pc not in self._plans:
            self._plans[pc] = self._isa.stub.plan(self._patcher.original(pc, 8), pc)
        return self._plans[pc]


_WORD: Final = 8
_ENTRY: Final = _WORD * len(KnownWord)
_UNKNOWN: Final = WORD_MASK


class StackCode:
    """Writes the function `kernel_callers(buffer, limit)`.

    It writes the pcs of the probed function's callers, at most `limit`, to a buffer in this
    process, and returns their number; all ones: Python must find them.
    """

    def __init__(self, isa: Isa, stacks: KernelStacks, introspection: Introspection) -> None:
        self._isa = isa
        self._stacks = stacks
        self._current = introspection.current
        self._offset = introspection.offset

    @property
    def symbols(self) -> dict[str, int]:
        """The address of the table."""
        return {"known_pcs": address_of(self._stacks.known)}

    def write(self, f: Function, _slow: Callable[[], Word]) -> None:
        """Write the function."""
        registers, calling, word = self._isa.registers, self._isa.calling, self._isa.word
        buffer, limit = f.parameters
        core = f.module.symbol("core")
        firing = f.load(core, _WORD * CoreWord.FIRING)
        with f.when(f.eq(firing, 0)):
            self._in_call(f, buffer, limit)
        pc = self._register(f, registers.pc)
        self._python_if(f, f.ult(pc, self._isa.kernel_start))
        entry = f.add(f.module.symbol("known_pcs"), f.mul(f.and_(pc, KNOWN - 1), _ENTRY))
        self._python_if(f, f.ne(f.load(entry, _WORD * KnownWord.PC), pc))
        count, pointer = f.variable(0), f.variable(self._register(f, registers.fp))
        framed = f.or_(
            f.load(firing, Firing.offset("framed")),
            f.load(entry, _WORD * KnownWord.FRAMED),
        )
        with f.when(f.both(f.eq(framed, 0), f.ne(limit, 0))):
            sp = self._register(f, registers.sp)
            if registers.link is None:
                pushed = f.mul(f.load(firing, Firing.offset("pushed")), word)
                caller = self._load(f, f.add(sp, pushed))
            else:
                caller = self._register(f, registers.link)
            f.store(buffer, caller)
            count.set(1)
            link = f.load(entry, _WORD * KnownWord.LINK)
            saves = f.both(
                f.ne(link, NO_LINK),
                f.eq(f.add(sp, link), f.add(pointer.get(), calling.frame_return)),
            )
            with f.when(saves):
                pointer.set(self._load(f, f.add(pointer.get(), calling.frame_next)))
        self._chain(f, buffer, limit, count, pointer, f.variable(0))

    def _in_call(self, f: Function, buffer: Word, limit: Word) -> None:
        """Return the callers of a probe that the kernel calls, without the frames that it omits."""
        registers = self._isa.registers
        called = f.load(f.module.symbol("core"), _WORD * CoreWord.CALLED)
        self._python_if(f, f.eq(called, 0))
        frames = f.load(called, Firing.offset("frames"))
        count, omitted = f.variable(0), f.variable(0)
        with f.when(f.ne(frames, 0)):
            omitted.set(f.sub(frames, 1))
            link = registers.link
            caller = self._load(f, self._register(f, registers.sp)) if link is None else self._register(f, link)
            self._put(f, buffer, limit, count, omitted, caller)
        self._chain(f, buffer, limit, count, f.variable(self._register(f, registers.fp)), omitted)

    def _put(self, f: Function, buffer: Word, limit: Word, count: Variable, omitted: Variable, pc: Word) -> None:
        """Write a pc to the buffer, if it has space, and none is left to omit."""
        with f.choice(f.ne(omitted.get(), 0)) as (omit, keep):
            with omit:
                omitted.set(f.sub(omitted.get(), 1))
            with keep, f.when(f.ult(count.get(), limit)):
                f.store(f.add(buffer, f.shl(count.get(), 3)), pc)
                count.set(f.add(count.get(), 1))

    def _chain(
        self, f: Function, buffer: Word, limit: Word, count: Variable, pointer: Variable, omitted: Variable
    ) -> None:
        """Follow the frame pointers, as `Introspection.kernel_chain` does."""
        calling, word = self._isa.calling, self._isa.word
        thread = self._load(f, self._current)
        with f.when(f.eq(thread, 0), likely=False):
            f.ret(count.get())
        low = self._load(f, f.add(thread, self._offset["TD_KSTACK"]))
        high = f.add(low, self._load(f, f.add(thread, self._offset["TD_KSTACK_SIZE"])))
        with f.loop() as loop:
            frame = pointer.get()
            loop.leave_if(f.uge(count.get(), limit))
            loop.leave_if(f.ult(frame, low))  # a frame pointer of 0 would wrap around in the next line
            loop.leave_if(f.ult(f.add(frame, min(calling.frame_next, 0)), low))
            loop.leave_if(f.ugt(f.add(frame, word), high))
            pc = self._load(f, f.add(frame, calling.frame_return))
            loop.leave_if(f.ult(pc, self._isa.kernel_start))
            is_frame = f.both(f.uge(pc, low), f.ult(pc, high))
            following = f.variable(pc)
            with f.when(f.fails(is_frame), likely=True):
                self._put(f, buffer, limit, count, omitted, pc)
                following.set(self._load(f, f.add(frame, calling.frame_next)))
            loop.leave_if(f.ule(following.get(), frame))
            pointer.set(following.get())
        f.ret(count.get())

    def _register(self, f: Function, name: str) -> Value:
        return f.load(f.module.symbol("cpu_words"), _WORD * self._isa.registers.slots[name])

    def _load(self, f: Function, address: Word) -> Value:
        mapped = f.call(Callee("kernel_pointer"), address, self._isa.word)
        self._python_if(f, f.eq(mapped, 0))
        return f.load(mapped, size=self._isa.word)

    @staticmethod
    def _python_if(f: Function, condition: Condition) -> None:
        with f.when(condition, likely=False):
            f.ret(_UNKNOWN)
