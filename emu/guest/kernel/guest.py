"""The kernel guest: boots the teaching kernel, and runs it on one emulated CPU in virtual time.

Its parts: `boot_loader` puts it into memory; `gates` implements the functions that the kernel calls
in the emulator; `trap_path` takes breakpoints; `outside_calls` runs functions of the kernel between
two runs; `userland` has its programs; `view` and `served` are DTrace's access to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from emu.displaced.decision import DisplacedTable
from emu.displaced.frame import Frame
from emu.elf.image import image_of_file
from emu.elf.source.inlined import SourceFrame
from emu.engine.engine import Engine
from emu.engine.errors import GuestCrashError
from emu.engine.time.clock import DEFAULT_RATE, NANOSECONDS, VirtualClock
from emu.guest.base import Location, RunState
from emu.guest.kernel.boot import images, initrd, loader
from emu.guest.kernel.gates import Consumers, Gates
from emu.guest.kernel.outside_calls import OutsideCalls
from emu.guest.kernel.panic import KernelPanicError
from emu.guest.kernel.served import Served
from emu.guest.kernel.trap_path import KernelTraps, TrapPath
from emu.guest.kernel.user.programs import Userland
from emu.guest.modules import Module
from emu.guest.timers import Timers
from emu.isa.base import Isa
from emu.probe.patcher import CodeMemory, Patcher
from emu.probe.trap import TrapHandler
from emu.support.words import BadAddressError

RAM: Final = 64 << 20
# The limit of the virtual time that the kernel takes to boot.
BOOT_LIMIT: Final = 10 * NANOSECONDS


class KernelGuest(Served):
    """The teaching kernel on one emulated CPU.  Implements `emu.guest.base.Guest`.

    `files` are added to the initial file system, or replace files of it (path without leading slash
    -> content; /etc/rc is the start-up script).  `console` receives the guest's output.  `patcher`
    makes the object that writes breakpoints, and `displaced` replaces the ISA's table of displaced
    instructions on the host's trap path.  Call `boot` first.
    """

    def __init__(
        self,
        isa: Isa,
        *,
        trap_path: TrapPath = TrapPath.HOST,
        traps: TrapHandler | None = None,
        files: Mapping[str, bytes] | None = None,
        image: Path | None = None,
        console: Callable[[bytes], object] = lambda _text: None,
        console_input: bytes = b"",
        rate: int = DEFAULT_RATE,
        ram: int = RAM,
        accelerated: bool | None = None,
        patcher: Callable[[CodeMemory], Patcher] = Patcher,
        displaced: DisplacedTable | None = None,
    ) -> None:
        engine = Engine(isa, ram, accelerated=accelerated)
        super().__init__(
            isa,
            image_of_file(image or images.built(isa) / "kernel", isa),
            engine,
            VirtualClock(engine, rate),
            traps or TrapHandler(),
            patcher(engine),
            images.programs(isa) | dict(files or {}),
        )
        self.trap_path = trap_path
        self.console = console
        self.exit_status: int | None = None
        """The status with which the kernel powered off; None: it has not."""
        self.ready = False
        """Whether the kernel is up: process 1 has been about to enter user mode."""
        self.on_module_loaded: Callable[[Module], object] = lambda _module: None
        """Called when the kernel has loaded a file."""
        self.on_module_unload: Callable[[Module], bool] = lambda _module: True
        """Called when a file is about to go; False: it must not."""
        self.consumers: Consumers | None = None
        """The server of /dev/dtrace/dtrace; None: there is none."""
        self.waits_for_timers = False
        """Whether the power stays on while a timer runs: process 1 sleeps then, and nothing but
        the timers happens."""
        self._asleep = False
        self._deadline: int | None = None
        self._tick: int | None = None
        self._next_tick = 0
        self._idle = False
        self._interrupted = False
        self._callouts, self._ticks = (self.image.symbol(name).value for name in ("callout_queue", "ticks"))
        self.timers = Timers()
        self.host_trap = KernelTraps(self, self, trap_path, displaced)
        self._outside = OutsideCalls(engine, self.image, self.introspection, self.clock, self.crash)
        self.call = self._outside.call
        """Makes the kernel run one of its functions, between two runs: `call(name, *arguments)`."""
        self.soon = self._outside.soon
        """Does something between two runs: now, or before the guest executes its next block."""
        self.gates = Gates(self, self, self.host_trap.invop, console_input)
        self.userland = Userland(self, self._outside, self.host_trap, self.gates)
        self.text_end = loader.load(engine, self.image, initrd.archive(self.files))
        """The end of the kernel's text and of what the boot loader has put behind it."""

    def boot(self) -> None:
        """Run until the kernel has booted and process 1 is about to enter user mode.

        Raises `KernelPanicError`.
        """
        if self.run(BOOT_LIMIT) is RunState.FINISHED or not self.ready:
            raise self.crash(f"the kernel was not up after {BOOT_LIMIT // NANOSECONDS} virtual seconds")

    def start_clock(self, interval: int) -> None:
        """Send the kernel a clock interrupt every `interval` nanoseconds from now on."""
        self._tick = interval
        self._next_tick = self.clock.now() + interval

    def power_off(self, status: int) -> None:
        """End the run, as soon as no timer needs the guest."""
        if self.waits_for_timers and self.timers.running:
            self._asleep = True
            return
        self.exit_status = status
        self.engine.stop()

    # -- user programs

    def user_stack(self) -> list[int]:
        """Return the user pcs of the current thread, innermost first."""
        frame = self.user_frame()
        return [] if frame is None else self.userland.objects.stack(frame, chained=not self.describes_frames)

    def locate_user(self, address: int, pid: int | None = None) -> Location | None:
        """Name an address of a process; for one that has ended, by its last mappings."""
        if self.isa.is_kernel_address(address):
            return None
        return self.userland.objects.locate(address, pid)

    def user_source(self, address: int, pid: int | None) -> Sequence[SourceFrame]:
        """Return the functions and lines of an instruction of a process; empty: not known."""
        return () if self.isa.is_kernel_address(address) else self.userland.objects.source(address, pid)

    # -- running

    def run(self, deadline: int | None) -> RunState:
        """Run until virtual time `deadline` (None: forever), or until power off.

        Raises `KernelPanicError`.
        """
        return self.timers.run(self._run, self.clock.now, deadline, self._come_back)

    def _run(self, deadline: int | None) -> RunState:
        self._interrupted = False
        while self.exit_status is None:
            if self._idle and self._asleep:
                wakes = self._next_callout()
                if deadline is not None and (wakes is None or deadline < wakes):
                    self._sleep_until(deadline)
                    return RunState.RUNNING
                if wakes is not None:
                    self._sleep_until(wakes - 1)
            now = self.clock.now()
            tick_due = self._tick is not None and now >= self._next_tick
            if self._idle:
                if not tick_due:
                    if deadline is not None and (self._tick is None or deadline < self._next_tick):
                        self.clock.skip_to(deadline)
                        return RunState.RUNNING
                    if self._tick is None:
                        raise self.crash("every process waits, and no clock interrupt is scheduled")
                    self.clock.skip_to(self._next_tick)
                self._idle = False
                self._deliver_tick()
            elif tick_due and not self.isa.is_kernel_address(self.engine.pc):
                # In kernel mode interrupts are off, so the schedule does not depend on the probes in kernel code.
                self._deliver_tick()
            elif self._interrupted or (deadline is not None and now >= deadline and not self.clock.stands_still):
                return RunState.RUNNING
            self._advance(deadline)
        return RunState.FINISHED

    def _next_callout(self) -> int | None:
        """Return the time at which a clock interrupt calls the first function of the callout queue.

        None: the queue is empty.
        """
        first = self.engine.load(self._callouts, self.isa.word)
        if self._tick is None or not first:
            return None
        due = self.engine.load(first + self.introspection.offset["C_TIME"], 8)
        return self._next_tick + max(0, due - self.engine.load(self._ticks, 8) - 1) * self._tick

    def _sleep_until(self, deadline: int) -> None:
        """Let idle time pass, and count its clock interrupts (FreeBSD hardclock_sync)."""
        self.clock.skip_to(deadline)
        if self._tick is not None and deadline >= self._next_tick:
            missed = (deadline - self._next_tick) // self._tick + 1
            self._next_tick += missed * self._tick
            self.engine.store(self._ticks, 8, self.engine.load(self._ticks, 8) + missed)

    def _deliver_tick(self) -> None:
        self._next_tick = self.clock.now() + (self._tick or 0)
        self.engine.interrupt()

    def _advance(self, deadline: int | None) -> None:
        """Run to the next event.

        A clock interrupt is a soft deadline: the CPU first leaves the kernel.  The caller's
        deadline is a hard one.
        """
        soft = None if self._tick is None else self.clock.instructions_at(self._next_tick)
        if self.host_trap.probe_taken:
            soft = 0  # the clock is stopped until the probe's thread is in user mode again
        self._deadline = deadline
        if deadline is None or (self.clock.stands_still and self.clock.now() >= deadline):
            hard = None  # a due event comes after the current probe, as on the host path
        else:
            hard = self.clock.instructions_at(deadline)
        self._outside.running = True
        try:
            self._idle = self.engine.run(soft, hard, self.clock.of_deadlines())
        except GuestCrashError as error:
            raise self.crash(str(error)) from None
        finally:
            self._outside.running = False
        if not self.isa.is_kernel_address(self.engine.pc):
            self.host_trap.leave_probe()
        self._outside.do_actions()

    def time_goes_on(self, instructions: int) -> None:
        """Note that the clock runs again after a probe to which these instructions still belong.

        The run ends before its next block if its deadline has passed by then.
        """
        if self._deadline is not None:
            due = self.clock.instructions_at(self._deadline)
            if due <= self.engine.instructions + instructions:
                self.engine.stop()

    def change_text(self, change: Callable[[], object], continues: int) -> None:  # noqa: ARG002  (the CPU stands still)
        """Change the kernel's code by a function, so that it continues at an address."""
        change()

    def interrupt(self) -> None:
        """Make the current run return soon."""
        self.timers.interrupt()
        self._come_back()

    def _come_back(self) -> None:
        self._interrupted = True
        self.engine.stop()

    def other_cpus(self) -> Mapping[int, Any]:
        """Return the registers that are kept of the CPUs whose turn it is not, by number."""
        return {}

    def crash(self, reason: str, frame: Frame | None = None) -> KernelPanicError:
        """Return the error of a guest that cannot continue, with a frame's registers and stack."""
        frame = frame or self.live
        registers = {}
        for register in self.isa.registers.registers:
            if register.slot is not None and register.name != self.isa.registers.zero:
                try:
                    registers[register.name] = frame.register(register.name)
                except (KeyError, BadAddressError):
                    continue
        pc = registers.get(self.isa.registers.pc, 0)
        try:
            chain = self.introspection.kernel_chain(registers.get(self.isa.registers.fp, 0))
        except BadAddressError:
            chain = []
        return KernelPanicError(reason, registers, [self._name(address) for address in (pc, *chain)])

    def _name(self, address: int) -> str:
        location = self.locate(address)
        if location is None:
            return f"{address:#x}"
        if not location.symbol:
            return f"{location.module}`{address:#x}"
        return f"{location.module}`{location.symbol}" + (f"+{location.offset:#x}" if location.offset else "")
