"""A Linux kernel, for the D framework and the providers.  Implements `emu.guest.base.Guest`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

from emu.displaced.frame import Frame
from emu.elf.source.inlined import Source, SourceFrame
from emu.engine.hits.plan_encoding import Window
from emu.engine.state import DELIVER, HANDLED
from emu.guest.base import Abilities, Location, RunState, Thread
from emu.guest.kernel_memory import KernelMemory
from emu.guest.linux_kernel.executable import ExecutableMemory
from emu.guest.linux_kernel.files.btf import BtfError
from emu.guest.linux_kernel.files.debug_file import kernel_source
from emu.guest.linux_kernel.files.facts import KernelFacts
from emu.guest.linux_kernel.kernel_calls import KernelCalls
from emu.guest.linux_kernel.machine.machine import LinuxKernelMachine
from emu.guest.linux_kernel.modules import Modules
from emu.guest.linux_kernel.platforms.platform import EPOCH
from emu.guest.linux_kernel.program_cpu import ProgramCpu, ProgramFrame
from emu.guest.linux_kernel.programs import Programs
from emu.guest.linux_kernel.stack.walk import unwinder
from emu.guest.linux_kernel.tasks import Tasks
from emu.guest.timers import Timers
from emu.probe.host_trap import HostTrap
from emu.probe.patcher import Patcher
from emu.probe.trap import TrapHandler
from emu.probe.trap_frames import LiveFrame
from emu.support.words import BadAddressError

if TYPE_CHECKING:
    from emu.native.guest import GuestCode

MODULE: Final = "kernel"
# Room for a struct work_struct.
_WORK: Final = 64


class UserRegisters:
    """The registers with which a thread left user mode, by name."""

    def __init__(self, values: dict[str, int]) -> None:
        self._values = values

    def register(self, name: str) -> int:
        """Return a register.  Raises KeyError for one that is not available."""
        return self._values[name]


class LinuxKernelTraps(HostTrap):
    """Takes the exceptions of one kernel's machine."""

    def __init__(self, machine: LinuxKernelMachine, traps: TrapHandler, patcher: Patcher) -> None:
        super().__init__(machine.engine, traps, patcher, lowest=machine.isa.kernel_start)
        self._machine = machine

    def faulted(self, address: int, error: BadAddressError) -> int:
        """End the run.  Raises `LinuxKernelError`."""
        raise self._machine.error(f"the instruction displaced at {address:#x} met an {error}")

    def trap(self, number: int) -> int:
        """Take an exception for the firmware."""
        return HANDLED if self._machine.board.trap(number) else DELIVER


