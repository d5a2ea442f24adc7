"""The Linux guest: a program, and what it starts, on one emulated CPU.

guest = LinuxGuest(X86_64, Program("/bin/busybox", ("echo", "hi")), root=Path("debian"))
guest.run(None)
guest.exit_status
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from emu.bad_address import BadAddressError
from emu.elf_file import ElfError
from emu.engine.clock import DEFAULT_RATE
from emu.frame import Frame
from emu.guest.abilities import Abilities
from emu.guest.base import GuestError, Location, RunState, Thread
from emu.guest.linux import devices, procfs, sysfs
from emu.guest.linux.calls import bound
from emu.guest.linux.code import ProcessCode
from emu.guest.linux.descriptors import Descriptors
from emu.guest.linux.environment import ENVIRONMENT
from emu.guest.linux.errno import ENOMEM, LinuxError
from emu.guest.linux.inodes import Directory, RegularFile, Symlink, host_file
from emu.guest.linux.kernel import EPOCH, RAM, Kernel
from emu.guest.linux.objects import Objects
from emu.guest.linux.paths import walk
from emu.guest.linux.process import Process
from emu.guest.linux.starting import start
from emu.guest.linux.stdio import Standard
from emu.guest.processes import CARRIED_OUT
from emu.guest.timers import Timers
from emu.isa.base import Isa
from emu.isa.linux_signals import Signal, SignalInfo, name_of
from emu.patcher import Patcher

if TYPE_CHECKING:
    from emu.native.guest import GuestCode

# Directories that are links into /usr in a Debian of today; packages unpacked by hand lack them.
_MERGED = ("bin", "sbin", "lib", "lib64")
# Files of /etc, where the guest has no root directory of the host's: root has a name.
_ETC = {"passwd": b"root:x:0:0:root:/:/bin/sh\n", "group": b"root:x:0:\n"}


@dataclass(frozen=True, slots=True)
class Program:
    """The program to run: a path, and the arguments after the program's name."""

    path: str
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=lambda: dict(ENVIRONMENT))
    directory: str | None = None
    """Working directory; None: the root, or this process's own where the guest has no root
    directory of the host's."""


