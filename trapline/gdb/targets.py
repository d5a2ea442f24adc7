"""Guests as gdb sees them: threads and their registers, memory, files, and how it ends.

| guest | threads | memory | breakpoints hold |
| --- | --- | --- | --- |
| teaching kernel | its CPUs | what the CPU sees | in the kernel, and in each program |
| Linux program | the threads of all its processes | that of the thread's process | in the first process |
| Linux kernel | its CPU | what the CPU sees | in the kernel, and in each program |
"""

from __future__ import annotations

import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple
from xml.sax.saxutils import quoteattr

from emu.engine.engine import Engine
from emu.guest.base import Guest
from emu.guest.kernel.guest import KernelGuest
from emu.guest.objects import LoadedObject
from emu.probe.patcher import Tracepoint
from trapline.gdb.registers import Registers


class GdbThread(NamedTuple):
    """A thread."""

    number: int
    text: str
    """What `info threads` says of it."""


class File(NamedTuple):
    """A file that gdb may read."""

    read: Callable[[int, int], bytes]
    """Returns so many bytes from an offset on."""
    size: int
    mode: int = stat.S_IFREG | 0o644


class Target:
    """A guest; this class is one with a CPU, and kernel and user memory as the CPU sees them."""

    osabi: str | None = "none"
    """gdb's name of the system whose programs it runs."""
    auxiliary = b""
    """The auxiliary vector of the program; empty: there is none."""

    def __init__(self, guest: Guest, engine: Engine) -> None:
        self.guest, self.engine, self.isa = guest, engine, guest.isa
        self.registers = Registers(guest.isa.name, guest.isa.unicorn.ids)

    # -- threads

    @property
    def current(self) -> int:
        """The number of the thread that is on the CPU."""
        return self.guest.cpu + 1

    def threads(self) -> list[GdbThread]:
        """Return all threads."""
        thread = self.guest.thread()
        return [GdbThread(self.current, f"CPU {self.guest.cpu}, {thread.execname}")]

    def registers_of(self, number: int) -> Any:
        """Return what reads and sets the registers of a thread; None: it has none."""
        return self.engine.cpu.uc if number == self.current else None

    def concerns(self, address: int) -> bool:
        """Return whether a breakpoint at an address holds where the CPU is now."""
        del address
        return True

    # -- memory

    def read(self, number: int, address: int, size: int) -> bytes:
        """Return memory as a thread sees it.  Raises `BadAddressError`."""
        del number
        return self.engine.memory.read(address, size)

    def write(self, number: int, address: int, data: bytes) -> None:
        """Write memory, of code or of data.  Raises `BadAddressError`."""
        del number
        self.engine.write_code(address, data)

    def name(self, address: int) -> str:
        """Return module`symbol+offset of an address; "": it has no name."""
        found = self.guest.locate(address) or self.guest.locate_user(address)
        if found is None:
            return ""
        offset = f"+{found.offset:#x}" if found.offset else ""
        return f"{found.module.rsplit('/', 1)[-1]}`{found.symbol or '?'}{offset}"

    def stage(self, pc: int) -> str:
        """Return the stage of a firing that an instruction is in, as `step` names it; "": none."""
        del pc
        return ""

    def tracepoints(self) -> Sequence[Tracepoint]:
        """Return the breakpoints of probes in the kernel."""
        patcher = getattr(self.guest, "patcher", None)
        return () if patcher is None else patcher.listing()

    # -- the program

    @property
    def executable(self) -> str:
        """Path of the program, or of the kernel; "": it is not known."""
        return ""

    def libraries(self) -> str:
        """Return the loaded libraries, as qXfer:libraries-svr4 has them."""
        return '<library-list-svr4 version="1.0"/>'

    def file(self, path: str) -> File | None:
        """Return a file that gdb asks for; None: there is none of that name."""
        del path
        return None

    def ending(self) -> bytes:
        """Return gdb's packet of how it ended."""
        return b"W00"


# Functions of the teaching kernel that take an exception (testbins/kernel/<isa>/exception.S), on any ISA.
_VECTOR: Final = frozenset(
    {"Xbpt", "Xill", "alltraps", "calltrap", "exception_vectors", "handle_el1h_sync", "cpu_exception_handler",
     "do_trap_supervisor"}
)  # fmt: skip
_CHAIN: Final = {"dtrace_invop": "handler chain", "dtrace_probe": "probe", "dtrace_pid_probe": "probe"}


class KernelTarget(Target):
    """The teaching kernel."""

    guest: KernelGuest

    def stage(self, pc: int) -> str:
        """Return the stage of a firing through the kernel's own vector."""
        found = self.guest.locate(pc)
        symbol, answered = found.symbol if found else "", self.guest.host_trap.probe_taken
        if symbol in _VECTOR:
            return "return" if answered else "trap frame, if this is the trap of a breakpoint"
        if symbol == "dtrace_invop_start":
            return "displaced instruction" if answered else "handler chain"
        return _CHAIN.get(symbol, "")

    def threads(self) -> list[GdbThread]:
        """Return the CPUs."""
        others = [GdbThread(number + 1, f"CPU {number}") for number in self.guest.other_cpus()]
        return sorted((*super().threads(), *others))

    def registers_of(self, number: int) -> Any:
        """Return the CPU, or what is kept of one whose turn it is not."""
        return super().registers_of(number) or self.guest.other_cpus().get(number - 1)

    @property
    def executable(self) -> str:
        """Path of the kernel on this host."""
        return str(self.guest.image.path)

    def file(self, path: str) -> File | None:
        """Return the kernel, or a module or program of the guest's."""
        if path == self.executable:
            content = Path(path).read_bytes()
        else:
            found = self.guest.files.get(path.lstrip("/"))
            if found is None:
                return None
            content = found
        return File(lambda offset, size: content[offset : offset + size], len(content))

    def ending(self) -> bytes:
        """Return the status with which the kernel powered off."""
        return b"W%02x" % ((self.guest.exit_status or 0) & 0xFF)