class LinuxKernelGuest(KernelMemory):
    """A Linux kernel whose machine has booted, as the D framework and the providers read it."""

    cpu = 0

    def __init__(self, machine: LinuxKernelMachine, traps: TrapHandler | None = None) -> None:
        """`traps` is the chain of handlers, if not a new one."""
        self.machine = machine
        self.isa = machine.isa
        self.engine = machine.engine
        self.clock = machine.clock
        self.now: Callable[[], int] = machine.clock.now
        """Returns virtual nanoseconds since power on."""
        self.timers = Timers()
        self.facts: KernelFacts = machine.facts
        self.began = machine.engine.instructions
        """The number of instructions when it became a guest."""
        self.tasks = Tasks(self.engine, self.facts)
        self.modules = Modules(self.engine, self.facts)
        self.traps = traps or TrapHandler()
        self.patcher = Patcher(self.engine)
        self.live = LiveFrame(self.engine)
        scratch, linear = machine.board.scratch, self.isa.kernel_base
        half = (scratch.start + scratch.stop) // 2
        self.scratch = range(linear + scratch.start, linear + half - _WORK)
        """Kernel memory that the kernel leaves alone, by virtual addresses."""
        self.work = range(self.scratch.stop, linear + half)
        """The same for a struct work_struct."""
        self.executable = ExecutableMemory(self.engine, range(half, scratch.stop), self.facts.text.start)
        """The same for copies of instructions."""
        self._kept: list[object] = []
        self._show_image()
        self._unwinder = unwinder(self.engine, self.facts, self.tasks, self.modules, self.executable.reach)
        self.host_trap = LinuxKernelTraps(machine, self.traps, self.patcher)
        self.host_trap.attach()

    def _show_image(self) -> None:
        """Register the kernel's text and data with the engine, which then needs no page walk."""
        for part in self.facts.parts():
            first, last = (self.engine.memory.translate(address) for address in (part.start, part.stop - 1))
            if first is not None and last == first + len(part) - 1:
                self.engine.show_window(Window(part.start, len(part), first))

    # -- running

    def run(self, deadline: int | None) -> RunState:
        """Run until virtual time `deadline` (None: forever), or until power off.

        Raises `LinuxKernelError`.
        """
        return self.timers.run(self.machine.run, self.now, deadline, self.machine.interrupt)

    def interrupt(self) -> None:
        """Make the current run return soon."""
        self.timers.interrupt()
        self.machine.interrupt()

    # -- time, threads, memory

    def wall(self) -> int:
        """Return virtual nanoseconds since 1970."""
        return EPOCH + self.now()

    def pc(self) -> int:
        """Return the pc of the CPU."""
        return self.engine.pc

    def thread(self) -> Thread:
        """Return the current thread."""
        return self.tasks.thread()

    @property
    def abilities(self) -> Abilities:
        """Return the abilities of this guest beyond the interface of every guest."""
        return Abilities(
            thread_time=self.thread_time,
            user_frame=self.user_frame,
            parent=self.tasks.parent,
            source=self.user_source,
            kernel_source=self.kernel_source,
            machine_code=self.machine_code,
        )

    def machine_code(self) -> GuestCode:
        """Return the functions by which machine code reads the guest itself."""
        from emu.guest.linux_kernel.native_parts import linux_kernel_code  # noqa: PLC0415  few runs need it

        code, kept = linux_kernel_code(self.engine, self.clock, self.tasks, self._unwinder, EPOCH)
        self._kept.append(kept)
        return code

    def thread_time(self) -> int:
        """Return how many nanoseconds the current thread has run, as the scheduler last counted."""
        task = self.tasks.current()
        return self.tasks.word(task, "task_struct.se.sum_exec_runtime") if task else 0

    def user_load(self, address: int, size: int) -> bytes:
        """Read memory of the current process.  Raises `BadAddressError`."""
        return self.tasks.user_read(address, size)

    def user_store(self, address: int, data: bytes) -> None:
        """Write memory of the current process.  Raises `BadAddressError`."""
        self.tasks.user_write(address, data)

    # -- stacks

    def kernel_stack(self) -> list[int]:
        """Return the kernel pcs of the interrupted context, innermost first."""
        core = self.traps.core
        frame: Frame = core.trapframe or self.live
        pc = frame.register(self.isa.registers.pc)
        if not self.isa.is_kernel_address(pc):
            return []
        return [pc, *self._unwinder.callers(frame, framed=core.trapframe is None or core.framed)]

    def user_frame(self) -> LiveFrame | UserRegisters | None:
        """Return the current thread's user registers (uregs[]), None for a kernel thread."""
        if not self.isa.is_kernel_address(self.engine.pc):
            return self.live
        values = self.tasks.user_registers()
        return None if values is None else UserRegisters(values)

    def user_stack(self) -> list[int]:
        """Return the user pcs of the current thread, innermost first."""
        if not self.isa.is_kernel_address(self.engine.pc):
            frame: Frame = self.live
        else:
            values = self.tasks.user_registers()
            if values is None:
                return []
            frame = ProgramFrame(ProgramCpu(self.isa, values, self.user_load))
        if self.programs is None:
            return [frame.register(self.isa.registers.pc)]
        return self.programs.stack(frame)

    # -- names

    def locate(self, address: int) -> Location | None:
        """Name a kernel address; None if it is in no symbol."""
        if not self.isa.is_kernel_address(address):
            return None
        symbol = self.facts.symbols.holding(address)
        module = None if symbol is not None and address in self.facts.text else self.modules.at(address)
        if module is not None:
            function = module.holding(address)
            return None if function is None else Location(module.name, function.name, address - function.value)
        if symbol is None or (symbol.size and address >= symbol.value + symbol.size):
            return None
        return Location(MODULE, symbol.name, address - symbol.value)

    def locate_user(self, address: int, pid: int | None = None) -> Location | None:
        """Name an address of a process, None for the current one; None: no known file is there."""
        return None if self.programs is None else self.programs.locate(address, pid)

    def user_source(self, address: int, pid: int | None) -> Sequence[SourceFrame]:
        """Return the functions and lines of an instruction of a process; empty: not known."""
        return () if self.programs is None else self.programs.source(address, pid)

    def kernel_source(self, address: int) -> Sequence[SourceFrame]:
        """Return the functions and lines of an instruction of the kernel; empty: not known."""
        return () if self._source is None else self._source.frames(address)

    @cached_property
    def _source(self) -> Source | None:
        return kernel_source(self.facts)

    @cached_property
    def calls(self) -> KernelCalls:
        """Calls of functions of the kernel.

        Raises `emu.guest.linux_kernel.executable.NoSpaceError`.
        """
        return KernelCalls(self)

    @cached_property
    def programs(self) -> Programs | None:
        """The programs; None: this kernel keeps their mappings in another way."""
        try:
            return Programs(self)
        except BtfError:
            return None