class LinuxGuest:
    """A Linux program on one CPU.  Implements `emu.guest.base.Guest`.

    The guest sees `root` and nothing else of the host; without one it sees the program alone.  A
    path that is not in the root is taken from the host, and put there.  Nothing that the guest
    writes reaches the host, but for its standard streams.  `report` is called for unknown system
    calls.

    Raises `emu.guest.base.GuestError` if the program cannot be started.
    """

    cpu = 0

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
        accelerated: bool | None = None,
    ) -> None:
        self.isa = isa
        standard = standard or Standard()
        self.kernel = Kernel(
            isa,
            bound,
            ram=ram,
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
        self.kernel.root = self._root(root)
        self.objects = Objects(self.kernel)
        """The ELF files that processes have mapped, with their symbols."""
        self._first = self._start(program, root, standard)

    # -- start

    def _root(self, host: Path | None) -> Directory:
        wall = self.kernel.wall()
        if host is not None and not host.is_dir():
            raise GuestError(f"{host}: not a directory; --root names the directory that the guest sees as /")
        if host is not None and not os.access(host, os.R_OK | os.X_OK):
            raise GuestError(f"{host}: permission denied")
        root = Directory(0o755, wall, host=host.resolve() if host else None)
        usr = root.get("usr")
        for name in _MERGED:
            if root.get(name) is None and isinstance(usr, Directory) and usr.get(name) is not None:
                root.add(name, Symlink(f"usr/{name}", wall))
        if host is None:
            for name, content in _ETC.items():
                root.make("etc").add(name, RegularFile(0o644, wall, content=content))
        devices.populate(root, self.kernel)
        procfs.populate(root, self.kernel)
        sysfs.populate(root)
        if root.get("tmp") is None:
            root.make("tmp", 0o1777)
        return root

    def _start(self, program: Program, root: Path | None, standard: Standard) -> Process:
        files = Descriptors(self.kernel.open_files)
        for stream in standard.streams():
            files.add(stream)
        path = self._find(program, root)
        arguments = tuple(os.fsencode(text) for text in (program.path, *program.arguments))
        environment = tuple(os.fsencode(f"{name}={value}") for name, value in program.environment.items())
        directory = self._directory(program.directory, root)
        try:
            return start(self.kernel, path, arguments, environment, files, directory)
        except LinuxError as error:
            raise GuestError(self._why(path, error, root)) from None

    def _directory(self, wanted: str | None, root: Path | None) -> Directory:
        if wanted is None:
            return self.kernel.root if root is not None else self.kernel.root.make(str(Path.cwd()))
        try:
            directory = walk(self.kernel.root, self.kernel.root, wanted).found()
        except LinuxError:
            directory = None
        if not isinstance(directory, Directory):
            raise GuestError(f"{wanted}: no such directory in the guest")
        return directory

    def _find(self, program: Program, root: Path | None) -> str:
        """Return the program's path in the guest; a file of the host is put there."""
        names = [program.path]
        if "/" not in program.path:
            names = [f"{place}/{program.path}" for place in program.environment.get("PATH", "").split(":")]
        for name in names:
            try:
                if isinstance(walk(self.kernel.root, self.kernel.root, name).inode, RegularFile):
                    return name
            except LinuxError:
                continue
        host = Path(program.path)
        memory = len(self.engine.memory.ram)
        try:
            if "/" not in program.path and not host.is_file():
                where = f" in {root}" if root else ""
                raise GuestError(f"{program.path}: no such program{where}; give its path, or a --root that has it")
            if host.exists() and not host.is_file():
                raise GuestError(f"{program.path}: not a file")
            if host.is_file() and not os.access(host, os.R_OK):
                raise GuestError(f"{program.path}: permission denied")
            if host.is_file() and host.stat().st_size > memory:
                raise GuestError(f"{program.path}: larger than the guest's memory, {memory >> 20:,} MiB")
            file = host_file(host)
        except OSError as error:
            raise GuestError(f"{program.path}: {(error.strerror or str(error)).lower()}") from None
        path = str(host.absolute())
        self.kernel.root.make(str(host.absolute().parent)).entries()[host.name] = file
        return path

    def _why(self, path: str, error: LinuxError, root: Path | None) -> str:
        """Say why a program cannot be started."""
        file = walk(self.kernel.root, self.kernel.root, path).inode
        if isinstance(file, RegularFile) and not file.permissions & 0o111:
            return f"{path}: not executable (chmod +x it)"
        if isinstance(file, RegularFile) and file.read(0, 2) == b"#!":
            words = file.read(2, 256).split(b"\n", 1)[0].split() or [b""]
            where = f"that {root} has" if root else "that a --root has"
            return f"{path}: a script: it needs its interpreter {os.fsdecode(words[0])}, for {self.isa.name}, {where}"
        if isinstance(file, RegularFile):
            reason = self.objects.refusal(file, self.isa)
            if reason is not None:
                return f"{path}: {reason}"
            interpreter = self.objects.interpreter(file)
            if interpreter is not None:
                where = f"is not in {root}" if root else "is not there"
                return (
                    f"{path}: its interpreter {interpreter} {where}; give a root directory that has it and the shared "
                    f"libraries: --root DIR"
                )
        if error.number == ENOMEM:
            return f"{path}: not a Linux program: its segments are outside user space (is it a kernel?)"
        return f"{path}: {os.strerror(error.number).lower()}"

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

    def ending(self) -> str | None:
        """Return how the first process ended, as dtrace tells it; None while it runs."""
        status = self._first.status
        if status is None:
            return None
        if status & 0x7F:
            return f"pid {self.target} terminated by {name_of(status & 0x7F)}"
        return f"pid {self.target} has exited"

    def run(self, deadline: int | None) -> RunState:
        """Run until virtual time `deadline` (None: forever) or the first process's end."""
        return self.timers.run(self._run, self.now, deadline)

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
            self.engine.leave()
            return CARRIED_OUT

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
        self.kernel.thread_words.show(thread)
        return thread

    def machine_code(self) -> GuestCode:
        """Return what machine code can find out about the guest by itself."""
        from emu.guest.linux.native_parts import linux_code  # noqa: PLC0415  few runs need it

        return linux_code(self.kernel.engine, self.clock, self.kernel.thread_words, EPOCH)

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
        )

    def thread_time(self) -> int:
        """Return nanoseconds the current thread has been on the CPU."""
        current = self.kernel.current
        return 0 if current is None else current.ran * 1_000_000_000 // self.clock.rate

    def user_frame(self) -> Frame | None:
        """Return the registers of the current thread (uregs[])."""
        return self.kernel.frame if self.kernel.current is not None else None

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
        """Let time go by, in which nothing runs."""
        self.clock.skip_to(self.now() + nanoseconds)

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