# The names of the areas in which providers let displaced instructions run.
_SLOTS: Final = frozenset({"[fasttrap]", "[uprobes]"})


class LinuxTarget(Target):
    """A Linux program, and the processes that it starts."""

    osabi = "GNU/Linux"

    def __init__(self, guest: Any) -> None:
        super().__init__(guest, guest.engine)
        self._linux = guest

    @property
    def _process(self) -> Any:
        return self._linux.kernel.first

    @property
    def auxiliary(self) -> bytes:  # type: ignore[override]
        """The auxiliary vector."""
        return bytes(self._process.auxiliary)

    @property
    def current(self) -> int:
        """The number of the thread that runs; while none does, that of the first process."""
        current = self._linux.kernel.current
        return int(current.tid if current is not None else self._linux.target)

    def threads(self) -> list[GdbThread]:
        """Return the threads of all processes, those of the first process first."""
        kernel = self._linux.kernel
        found = sorted(kernel.threads.values(), key=lambda one: (one.process.pid != self._linux.target, one.tid))
        return [
            GdbThread(one.tid, f"{one.process.name}, process {one.process.pid}, {one.call_name or one.life.value}")
            for one in found
            if one.process.alive
        ]

    def registers_of(self, number: int) -> Any:
        """Return the CPU, or what is kept of a thread that does not run."""
        kernel = self._linux.kernel
        current = kernel.current
        if current is None or current.tid == number:
            return self.engine.cpu.uc
        thread = kernel.threads.get(number)
        return None if thread is None else thread.context

    def concerns(self, address: int) -> bool:
        """Return whether the first process runs: others may have other code at the address."""
        del address
        current = self._linux.kernel.current
        return current is not None and current.process is self._process

    def stage(self, pc: int) -> str:
        """Return that an instruction is a copy of a displaced one."""
        area = self._code(self.current).space.area_at(pc)
        return f"displaced instruction, out of line in {area.name}" if area is not None and area.name in _SLOTS else ""

    def _code(self, number: int) -> Any:
        thread = self._linux.kernel.threads.get(number)
        process = self._process if thread is None else thread.process
        return self._linux.kernel.code(process)

    def read(self, number: int, address: int, size: int) -> bytes:
        """Return memory of a thread's process, whatever its rights.  Raises `BadAddressError`."""
        data: bytes = self._code(number).read(address, size)
        return data

    def write(self, number: int, address: int, data: bytes) -> None:
        """Write memory of a thread's process alone.  Raises `BadAddressError`."""
        self._code(number).write_code(address, data)

    @property
    def executable(self) -> str:
        """Path of the program in the guest."""
        return str(self._process.path)

    def libraries(self) -> str:
        """Return the libraries of the first process.  gdb wants the address of a link map of each.

        Any number that no other has serves: gdb reads nothing there.
        """
        program = self._process.executable
        lines = [
            f'<library name={quoteattr(one.path)} lm="{one.bias:#x}" l_addr="{one.bias:#x}" l_ld="{_dynamic(one):#x}"/>'
            for one in self._linux.objects.of(self._process)
            if one.file is not program
        ]
        return f'<library-list-svr4 version="1.0">{"".join(lines)}</library-list-svr4>'

    def file(self, path: str) -> File | None:
        """Return a file of the guest."""
        from emu.guest.linux.errno import LinuxError  # noqa: PLC0415  only Linux programs need them
        from emu.guest.linux.fs.namei import walk  # noqa: PLC0415
        from emu.guest.linux.fs.regular import RegularFile  # noqa: PLC0415

        root = self._process.surroundings.root
        try:
            found = walk(root, root, path).found()
        except LinuxError:
            return None
        if not isinstance(found, RegularFile):
            return None
        return File(found.read, found.size)

    def ending(self) -> bytes:
        """Return the exit status of the first process, or the signal that has ended it."""
        status = self._process.status or 0
        return b"X%02x" % (status & 0x7F) if status & 0x7F else b"W%02x" % (status >> 8 & 0xFF)


def _dynamic(loaded: LoadedObject) -> int:
    """Return the address of an object's dynamic section."""
    section = loaded.image.section(".dynamic")
    return loaded.bias + (section.address if section is not None else 0)


def target_of(guest: Any) -> Target:
    """Return what a guest is to gdb."""
    if isinstance(guest, KernelGuest):
        return KernelTarget(guest, guest.engine)
    if hasattr(guest, "kernel"):
        return LinuxTarget(guest)
    return Target(guest, guest.engine)
