"""The terminals of one kernel: /dev/ptmx, /dev/pts and /dev/tty.

Source: Linux drivers/tty/pty.c, drivers/tty/tty_io.c, fs/devpts.
"""

from __future__ import annotations

from collections.abc import Callable

from emu.guest.linux.errno import EIO, ENXIO, LinuxError
from emu.guest.linux.fs.dir import Listing
from emu.guest.linux.fs.inode import Device, Inode, device_number
from emu.guest.linux.process.pid_table import Tasks
from emu.guest.linux.process.process import Process
from emu.guest.linux.signal.send import Sending
from emu.guest.linux.tty.pty import O_NOCTTY, MasterFile, SlaveFile
from emu.guest.linux.tty.tty import OpenTerminals, Terminal
from emu.support.words import decimal


class Terminals:
    """The terminals of one kernel."""

    def __init__(self, tasks: Tasks, sending: Sending, wall: Callable[[], int]) -> None:
        self._tasks = tasks
        self._sending = sending
        self._wall = wall
        self._open = OpenTerminals()
        self._multiplexer = Device("ptmx", device_number(5, 2), 0o666)
        self.directory = Listing(
            lambda: ["ptmx", *map(str, self._open.numbers())],
            lambda name: self._multiplexer if name == "ptmx" else self._find(name),
        )
        """/dev/pts."""

    def _find(self, name: str) -> Inode | None:
        number = decimal(name)
        terminal = None if number is None else self._open.get(number)
        return None if terminal is None else terminal.inode

    def of(self, process: Process) -> Terminal | None:
        """Return the terminal that controls a process's session."""
        return self._open.controlling(process)

    def open_master(self, inode: Inode, flags: int) -> MasterFile:
        """Make a terminal.  Raises `LinuxError` ENOSPC: there are too many."""
        terminal = Terminal(self._tasks, self._sending, self._open, self._open.free(), self._wall())
        self._open.add(terminal)
        return MasterFile(inode, flags, "/dev/ptmx", terminal)

    def open_slave(self, inode: Inode, flags: int, path: str) -> SlaveFile:
        """Open the side of the programs.  Raises `LinuxError`: EIO while it is locked, ENXIO."""
        terminal = self._open.of_inode(inode)
        if terminal is None:
            raise LinuxError(ENXIO)
        if terminal.locked:
            raise LinuxError(EIO)
        current = self._tasks.current
        if current is not None and not flags & O_NOCTTY:
            process = current.process
            if process.session == process.pid and terminal.session is None and self.of(process) is None:
                terminal.take_control(process)
        return SlaveFile(inode, flags, path, terminal)

    def open_controlling(self, flags: int) -> SlaveFile:
        """Open the terminal that controls the current process (/dev/tty).

        Raises `LinuxError` ENXIO.
        """
        current = self._tasks.current
        terminal = self.of(current.process) if current is not None else None
        if terminal is None:
            raise LinuxError(ENXIO)
        return SlaveFile(terminal.inode, flags, "/dev/tty", terminal)

    def ended(self, process: Process) -> None:
        """Let go of the terminal of a session whose leader has ended."""
        if process.session == process.pid:
            terminal = self.of(process)
            if terminal is not None:
                terminal.leave_session(hang_up=True)
