"""Uprobes in machine code: the same as `returns` and `steps`, on the same words.

Each function is a step of a hit (`emu.engine.hits.hit_steps.Call`).  Python handles the other
cases, in which memory is out of reach or a probe was removed.

| function | effect |
| --- | --- |
| `hijack(installed)` | makes the function return to the trampoline (prepare_uretprobe) |
| `returned(space)` | handles a return to the trampoline (uprobe_handle_trampoline) |
| `begin(installed)` | runs the copy in its slot (pre_ssout) |
| `ended(installed)` | handles the breakpoint after a copy (handle_singlestep) |
| `debugged(0)` | handles x86's debug exception after a copy |
| `faulted(0)` | puts the thread back whose copy has faulted (arch_uprobe_abort_xol) |

Source: Linux 6.12 kernel/events/uprobes.c, arch/x86/kernel/uprobes.c.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Final

from emu.engine.hits.firing_code import ASK, GO_ON
from emu.engine.hits.tracepoint_blocks import Firing
from emu.engine.memory.access import Access
from emu.engine.state import HANDLED, Word
from emu.native.builder import Function, Module
from emu.native.link import Linked
from emu.native.operations import Condition, Value
from emu.support.immutable import immutable
from emu.support.plain import function_address
from providers.uprobes.records import InstalledWords, PendingReturn, ProbeWords, SpaceWords, TaskWords
from providers.uprobes.steps import TRAP_FLAG
from providers.uprobes.tasks import MAX_DEPTH, CurrentTask

if TYPE_CHECKING:
    from emu.guest.linux.kernel import Kernel
    from emu.isa.base import Isa
    from providers.uprobes.port import Port

# The name of the function's address for a return's handlers.
FUNCTION: Final = "%uprobe function"
_WORD: Final = 8
_PENDING: Final = ctypes.sizeof(PendingReturn)
_ASKED: Final = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64)


@immutable
class Asked:
    """Python functions that machine code calls; none of them lets an exception out."""

    switch: Callable[[int], int]
    """Returns the address of the current thread's `TaskWords`."""
    hijack: Callable[[int], int]
    """Makes a function return to the trampoline; by the address of `InstalledWords`."""
    gone: Callable[[int], int]
    """Notes that a probe has no references any more; by the address of its `ProbeWords`."""


class NativeUprobes:
    """The functions, linked for one kernel's engine: their addresses, by the names above."""

    def __init__(self, kernel: Kernel, port: Port, current: CurrentTask, asked: Asked) -> None:
        tracepoints, state = kernel.engine.tracepoints, kernel.engine.counter.address
        self._held = {name: _ASKED(getattr(asked, name)) for name in ("switch", "hijack", "gone")}
        symbols = {name: function_address(function) for name, function in self._held.items()}
        symbols = {f"ask_{name}": address for name, address in symbols.items()} | {
            "current": current.address,
            "fire": tracepoints.fire,
            "reach": tracepoints.reach,
            "function": tracepoints.temporary(FUNCTION),
            "env": kernel.engine.cpu.env,
            "thread": state + _WORD * Word.THREAD,
            "total": state + _WORD * Word.TOTAL,
        }
        self._linked = Linked(_machine_code(kernel.isa, by_flag=not port.step_trap, slot=port.slot), symbols)

    def address(self, name: str) -> int:
        """Return the address of a function."""
        return self._linked.address(name)


@cache
def _machine_code(isa: Isa, *, by_flag: bool, slot: int) -> bytes:
    """Return the functions as an object file."""
    return _Code(isa, by_flag=by_flag, slot=slot).module.compiled("uprobes")


