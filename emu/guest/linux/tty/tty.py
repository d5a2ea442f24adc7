"""A pseudo-terminal, and whom it controls: a session, and the group in the foreground.

Source: Linux drivers/tty/pty.c, drivers/tty/tty_io.c, drivers/tty/tty_jobctrl.c.
"""

from __future__ import annotations

from typing import Final

from emu.guest.linux.errno import EIO, ENOSPC, EPERM, LinuxError
from emu.guest.linux.fs.inode import Device, Inode, device_number, major_and_minor
from emu.guest.linux.process.pid_table import Tasks
from emu.guest.linux.process.process import Process, Thread
from emu.guest.linux.signal.send import Sending
from emu.guest.linux.tty.n_tty import Discipline
from emu.isa.linux_signals import IGNORE, SI_KERNEL, Signal, SignalInfo

# The major number; the minor is the terminal's number.
_SLAVES: Final = 136
# kernel.pty.max.
_MOST: Final = 4096


class OpenTerminals:
    """The terminals of one kernel that are open, by number."""

    def __init__(self) -> None:
        self._by_number: dict[int, Terminal] = {}

    def numbers(self) -> list[int]:
        """Return the numbers of all terminals."""
        return list(self._by_number)

    def free(self) -> int:
        """Return the lowest number that no terminal has.  Raises `LinuxError` ENOSPC."""
        number = next(number for number in range(_MOST + 1) if number not in self._by_number)
        if number == _MOST:
            raise LinuxError(ENOSPC)
        return number

    def get(self, number: int) -> Terminal | None:
        """Return a terminal."""
        return self._by_number.get(number)

    def add(self, terminal: Terminal) -> None:
        """Enter a terminal."""
        self._by_number[terminal.number] = terminal

    def remove(self, terminal: Terminal) -> None:
        """Forget a terminal whose master is closed."""
        self._by_number.pop(terminal.number, None)

    def controlling(self, process: Process) -> Terminal | None:
        """Return the terminal that controls a process's session."""
        return next((one for one in self._by_number.values() if one.session == process.session), None)

    def of_inode(self, inode: Inode) -> Terminal | None:
        """Return the terminal of an inode of /dev/pts."""
        terminal = self._by_number.get(major_and_minor(inode.device)[1])
        return terminal if terminal is not None and terminal.inode is inode else None


class Terminal:
    """A pair of ends, and the session that the terminal controls."""

    def __init__(self, tasks: Tasks, sending: Sending, table: OpenTerminals, number: int, now: int) -> None:
        self.tasks = tasks
        self._sending = sending
        self._table = table
        self.number = number
        self.discipline = Discipline(self.signal_foreground)
        self.window = bytes(8)
        self.locked = True
        self.has_master = True
        """Whether the side of the keyboard and the screen is open."""
        self.slaves = 0
        """The number of open files that are the side of the programs."""
        self.was_opened = False
        """Whether the side of the programs was ever open."""
        self.session: int | None = None
        self.foreground = 0
        self.inode = Device("pts", device_number(_SLAVES, number), 0o620, now)
        self.arrivals = self.departures = 0
        self.shown = 0
        """The number of times that the screen got output."""

    def wake(self) -> None:
        """Wake the threads that wait at either end."""
        self.arrivals += 1
        self.departures += 1

    def signal_group(self, group: int, number: Signal) -> None:
        """Send a signal to a process group."""
        for process in self.tasks.group(group):
            self._sending.send(process, SignalInfo(number, SI_KERNEL))

    def signal_foreground(self, number: Signal) -> None:
        """Send a signal to the group in the foreground."""
        if self.foreground:
            self.signal_group(self.foreground, number)

    def hang_up(self) -> None:
        """Report the session that the terminal is gone."""
        self.has_master = False
        self._table.remove(self)
        if self.session is not None:
            leader = self.tasks.processes.get(self.session)
            if leader is not None:
                for number in (Signal.SIGHUP, Signal.SIGCONT):
                    self._sending.send(leader, SignalInfo(number, SI_KERNEL))
        self.leave_session(hang_up=True)
        self.wake()

    def take_control(self, process: Process) -> None:
        """Control the session of a process (TIOCSCTTY).  Raises `LinuxError` EPERM."""
        if self.session == process.session and process.session == process.pid:
            return
        if process.session != process.pid or self._table.controlling(process) is not None or self.session is not None:
            raise LinuxError(EPERM)
        self.session, self.foreground = process.session, process.group

    def leave_session(self, *, hang_up: bool) -> None:
        """Control no session any more; the foreground hears of a hang-up."""
        foreground, self.session, self.foreground = self.foreground, None, 0
        if hang_up and foreground:
            self.signal_group(foreground, Signal.SIGHUP)
            self.signal_group(foreground, Signal.SIGCONT)

    def window_changed(self, window: bytes) -> None:
        """Take a new window size, and tell the foreground."""
        if window != self.window:
            self.window = window
            self.signal_foreground(Signal.SIGWINCH)

    def stops(self, thread: Thread, number: Signal, *, refuse: bool = False) -> bool:
        """Return whether a thread is in the background of this terminal, and takes the signal.

        Raises `LinuxError` EIO with `refuse` if the thread is in the background and does not take
        it.
        """
        process = thread.process
        if self.session is None or self.session != process.session or process.group == self.foreground:
            return False
        refuses = process.signals.actions[number].handler == IGNORE or bool(thread.mask >> number - 1 & 1)
        if refuses and refuse:
            raise LinuxError(EIO)
        return not refuses
