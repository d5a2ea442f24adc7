"""The Linux guest: a program, and what it starts, on one or more emulated CPUs.

guest = LinuxGuest(X86_64, Program("/bin/busybox", ("echo", "hi")), root=Path("debian"))
guest.run(None)
guest.exit_status
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from emu.displaced.frame import Frame
from emu.elf.file import ElfError
from emu.engine.time.clock import DEFAULT_RATE
from emu.guest.base import Abilities, Location, RunState, Thread
from emu.guest.linux.calls import bound
from emu.guest.linux.fs.stdio import Standard
from emu.guest.linux.kernel import EPOCH, RAM, Kernel
from emu.guest.linux.launch import Launcher, Program, root_directory
from emu.guest.linux.mm.mapped_objects import Objects
from emu.guest.linux.mm.user_code import ProcessCode
from emu.guest.processes import EXECUTED
from emu.guest.timers import Timers
from emu.isa.base import Isa
from emu.isa.linux_signals import Signal, SignalInfo, name_of
from emu.probe.patcher import Patcher
from emu.support.words import BadAddressError

if TYPE_CHECKING:
    from emu.guest.native_frames import FrameTable
    from emu.native.guest import GuestCode


class LinuxGuest:
    """A Linux program on `cpus` CPUs.  Implements `emu.guest.base.Guest`.

    The guest sees `root` and nothing else of the host; without one it sees the program alone.  A
    path that is not in the root is taken from the host, and put there.  Nothing that the guest
    writes reaches the host, but for its standard streams.  `report` is called for unknown system
    calls.  `seed` decides about the order of several CPUs.

    Raises `emu.guest.base.GuestError` if the program cannot be started.
    """

    def __init__(
        self,
        isa: Isa,
        program: Program,
        *,
        root: Path | None = None,
        standard: Standard | None = None,
        report: Callable[[str], object] = lambda _text: None,
        rate: int = DEFAULT_RATE,
        ram: int = RAM,
        quantum: int | None = None,
        cpus: int = 1,
        seed: int = 0,
        accelerated: bool | None = None,
    ) -> None:
        self.isa = isa
        standard = standard or Standard()
        self.kernel = Kernel(
            isa,
            bound,
            ram=ram,
            quantum=quantum,
            cpus=cpus,
            seed=seed,
            rate=rate,
            accelerated=accelerated,
            report=report,
            wait_for_host=standard.wait,
        )
        self.engine = self.kernel.engine
        self.clock = self.kernel.clock
        self.now = self.clock.now
        self.traps = self.kernel.traps
        self.timers = Timers()
        self.cpu_count = cpus
        if cpus > 1:
            self.timers.everywhere = self.kernel.on_every_cpu
        self.kernel.root = root_directory(self.kernel, root)
        self.objects = Objects(self.kernel)
        self._frames: FrameTable | None = None
        """The ELF files that processes have mapped, with their symbols."""
        self._first = Launcher(self.kernel, self.objects, root).start(program, standard)

    # -- running

    @property
    def exit_status(self) -> int | None:
        """The first process's exit status as a shell has it (128 + signal), None while it runs."""
        status = self._first.status
        if status is None:
            return None
        return 128 + (status & 0x7F) if status & 0x7F else status >> 8

    @property
    def target(self) -> int:
        """The first process's number ($target)."""
        return self._first.pid

    @property
    def killed(self) -> bool:
        """Return whether a signal has ended the first process."""
        return bool((self._first.status or 0) & 0x7F)

    def ending(self) -> str | None:
        """Return how the first process ended, as dtrace tells it; None while it runs."""
        status = self._first.status
        if status is None:
            return None
        if self.killed:
            return f"pid {self.target} terminated by {name_of(status & 0x7F)}"
        return f"pid {self.target} has exited"

    def run(self, deadline: int | None) -> RunState:
        """Run until virtual time `deadline` (None: forever) or the first process's end."""
        return self.timers.run(self._run, self.now, deadline, self.kernel.interrupt)

    @property
    def cpu(self) -> int:
        """Number of the CPU that is running."""
        return self.kernel.schedule.cpus.here.number

    def reached(self) -> int:
        """Return the virtual time that all CPUs have reached, in nanoseconds."""
        return self.kernel.schedule.cpus.reached()

    def pc(self) -> int:
        """Return where the CPU is."""
        return self.engine.pc

    def _run(self, deadline: int | None) -> RunState:
        return RunState.RUNNING if self.kernel.run(deadline) else RunState.FINISHED

    def run_to_start(self, *, main: bool) -> None:
        """Run to the program's entry, or to its `main` if it has that symbol.

        The run ends with the program if the program does not get there.
        """
        process = self._first
        address = process.entry
        for loaded in self.objects.of(process):
            if main and loaded.file is process.executable:
                try:
                    address = loaded.image.symbol("main").value + loaded.bias
                except ElfError:
                    continue
        code = ProcessCode(self.engine, process.space)
        patcher = Patcher(code)
        try:
            tracepoint = patcher.create(address, self.isa.traps.breakpoints[-1], "start")
        except BadAddressError:
            self.run(None)  # nothing is there: the program dies of its first instruction
            return

        def stop(at: int, _frame: Frame, _extra: int) -> int:
            current = self.kernel.current
            if at != address or current is None or current.process is not process:
                return 0
            patcher.remove(tracepoint)
            self.engine.discount(1)
            self.engine.pc = address
            self.kernel.schedule.interrupted = True
            self.engine.running.leave()
            return EXECUTED

        self.traps.add(stop)
        patcher.install(tracepoint)
        try:
            self.run(None)
        finally:
            self.traps.remove(stop)

    def interrupt(self) -> None:
        """Make the current run return soon."""
        self.timers.interrupt()
        self.kernel.interrupt()

    # -- what the framework sees

    def wall(self) -> int:
        """Return virtual nanoseconds since 1970."""
        return self.kernel.wall()

    def thread(self) -> Thread:
        """Return the current thread."""
        current = self.kernel.current
        if current is None:
            return Thread(address=0, tid=0, pid=0, ppid=0, execname="")
        process = current.process
        thread = Thread(
            address=0,
            tid=current.tid,
            pid=process.pid,
            ppid=process.parent.pid if process.parent is not None else 1,
            execname=process.name,
            execargs=b"\0".join(process.arguments).decode("utf-8", "surrogateescape"),
            errno=current.errno,
        )
        self.kernel.thread_words.show(thread, self.thread_time(), self._ancestors(thread.ppid))
        return thread

    def machine_code(self) -> GuestCode:
        """Return what machine code can find out about the guest by itself."""
        from emu.guest.linux.native_parts import linux_code  # noqa: PLC0415  few runs need it
        from emu.guest.native_frames import FrameTable  # noqa: PLC0415
        from emu.guest.native_parts import cpu_number  # noqa: PLC0415

        kernel = self.kernel
        code = linux_code(kernel.engine, self.clock, kernel.thread_words, kernel.call_arguments, EPOCH)
        code = code.joined(cpu_number(kernel.schedule.cpus.number_address))
        if "user_pointer" not in code.functions:
            return code
        if self._frames is None:
            self._frames = FrameTable(self.objects.stacks)
        return code.joined(self._frames.code(kernel.isa))

    @property
    def abilities(self) -> Abilities:
        """Return what DTrace may ask of this guest beyond what it asks of every guest."""
        return Abilities(
            thread_time=self.thread_time,
            user_frame=self.user_frame,
            parent=self.parent,
            signal=self.signal,
            stop=self.stop,
            chill=self.chill,
            machine_code=self.machine_code,
            source=self.objects.source,
        )

    def thread_time(self) -> int:
        """Return nanoseconds the current thread has been on the CPU."""
        current = self.kernel.current
        return 0 if current is None else current.ran * 1_000_000_000 // self.clock.rate

    def user_frame(self) -> Frame | None:
        """Return the registers of the current thread (uregs[])."""
        return self.kernel.frame if self.kernel.current is not None else None

    def _ancestors(self, pid: int) -> Iterator[int]:
        """Yield the pids of a process's ancestors."""
        while (parent := self.parent(pid)) is not None:
            yield parent
            pid = parent

    def parent(self, pid: int) -> int | None:
        """Return the parent of a process."""
        process = self.kernel.processes.get(pid)
        return process.parent.pid if process is not None and process.parent is not None else None

    def signal(self, number: int) -> None:
        """Send the current process a signal (raise).

        It is delivered when the current run returns to user mode.
        """
        current = self.kernel.current
        if current is not None:
            self.kernel.sending.send(current.process, SignalInfo(number, pid=current.process.pid))
            self.kernel.interrupt()

    def stop(self) -> None:
        """Stop the current process, until it gets SIGCONT."""
        self.signal(Signal.SIGSTOP)

    def chill(self, nanoseconds: int) -> None:
        """Advance the time without running anything."""
        self.kernel.let_pass(nanoseconds)

    def load(self, address: int, size: int) -> bytes:
        """Refuse: the guest has no kernel memory."""
        del size
        raise BadAddressError(address)

    def user_load(self, address: int, size: int) -> bytes:
        """Read memory of the current process.  Raises `BadAddressError`."""
        return self.kernel.read(address, size)

    def user_store(self, address: int, data: bytes) -> None:
        """Write memory of the current process.  Raises `BadAddressError`."""
        self.kernel.write(address, data)

    def kernel_stack(self) -> list[int]:
        """Return nothing: the kernel is Python."""
        return []

    def user_stack(self) -> list[int]:
        """Return the user pcs of the current thread, innermost first."""
        return self.objects.stack(self.kernel.frame)

    def locate(self, address: int) -> Location | None:
        """Name nothing: there are no kernel addresses."""
        del address
        return None

    def locate_user(self, address: int, pid: int | None = None) -> Location | None:
        """Name an address of a process; of one that has ended, as it last was."""
        return self.objects.locate(address, pid)