class _Code:
    """Writes the functions into `module`.

    `by_flag`: the CPU steps by its trap flag; `slot`: the bytes of a copy's slot.
    """

    def __init__(self, isa: Isa, *, by_flag: bool, slot: int) -> None:
        self.module = Module()
        self._isa = isa
        self._slots = isa.registers.slots
        self._task = self._make_task()
        self._put = self._make_put()
        self._make_hijack()
        self._make_returned()
        self._make_begin(by_flag=by_flag)
        self._make_faulted(by_flag=by_flag, size=slot)
        if by_flag:
            self._make_debugged()
        else:
            self._make_ended()

    # -- registers and memory

    def _register(self, f: Function, name: str) -> Value:
        """Return the address of a register."""
        return f.add(self.module.symbol("env"), _WORD * self._slots[name])

    def _get(self, f: Function, name: str) -> Value:
        return f.load(self._register(f, name))

    def _pc(self, f: Function) -> Value:
        return self._register(f, self._isa.registers.pc)

    def _sp(self, f: Function) -> Value:
        return self._get(f, self._isa.registers.sp)

    def _flags(self, f: Function) -> Value:
        """Return the address of the trap flag's word."""
        assert self._isa.unicorn.trap_flag is not None, f"{self._isa.name} steps by a breakpoint"
        return f.add(self.module.symbol("env"), self._isa.unicorn.trap_flag)

    def _writable(self, f: Function, address: Value) -> Value:
        """Return the address in this process of memory for reading and writing; 0: out of reach."""
        address = f.and_(address, self._isa.address_mask)
        reach = self.module.symbol("reach")
        mapped, again = (f.call(reach, address, int(access)) for access in (Access.READ, Access.WRITE))
        return f.select(f.eq(mapped, again), mapped, 0)

    def _discount(self, f: Function) -> None:
        total = self.module.symbol("total")
        f.store(total, f.sub(f.load(total), 1))

    @staticmethod
    def _repetitions(f: Function, installed: Value, counter: Value) -> Value:
        """Return how many repetitions a string instruction still has."""
        return f.and_(f.load(counter), f.load(installed, InstalledWords.offset("mask")))

    # -- parts

    def _make_task(self) -> Function:
        """u64 task(): the address of the current thread's `TaskWords`."""
        f = self.module.function("task", 0, local=True)
        current = self.module.symbol("current")
        same = f.eq(f.load(self.module.symbol("thread")), f.load(current, CurrentTask.offset("thread")))
        f.ret_if(same, f.load(current, CurrentTask.offset("task")), likely=True)
        f.ret(f.call(self.module.symbol("ask_switch"), 0))
        return f

    def _make_put(self) -> Function:
        """u64 put(probe): give up a reference."""
        f = self.module.function("put", 1, local=True)
        (probe,) = f.parameters
        left = f.sub(f.load(probe, ProbeWords.offset("references")), 1)
        f.store(probe, left, ProbeWords.offset("references"))
        with f.when(f.eq(left, 0), likely=False):
            f.call(self.module.symbol("ask_gone"), probe)
        f.ret()
        return f

    @staticmethod
    def _keep(f: Function, probe: Value) -> None:
        """Take a reference."""
        f.store(probe, f.add(f.load(probe, ProbeWords.offset("references")), 1), ProbeWords.offset("references"))

    @staticmethod
    def _entry(f: Function, task: Value, index: Value) -> Value:
        """Return the address of the return with a number, from 1 on."""
        return f.add(f.load(task, TaskWords.offset("returns")), f.mul(f.sub(index, 1), _PENDING))

    # -- returns

    def _make_hijack(self) -> None:
        f = self.module.function("hijack", 2)
        installed, _core = f.parameters
        task = f.call(self._task)
        depth = f.variable(f.load(task, TaskWords.offset("depth")))
        f.ret_if(f.uge(depth.get(), MAX_DEPTH), GO_ON, likely=False)
        space = f.load(installed, InstalledWords.offset("space"))
        trampoline = f.load(space, SpaceWords.offset("trampoline"))
        self._unless(f, f.ne(trampoline, 0), installed)
        sp, link, word = self._sp(f), self._isa.registers.link, self._isa.word
        slot = self._writable(f, sp) if link is None else self._register(f, link)
        if link is None:
            self._unless(f, f.ne(slot, 0), installed)
        original = f.variable(f.load(slot, size=word))
        chained = f.eq(original.get(), trampoline)
        with f.loop() as loop:
            loop.leave_if(f.eq(depth.get(), 0))
            last = self._entry(f, task, depth.get())
            stack = f.load(last, PendingReturn.offset("stack"))
            alive = f.either(f.ult(sp, stack), f.both(chained, f.eq(sp, stack)))
            loop.leave_if(alive)
            depth.set(f.sub(depth.get(), 1))
            f.store(task, depth.get(), TaskWords.offset("depth"))
            f.call(self._put, f.load(last, PendingReturn.offset("probe")))
        f.ret_if(f.both(chained, f.eq(depth.get(), 0)), GO_ON, likely=False)
        f.store(slot, trampoline, size=word)
        with f.when(chained):
            last = self._entry(f, task, depth.get())
            original.set(f.load(last, PendingReturn.offset("original")))
        probe = f.load(installed, InstalledWords.offset("probe"))
        self._keep(f, probe)
        depth.set(f.add(depth.get(), 1))
        entered = self._entry(f, task, depth.get())
        content = {
            "probe": probe,
            "function": f.load(installed, InstalledWords.offset("at")),
            "stack": sp,
            "original": original.get(),
            "chained": f.flag(chained),
        }
        for name, value in content.items():
            f.store(entered, value, PendingReturn.offset(name))
        f.store(task, depth.get(), TaskWords.offset("depth"))
        f.ret(GO_ON)

    def _unless(self, f: Function, condition: Condition, installed: Value) -> None:
        """Let Python replace the return address unless a condition is true."""
        with f.when(f.fails(condition), likely=False):
            f.ret(f.call(self.module.symbol("ask_hijack"), installed))

    def _make_returned(self) -> None:
        f = self.module.function("returned", 2)
        _space, core = f.parameters
        task = f.call(self._task)
        sp, below = self._sp(f), f.ult if self._isa.registers.link else f.ule
        alive = f.variable(f.load(task, TaskWords.offset("depth")))
        f.ret_if(f.eq(alive.get(), 0), ASK, likely=False)
        left = f.variable(alive.get())
        with f.loop() as chains:
            with f.loop() as chain:
                last = self._entry(f, task, left.get())
                left.set(f.sub(left.get(), 1))
                chain.leave_if(f.eq(f.load(last, PendingReturn.offset("chained")), 0))
            chains.leave_if(f.eq(left.get(), 0))
            stack = f.load(self._entry(f, task, left.get()), PendingReturn.offset("stack"))
            chains.leave_if(below(sp, stack))
            alive.set(left.get())
        self._ask_unless_native(f, task, alive.get(), left.get())
        self._discount(f)
        depth = TaskWords.offset("depth")
        with f.loop() as loop:
            now = f.load(task, depth)
            loop.leave_if(f.ule(now, alive.get()))
            f.store(task, f.sub(now, 1), depth)
            f.call(self._put, f.load(self._entry(f, task, now), PendingReturn.offset("probe")))
        last = self._entry(f, task, alive.get())
        f.store(self._pc(f), f.load(last, PendingReturn.offset("original")))
        with f.loop() as loop:
            now = f.load(task, depth)
            loop.leave_if(f.ule(now, left.get()))
            last = self._entry(f, task, now)
            f.store(task, f.sub(now, 1), depth)
            probe = f.load(last, PendingReturn.offset("probe"))
            f.store(self.module.symbol("function"), f.load(last, PendingReturn.offset("function")))
            cursor = f.variable(f.load(probe, ProbeWords.offset("returns")))
            with f.loop() as firings:
                firing = f.load(cursor.get())
                firings.leave_if(f.eq(firing, 0))
                cursor.set(f.add(cursor.get(), _WORD))
                f.ret_if(f.eq(f.call(self.module.symbol("fire"), firing, core), 0), HANDLED, likely=False)
            f.call(self._put, probe)
        f.ret(HANDLED)

    def _ask_unless_native(self, f: Function, task: Value, alive: Value, left: Value) -> None:
        """Leave the return to Python if any of its handlers is in Python.

        The returns are those from `alive` down to `left`, which is not among them.
        """
        index = f.variable(alive)
        with f.loop() as loop:
            loop.leave_if(f.eq(index.get(), left))
            entry = self._entry(f, task, index.get())
            probe = f.load(entry, PendingReturn.offset("probe"))
            f.ret_if(f.eq(f.load(probe, ProbeWords.offset("known")), 0), ASK, likely=False)
            at = f.variable(f.load(probe, ProbeWords.offset("returns")))
            with f.loop() as firings:
                firing = f.load(at.get())
                firings.leave_if(f.eq(firing, 0))
                at.set(f.add(at.get(), _WORD))
                count = f.load(f.load(firing, Firing.offset("runs")))
                f.ret_if(f.eq(count, 0), ASK, likely=False)
            index.set(f.sub(index.get(), 1))

    # -- steps

    def _make_begin(self, *, by_flag: bool) -> None:
        f = self.module.function("begin", 2)
        installed, _core = f.parameters
        task = f.call(self._task)
        self._keep(f, f.load(installed, InstalledWords.offset("probe")))
        scratch = f.load(installed, InstalledWords.offset("scratch"))
        with f.when(f.ne(scratch, 0)):
            f.store(task, f.load(scratch), TaskWords.offset("saved"))
            f.store(scratch, f.load(installed, InstalledWords.offset("after")))
        f.store(self._pc(f), f.load(installed, InstalledWords.offset("slot")))
        if by_flag:
            flags = self._flags(f)
            f.store(task, f.and_(f.load(flags), TRAP_FLAG), TaskWords.offset("flags"))
            f.store(flags, f.or_(f.load(flags), TRAP_FLAG))
            repetitions, counter = f.variable(0), f.load(installed, InstalledWords.offset("counter"))
            with f.when(f.ne(counter, 0), likely=False):
                repetitions.set(self._repetitions(f, installed, counter))
            f.store(task, repetitions.get(), TaskWords.offset("repetitions"))
        self._discount(f)
        f.store(task, installed, TaskWords.offset("step"))
        f.ret(HANDLED)

    def _make_ended(self) -> None:
        f = self.module.function("ended", 2)
        installed, _core = f.parameters
        task = f.call(self._task)
        f.ret_if(f.ne(f.load(task, TaskWords.offset("step")), installed), ASK, likely=False)
        self._discount(f)
        f.store(self._pc(f), f.load(installed, InstalledWords.offset("after")))
        self._end(f, task, installed)

    def _make_debugged(self) -> None:
        """Correct the flags, the pc, and the pushed word, as `Steps` does."""
        f = self.module.function("debugged", 2)
        task = f.call(self._task)
        installed = f.load(task, TaskWords.offset("step"))
        f.ret_if(f.eq(installed, 0), ASK, likely=False)
        # If the trap flag is the program's own, too, Python sends it a signal.
        f.ret_if(f.ne(f.load(task, TaskWords.offset("flags")), 0), ASK, likely=False)
        pc, slot = f.load(self._pc(f)), f.load(installed, InstalledWords.offset("slot"))
        at, after = (f.load(installed, InstalledWords.offset(name)) for name in ("at", "after"))
        # Inside the copy itself Python corrects the count.
        inside = f.both(f.ugt(pc, slot), f.ult(f.sub(pc, slot), f.sub(after, at)))
        f.ret_if(inside, ASK, likely=False)
        counter = f.load(installed, InstalledWords.offset("counter"))
        with f.when(f.ne(counter, 0), likely=False):
            last = f.both(
                f.ne(f.load(task, TaskWords.offset("repetitions")), 0),
                f.eq(self._repetitions(f, installed, counter), 0),
            )
            with f.when(last):
                # Python computes the flags.
                f.ret_if(f.ne(f.load(installed, InstalledWords.offset("compares")), 0), ASK)
                # No step finds that no repetition is left; without steps that counts (`Steps._count`).
                total = self.module.symbol("total")
                f.store(total, f.add(f.load(total), 1))
        calls, pushes, pops = (
            f.load(installed, InstalledWords.offset(name)) for name in ("calls", "pushes_flags", "pops_flags")
        )
        changes = f.either(f.ne(calls, 0), f.ne(pushes, 0))
        with f.when(changes, likely=False):
            top = self._writable(f, self._sp(f))
            f.ret_if(f.eq(top, 0), ASK, likely=False)
            with f.when(f.ne(calls, 0)):
                f.store(top, after, size=self._isa.word)
            with f.when(f.eq(calls, 0)):
                f.store(top, f.and_(f.load(top, size=2), ~TRAP_FLAG), size=2)
        with f.when(f.eq(pops, 0)):
            self._restore_trap_flag(f, task)
        absolute = f.load(installed, InstalledWords.offset("absolute"))
        f.store(self._pc(f), f.select(f.ne(absolute, 0), pc, f.add(pc, f.sub(at, slot))))
        self._end(f, task, installed)

    def _restore_trap_flag(self, f: Function, task: Value) -> None:
        """Make the trap flag what it was before the step."""
        flags = self._flags(f)
        f.store(flags, f.or_(f.and_(f.load(flags), ~TRAP_FLAG), f.load(task, TaskWords.offset("flags"))))

    def _make_faulted(self, *, by_flag: bool, size: int) -> None:
        """Abort a step, as `Steps.faulted` does."""
        f = self.module.function("faulted", 2)
        task = f.call(self._task)
        installed = f.load(task, TaskWords.offset("step"))
        f.ret_if(f.eq(installed, 0), ASK, likely=False)
        behind = f.sub(f.load(self._pc(f)), f.load(installed, InstalledWords.offset("slot")))
        f.ret_if(f.uge(behind, size), ASK, likely=False)
        if by_flag:
            self._restore_trap_flag(f, task)
        f.store(self._pc(f), f.load(installed, InstalledWords.offset("at")))
        self._end(f, task, installed)

    def _end(self, f: Function, task: Value, installed: Value) -> None:
        """Note that the thread does not step any more."""
        f.store(task, 0, TaskWords.offset("step"))
        scratch = f.load(installed, InstalledWords.offset("scratch"))
        with f.when(f.ne(scratch, 0)):
            f.store(scratch, f.load(task, TaskWords.offset("saved")))
        f.call(self._put, f.load(installed, InstalledWords.offset("probe")))
        f.ret(HANDLED)
