"""Calls of functions of a stopped kernel, and functions of Trapline that the kernel calls.

`call` needs a CPU that has stopped where functions may be called that sleep: at the entry of a
function such as `finalize_exec`, in the context of a process.  The registers are set as for a call,
with the address of a breakpoint as the return address; the kernel runs, also other processes if the
function sleeps, until it hits the breakpoint; then the registers are restored.

Two entries are known as such places: of `begin_new_exec`, in each exec, and of `driver_init`, which
the first process calls.  If the kernel has not run since it is a guest, it runs to the first: a
shell is about to execute a command there.

If the CPU has stopped elsewhere, a worker of the kernel makes the calls: at the end of the next
interrupt a work item is queued, and the machine runs until a worker executes it.  An interrupt is
only taken where no lock is held that `queue_work_on()` needs.

`callback` is the address of a function.  A breakpoint in it calls Python, which decides what it
returns.  `equal` is the address of a function that compares its second argument with the word at
`KEY` of the structure to which its first argument points.

Source: Linux 6.12 kernel/workqueue.c (queue_work_on: it may be called in any context),
kernel/softirq.c (irq_exit_rcu), include/linux/workqueue_types.h (struct work_struct), fs/exec.c
(begin_new_exec), init/main.c (do_basic_setup).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from enum import Enum, auto
from errno import errorcode
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from emu.displaced.frame import Frame
from emu.displaced.plans import Set
from emu.engine.hits.hit_steps import HitStep, Run
from emu.engine.time.clock import NANOSECONDS
from emu.guest.linux_kernel.platforms.boards import BOARDS
from emu.probe.trap import Hit, Served
from emu.support.words import WORD_MASK

if TYPE_CHECKING:
    from emu.engine.engine import Engine
    from emu.guest.linux_kernel.executable import ExecutableMemory
    from emu.guest.linux_kernel.files.facts import KernelFacts
    from emu.guest.linux_kernel.machine.machine import LinuxKernelMachine
    from emu.guest.linux_kernel.tasks import Tasks
    from emu.isa.base import Isa
    from emu.probe.patcher import Patcher
    from emu.probe.trap import TrapHandler

KEY: Final = 64
_OWNER: Final = "kernel calls"
_STACK_ALIGNMENT: Final = 16
# Error numbers that a kernel's function returns are below this (MAX_ERRNO).
_MOST_ERRNO: Final = 4095
# The names of include/linux/errno.h.
_OWN_ERRORS: Final = {524: "ENOTSUPP"}
# A function that sleeps for some milliseconds.
_SLEEP: Final = "msleep"
# The function at the end of every interrupt.
_INTERRUPT_ENDS: Final = "irq_exit_rcu"
# Functions at whose entries a process may sleep, and holds no lock but that of its credentials; the kernel is run to
# the first.
_PROGRAM_BEGINS: Final = "begin_new_exec"
_MAY_SLEEP: Final = (_PROGRAM_BEGINS, "driver_init")
# struct work_struct: data (0: not queued), a list, a function.
_WORK: Final = struct.Struct("<QQQQ")
_LIST: Final = 8
_POINTER: Final = 8
# Virtual time in which a worker must run.
_PATIENCE: Final = 10 * NANOSECONDS


class KernelCallError(Exception):
    """A function of the kernel cannot be called; the message says why."""


class Kernel(Protocol):
    """The kernel whose functions are called, as `LinuxKernelGuest` is one."""

    isa: Isa
    engine: Engine
    machine: LinuxKernelMachine
    facts: KernelFacts
    tasks: Tasks
    traps: TrapHandler
    patcher: Patcher
    executable: ExecutableMemory
    work: range
    """Memory for a struct work_struct."""
    began: int
    """The number of instructions when it became a guest."""

    def store(self, address: int, data: bytes) -> None:
        """Write memory.  Raises `emu.support.words.BadAddressError`."""
        ...


class _Context(NamedTuple):
    """The registers of a task before a call."""

    pc: int
    flags: int
    registers: dict[str, int]
    sp: int
    """The stack pointer with which the call returns."""


class Answer(Enum):
    """What `callback` does."""

    ZERO = auto()
    """The callback returns 0."""
    ONE = auto()
    """The callback returns 1."""
    AGAIN = auto()
    """The CPU reaches this call again when the machine continues."""


def error_of(result: int) -> int:
    """Return the error number in a result, as an int or a pointer; 0: none."""
    for bits in (64, 32):
        number = -(result & (1 << bits) - 1) & (1 << bits) - 1
        if 0 < number <= _MOST_ERRNO:
            return number
    return 0


def error_name(number: int) -> str:
    """Return the name of an error number of the kernel, which has some that programs never see."""
    return _OWN_ERRORS.get(number) or errorcode.get(number, str(number))


class KernelCalls:
    """Calls into one kernel, and from it."""

    def __init__(self, guest: Kernel) -> None:
        """Write the code.  Raises `emu.guest.linux_kernel.executable.NoSpaceError`."""
        self._guest = guest
        self.called: Callable[[int, int], Answer] = lambda _first, _second: Answer.ZERO
        """Takes the two arguments of each call of `callback`."""
        code = BOARDS[guest.isa.name].callback
        self._back = self._written(code.nop)
        self._working = self._written(code.landing + code.nop + code.zero)
        self.callback = self._written(code.landing + code.nop + code.zero + code.one)
        """The address of the function that the kernel may call."""
        self.equal = self._written(code.landing + code.equal)
        """The address of the function that compares."""
        self.met = self.callback + len(code.landing)
        """The address of the breakpoint in `callback`."""
        self.zero = self.met + len(code.nop)
        """The address of its code that returns 0."""
        self.one = self.zero + len(code.zero)
        """The address of its code that returns 1."""
        self._worked = self._working + len(code.landing)
        self._nop = len(code.nop)
        self._returned: set[int] = set()
        """The stack pointers with which calls have returned."""
        self._parked: dict[int, tuple[_Context, Callable[[], object]]] = {}
        """The tasks that sleep, by their stack pointers, with what is called when they continue."""
        self._wants_worker = False
        self._watched: set[str] = set()
        """The functions whose entries are watched."""
        self._awaited: str | None = None
        """The one at whose entry the machine is to stop."""
        entries = map(guest.facts.symbols.get, _MAY_SLEEP)
        self._may_sleep = {symbol.value for symbol in entries if symbol is not None}
        self._place: tuple[int, int] | None = None
        """Where the CPU has stopped, pc and instruction count, if functions may be called there."""
        for address in (self._back, self._worked, self.met):
            patch = next(one for one in reversed(guest.isa.traps.breakpoints) if len(one) <= len(code.nop))
            guest.patcher.install(guest.patcher.create(address, patch, _OWNER))
        self.serving: Callable[[], HitStep | None] = lambda: None
        """Returns the step by which machine code serves calls of `callback`, and returns 0; None:
        Python serves them."""
        guest.traps.add(self._invop, self._describe)
        general = set(guest.isa.registers.slots) - {guest.isa.registers.pc}
        self._registers = [name for name in guest.tasks.abi.pt_regs if name in general]

    def _written(self, content: bytes) -> int:
        address = self._guest.executable.take(len(content))
        self._guest.executable.fill(address, content)
        return address

    def _invop(self, address: int, frame: Frame, _extra: int) -> int:
        if address == self._back:
            sp = frame.register(self._guest.isa.registers.sp)
            if sp in self._parked:
                self._guest.machine.pause(lambda _nested: self._resume(sp))
                frame.go_to(address)
                return 1
            self._returned.add(sp)
        elif address == self._worked:
            self._wants_worker = False
        elif address == self.met:
            answer = self.called(*frame.arguments()[:2])
            frame.go_to({Answer.ZERO: self.zero, Answer.ONE: self.one}.get(answer, address))
            return 1
        else:
            return 0
        self._guest.machine.interrupt()
        frame.go_to(address)
        return 1

    def _describe(self, address: int) -> Hit | Served | None:
        """Describe a hit for machine code."""
        if address not in {self._back, self._worked, self.met}:
            return None
        step = self.serving() if address == self.met else None
        if step is None:
            return Served.PYTHON
        return Hit((step, Run((Set(self._guest.isa.registers.pc, "", self.zero),))))

    def _resume(self, sp: int) -> None:
        """Continue a task that was parked."""
        context, resumed = self._parked.pop(sp)
        self._restore(context)
        resumed()

    def here(self) -> None:
        """Note that functions may be called where the CPU has stopped."""
        self._place = self._guest.engine.pc, self._guest.engine.instructions

    def call(self, name: str, *arguments: int) -> int:
        """Call a function of the kernel; return its result.

        Raises `KernelCallError` if the kernel has no such function, or is switched off, and
        `emu.guest.linux_kernel.errors.LinuxKernelError`.
        """
        if self._guest.facts.symbols.get(name) is None:
            raise KernelCallError(f"this kernel has no function {name}()")
        if not self._is_callable():
            self._go_to_process()
        result = self._call(name, *arguments)
        self.here()
        return result

    def _call(self, name: str, *arguments: int) -> int:
        guest = self._guest
        context = self._begin(name, arguments)
        while context.sp not in self._returned:
            if guest.machine.off:
                raise KernelCallError("the kernel is switched off")
            guest.machine.run(None)
        self._returned.discard(context.sp)
        result = guest.engine.read_register(guest.isa.calling.results[0])
        self._restore(context)
        return result

    def _begin(self, name: str, arguments: Sequence[int]) -> _Context:
        """Set the registers for a call; return what they were."""
        engine, isa = self._guest.engine, self._guest.isa
        kept = {one: engine.read_register(one) for one in self._registers}
        flags = engine.read_register(isa.traps.flags) if isa.traps.flags else 0
        sp = kept[isa.registers.sp] & -_STACK_ALIGNMENT
        context = _Context(engine.pc, flags, kept, sp)
        for register, value in zip(isa.calling.arguments, arguments, strict=False):
            engine.write_register(register, value & WORD_MASK)
        if isa.registers.link:
            engine.write_register(isa.registers.link, self._back)
        else:
            sp -= isa.word
            engine.store(sp, isa.word, self._back)
        engine.write_register(isa.registers.sp, sp)
        engine.pc = self._guest.facts.symbols.address(name)
        return context

    def _restore(self, context: _Context) -> None:
        engine, isa = self._guest.engine, self._guest.isa
        for register, value in context.registers.items():
            engine.write_register(register, value)
        if isa.traps.flags:
            engine.write_register(isa.traps.flags, context.flags)
        engine.pc = context.pc

    def park(self, resumed: Callable[[], object]) -> None:
        """Let the current task sleep where the CPU has stopped, and call `resumed` there later.

        Functions may be called there, but another call has not returned.
        """
        context = self._begin(_SLEEP, (1,))
        self._parked[context.sp] = context, resumed

    # -- where functions may be called

    def _is_callable(self) -> bool:
        """Return whether functions may be called where the CPU has stopped."""
        engine = self._guest.engine
        return engine.pc in self._may_sleep or self._place == (engine.pc, engine.instructions)

    def _go_to_process(self) -> None:
        """Run the kernel to where functions may be called.  Raises `KernelCallError`."""
        guest = self._guest
        limit = guest.machine.clock.now() + _PATIENCE
        if guest.engine.instructions != guest.began or not self._run_to(_PROGRAM_BEGINS, limit):
            self._go_to_worker()

    def _go_to_worker(self) -> None:
        """Run the kernel until one of its workers executes a work item of ours.

        Raises `KernelCallError`.
        """
        machine, engine = self._guest.machine, self._guest.engine
        limit = machine.clock.now() + _PATIENCE
        self._wants_worker = True
        if self._run_to(_INTERRUPT_ENDS, limit):
            self._queue()
            self._run(limit, until=lambda: not self._wants_worker)
        if self._wants_worker:
            self._wants_worker = False
            raise KernelCallError("the kernel is switched off" if machine.off else "no worker of the kernel runs")
        engine.pc = self._worked + self._nop

    def _run_to(self, function: str, limit: int) -> bool:
        """Run to the next call of a function of the kernel; return whether there was one."""
        guest = self._guest
        symbol = guest.facts.symbols.get(function)
        if symbol is None:
            return False
        if function not in self._watched:
            self._watched.add(function)
            guest.engine.code.on_code(symbol.value, lambda: self._enters(function))
            physical = guest.engine.memory.translate(symbol.value)
            if physical is not None:
                guest.engine.code.forget(physical, 1)
        self._awaited = function
        self._run(limit, until=lambda: self._awaited is None)
        return self._awaited is None

    def _run(self, limit: int, until: Callable[[], bool]) -> None:
        machine = self._guest.machine
        while not (until() or machine.off or machine.clock.now() >= limit):
            machine.run(limit, until)

    def _enters(self, function: str) -> None:
        if self._awaited == function:
            self._awaited = None
            self._guest.engine.stop()

    def _queue(self) -> None:
        guest = self._guest
        work, symbols = guest.work.start, guest.facts.symbols
        guest.store(work, _WORK.pack(0, work + _LIST, work + _LIST, self._working))
        self._call("queue_work_on", 0, guest.engine.load(symbols.address("system_wq"), _POINTER), work)
