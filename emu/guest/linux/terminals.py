"""Pseudo-terminals, and who they control: sessions and the group in the foreground.

Source: Linux drivers/tty/pty.c, drivers/tty/tty_io.c, drivers/tty/tty_jobctrl.c, fs/devpts.
"""

# ruff: noqa: ARG002  (terminals have no offsets, whatever is given)

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from emu.guest.linux.asynchronous import Notices
from emu.guest.linux.discipline import TERMIOS2_SIZE, TERMIOS_SIZE, Discipline
from emu.guest.linux.errno import EINTR, EINVAL, EIO, ENOTTY, ENXIO, EPERM, ESPIPE, LinuxError
from emu.guest.linux.files import FIONREAD, O_CLOEXEC, OpenFile
from emu.guest.linux.inodes import Device, Inode, Listing
from emu.guest.linux.process import Process, Thread
from emu.guest.linux.readiness import POLLERR, POLLHUP, READABLE, WRITABLE
from emu.isa.linux_signals import IGNORE, SI_KERNEL, Signal, SignalInfo
from emu.words import decimal

if TYPE_CHECKING:
    from emu.guest.linux.calls.table import Caller
    from emu.guest.linux.kernel import Kernel

O_NOCTTY: Final = 0o400
_SLAVES: Final = 136 << 8
_TCGETS, _TCSETS, _TCSETSW, _TCSETSF = 0x5401, 0x5402, 0x5403, 0x5404
_TCGETS2, _TCSETS2, _TCSETSW2, _TCSETSF2 = 0x802C542A, 0x402C542B, 0x402C542C, 0x402C542D
_TCSBRK, _TCXONC, _TCFLSH, _TIOCEXCL, _TIOCNXCL = 0x5409, 0x540A, 0x540B, 0x540C, 0x540D
_TIOCSCTTY, _TIOCGPGRP, _TIOCSPGRP, _TIOCOUTQ = 0x540E, 0x540F, 0x5410, 0x5411
_TIOCGWINSZ, _TIOCSWINSZ, _TIOCPKT, _TIOCNOTTY, _TIOCGETD = 0x5413, 0x5414, 0x5420, 0x5422, 0x5424
_TCSBRKP, _TIOCGSID = 0x5425, 0x5429
_TIOCGPTN, _TIOCSPTLCK, _TIOCSIG, _TIOCGPTLCK, _TIOCGPTPEER = 0x80045430, 0x40045431, 0x40045436, 0x80045439, 0x5441
_SETTING: Final = frozenset({_TCSETS, _TCSETSW, _TCSETSF, _TCSETS2, _TCSETSW2, _TCSETSF2})
_FLUSHING: Final = frozenset({_TCSETSF, _TCSETSF2})
# What changes nothing here: there is no line that could break or be drained.
_NOTHING: Final = frozenset({_TCSBRK, _TCSBRKP, _TIOCEXCL, _TIOCNXCL})


class Terminal:
    """A pair of ends, and the session that the terminal controls."""

    def __init__(self, kernel: Kernel, number: int) -> None:
        self._kernel = kernel
        self.number = number
        self.discipline = Discipline(self.signal_foreground)
        self.window = bytes(8)
        self.locked = True
        self.master: MasterFile | None = None
        self.slaves: set[SlaveFile] = set()
        self.was_opened = False
        self.session: int | None = None
        self.foreground = 0
        self.inode = Device("pts", _SLAVES | number, 0o620, kernel.wall())
        self.arrivals = self.departures = 0
        self.shown = 0
        """How often something came onto the screen."""

    def wake(self) -> None:
        """Wake those who wait at either end."""
        self.arrivals += 1
        self.departures += 1

    def signal_group(self, group: int, number: Signal) -> None:
        """Send a signal to a process group."""
        for process in list(self._kernel.processes.values()):
            if process.group == group:
                self._kernel.delivery.send(process, SignalInfo(number, SI_KERNEL))

    def signal_foreground(self, number: Signal) -> None:
        """Send a signal to the group in the foreground."""
        if self.foreground:
            self.signal_group(self.foreground, number)

    def hang_up(self) -> None:
        """Tell the session that the terminal is gone."""
        if self.session is not None:
            leader = self._kernel.processes.get(self.session)
            if leader is not None:
                for number in (Signal.SIGHUP, Signal.SIGCONT):
                    self._kernel.delivery.send(leader, SignalInfo(number, SI_KERNEL))
        self.leave_session(hang_up=True)

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


class _End(OpenFile):
    """The common part of both ends of a terminal."""

    def __init__(self, inode: Inode, flags: int, path: str, kernel: Kernel, terminal: Terminal) -> None:
        super().__init__(inode, flags, path)
        self.kernel = kernel
        self.terminal = terminal
        self.thread: Thread | None = None

    def attend(self, thread: Thread) -> None:
        """Note who reads or writes."""
        self.thread = thread

    def wakeups(self, events: int) -> int:
        """Return how often those who wait were woken."""
        return self.terminal.arrivals

    def control(self, c: Caller, request: int, argument: int) -> int:
        """Do what both ends do.  Raises `LinuxError`."""
        terminal = self.terminal
        discipline = terminal.discipline
        if request in {_TCGETS, _TCGETS2}:
            c.write(argument, discipline.packed(speeds=request == _TCGETS2))
        elif request in _SETTING:
            self._may_change(c)
            discipline.set(c.read(argument, TERMIOS_SIZE if request < 1 << 16 else TERMIOS2_SIZE))
            if request in _FLUSHING:
                discipline.forget_input()
            terminal.wake()
        elif request == _TIOCGWINSZ:
            c.write(argument, terminal.window)
        elif request == _TIOCSWINSZ:
            terminal.window_changed(c.read(argument, 8))
        elif request in _NOTHING:
            pass
        elif request == _TCFLSH:
            self._flush(argument)
        elif request == _TCXONC:
            if argument not in range(4):
                raise LinuxError(EINVAL)
            discipline.stopped = argument == 0
            terminal.wake()
        elif request == _TIOCGETD:
            c.write(argument, bytes(4))
        else:
            return self._control_session(c, request, argument)
        return 0

    def _flush(self, which: int) -> None:
        if which not in range(3):
            raise LinuxError(EINVAL)
        if which in {0, 2}:
            self.terminal.discipline.forget_input()
        if which in {1, 2}:
            self.terminal.discipline.screen.clear()
        self.terminal.wake()

    def _may_change(self, c: Caller) -> None:
        """Return if the caller is in the foreground, or does not mind (tty_check_change).

        Raises `LinuxError`.
        """
        if background(c.thread, self.terminal, Signal.SIGTTOU):
            self.terminal.signal_group(c.process.group, Signal.SIGTTOU)
            raise LinuxError(EINTR)

    def _control_session(self, c: Caller, request: int, argument: int) -> int:
        terminal, process = self.terminal, c.process
        ours = terminal.session is not None and terminal.session == process.session
        if request == _TIOCSCTTY:
            take_control(c.kernel, process, terminal)
        elif request == _TIOCNOTTY:
            if not ours:
                raise LinuxError(ENOTTY)
            if process.session == process.pid:
                terminal.leave_session(hang_up=True)
        elif request == _TIOCGPGRP:
            if not ours and not isinstance(self, MasterFile):
                raise LinuxError(ENOTTY)
            c.write(argument, struct.pack("<i", terminal.foreground))
        elif request == _TIOCGSID:
            if terminal.session is None or (not ours and not isinstance(self, MasterFile)):
                raise LinuxError(ENOTTY)
            c.write(argument, struct.pack("<i", terminal.session))
        elif request == _TIOCSPGRP:
            self._set_foreground(c, argument)
        else:
            raise LinuxError(ENOTTY)
        return 0

    def _set_foreground(self, c: Caller, argument: int) -> None:
        terminal = self.terminal
        self._may_change(c)
        if terminal.session is None or terminal.session != c.process.session:
            raise LinuxError(ENOTTY)
        group = c.number(argument, 4, signed=True)
        if group < 0:
            raise LinuxError(EINVAL)
        members = [process for process in c.kernel.processes.values() if process.group == group]
        if not members:
            raise LinuxError(3)  # ESRCH
        if all(process.session != terminal.session for process in members):
            raise LinuxError(EPERM)
        terminal.foreground = group


class MasterFile(_End):
    """The side of the keyboard and the screen (/dev/ptmx)."""

    def notices(self) -> Notices:
        """Return how often its owner was to be told."""
        return Notices(self.terminal.shown)

    def events(self) -> int:
        """Return what poll says."""
        terminal = self.terminal
        events = READABLE if terminal.discipline.screen else 0
        if terminal.was_opened and not terminal.slaves:
            events |= POLLHUP
        return events | (WRITABLE if terminal.discipline.room() > 0 else 0)

    def read_ready(self) -> bool:
        """Return whether there are bytes to read, or no writer exists."""
        terminal = self.terminal
        return bool(terminal.discipline.screen) or (terminal.was_opened and not terminal.slaves)

    def write_ready(self) -> bool:
        """Return whether something can be typed."""
        return self.terminal.discipline.room() > 0

    def read(self, size: int, offset: int | None = None) -> bytes:
        """Take what is on the screen.  Raises `LinuxError` EIO: the other end is not open."""
        screen = self.terminal.discipline.screen
        if not screen:
            raise LinuxError(EIO)
        data = bytes(screen[:size])
        del screen[:size]
        self.terminal.wake()
        return data

    def write(self, data: bytes, offset: int | None = None) -> int:
        """Type."""
        discipline = self.terminal.discipline
        part, screen = data[: max(0, discipline.room())], len(discipline.screen)
        discipline.typed(part)
        self.terminal.shown += len(discipline.screen) > screen
        self.terminal.wake()
        return len(part)

    def seek(self, offset: int, whence: int) -> int:
        """Refuse."""
        raise LinuxError(ESPIPE)

    def control(self, c: Caller, request: int, argument: int) -> int:
        """Do what only this end does: its number, its lock, its other end."""
        terminal = self.terminal
        if request == _TIOCGPTN:
            c.write(argument, struct.pack("<I", terminal.number))
        elif request == _TIOCSPTLCK:
            terminal.locked = bool(c.number(argument, 4))
        elif request == _TIOCGPTLCK:
            c.write(argument, struct.pack("<i", terminal.locked))
        elif request == _TIOCGPTPEER:
            file = SlaveFile(terminal.inode, argument, f"/dev/pts/{terminal.number}", c.kernel, terminal)
            return c.process.files.add(file, close_on_exec=bool(argument & O_CLOEXEC))
        elif request in {FIONREAD, _TIOCOUTQ}:
            c.write(argument, struct.pack("<i", len(terminal.discipline.screen) if request == FIONREAD else 0))
        elif request == _TIOCPKT:
            if c.number(argument, 4):
                raise LinuxError(EINVAL)  # packet mode is not there
        elif request == _TIOCSIG:
            if not 1 <= argument <= 31:
                raise LinuxError(EINVAL)
            terminal.signal_foreground(Signal(argument))
        else:
            return super().control(c, request, argument)
        return 0

    def closed(self) -> None:
        """Hang up."""
        self.terminal.master = None
        self.kernel.terminals.remove(self.terminal)
        self.terminal.hang_up()
        self.terminal.wake()


class SlaveFile(_End):
    """The side of the programs (/dev/pts/N)."""

    def __init__(self, inode: Inode, flags: int, path: str, kernel: Kernel, terminal: Terminal) -> None:
        super().__init__(inode, flags & ~O_NOCTTY, path, kernel, terminal)
        terminal.slaves.add(self)
        terminal.was_opened = True

    def again(self, flags: int, path: str) -> SlaveFile:
        """Return the same terminal."""
        return SlaveFile(self.inode, flags, path, self.kernel, self.terminal)

    def notices(self) -> Notices | None:
        """Return how often its owner was to be told."""
        return Notices(self.terminal.discipline.offered) if self.terminal.master is not None else None

    def events(self) -> int:
        """Return what poll says."""
        terminal = self.terminal
        if terminal.master is None:
            return READABLE | WRITABLE | POLLERR | POLLHUP
        events = READABLE if terminal.discipline.readable() else 0
        return events | (WRITABLE if terminal.discipline.output_room() else 0)

    def read_ready(self) -> bool:
        """Return whether reading would not wait."""
        terminal = self.terminal
        return terminal.master is None or terminal.discipline.readable() or terminal.discipline.returns_at_once()

    def patience(self) -> int | None:
        """Return how long reading waits (VTIME), in nanoseconds."""
        return self.terminal.discipline.patience()

    def write_ready(self) -> bool:
        """Return whether writing would not wait."""
        return self.terminal.master is None or self.terminal.discipline.output_room() > 0

    def holds_off(self, *, writing: bool) -> bool:
        """Send those in the background SIGTTIN or SIGTTOU, and return whether they wait for it.

        Raises `LinuxError` EIO.
        """
        number = Signal.SIGTTOU if writing else Signal.SIGTTIN
        if self.thread is None or (writing and not self.terminal.discipline.stops_writers):
            return False
        if not background(self.thread, self.terminal, number, refuse=not writing):
            return False
        self.terminal.signal_group(self.thread.process.group, number)
        return True

    def read(self, size: int, offset: int | None = None) -> bytes:
        """Take what was typed; nothing once the other end is closed."""
        data = self.terminal.discipline.read(size)
        self.terminal.wake()
        return data

    def write(self, data: bytes, offset: int | None = None) -> int:
        """Write to the screen.  Raises `LinuxError` EIO: the other end is closed."""
        if self.terminal.master is None:
            raise LinuxError(EIO)
        done = self.terminal.discipline.written(data)
        self.terminal.shown += done > 0
        self.terminal.wake()
        return done

    def seek(self, offset: int, whence: int) -> int:
        """Refuse."""
        raise LinuxError(ESPIPE)

    def control(self, c: Caller, request: int, argument: int) -> int:
        """Do what both ends do, and say how much can be read.

        Raises `LinuxError` EIO after a hang-up.
        """
        if self.terminal.master is None:
            raise LinuxError(EIO)
        if request in {FIONREAD, _TIOCOUTQ}:
            c.write(argument, struct.pack("<i", self.terminal.discipline.held() if request == FIONREAD else 0))
            return 0
        return super().control(c, request, argument)

    def closed(self) -> None:
        """Leave the terminal."""
        self.terminal.slaves.discard(self)
        self.terminal.wake()


def background(thread: Thread, terminal: Terminal, number: Signal, *, refuse: bool = False) -> bool:
    """Return whether a thread is in the background of its terminal, and takes the signal.

    Raises `LinuxError` EIO with `refuse` if the thread is in the background and does not take it.
    """
    process = thread.process
    if terminal.session is None or terminal.session != process.session or process.group == terminal.foreground:
        return False
    refuses = process.signals.actions[number].handler == IGNORE or bool(thread.mask >> number - 1 & 1)
    if refuses and refuse:
        raise LinuxError(EIO)
    return not refuses


def take_control(kernel: Kernel, process: Process, terminal: Terminal) -> None:
    """Make a terminal control the session of a process (TIOCSCTTY).  Raises `LinuxError` EPERM."""
    if terminal.session == process.session and process.session == process.pid:
        return
    if process.session != process.pid or kernel.terminals.of(process) is not None or terminal.session is not None:
        raise LinuxError(EPERM)
    terminal.session, terminal.foreground = process.session, process.group


class Terminals:
    """The terminals of one kernel."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._open: dict[int, Terminal] = {}
        self._multiplexer = Device("ptmx", 5 << 8 | 2, 0o666)
        self.directory = Listing(
            lambda: ["ptmx", *(str(number) for number in self._open)],
            lambda name: self._multiplexer if name == "ptmx" else self._find(name),
        )
        """/dev/pts."""

    def _find(self, name: str) -> Inode | None:
        number = decimal(name)
        terminal = None if number is None else self._open.get(number)
        return None if terminal is None else terminal.inode

    def of(self, process: Process) -> Terminal | None:
        """Return the terminal that controls a process's session."""
        return next((one for one in self._open.values() if one.session == process.session), None)

    def open_master(self, inode: Inode, flags: int) -> MasterFile:
        """Make a terminal."""
        number = next(number for number in range(len(self._open) + 1) if number not in self._open)
        terminal = self._open[number] = Terminal(self._kernel, number)
        terminal.master = MasterFile(inode, flags, "/dev/ptmx", self._kernel, terminal)
        return terminal.master

    def open_slave(self, inode: Inode, flags: int, path: str) -> SlaveFile:
        """Open the side of the programs.  Raises `LinuxError`: EIO while it is locked, ENXIO."""
        terminal = next((one for one in self._open.values() if one.inode is inode), None)
        if terminal is None:
            raise LinuxError(ENXIO)
        if terminal.locked:
            raise LinuxError(EIO)
        file = SlaveFile(inode, flags, path, self._kernel, terminal)
        current = self._kernel.current
        if current is not None and not flags & O_NOCTTY:
            process = current.process
            if process.session == process.pid and terminal.session is None and self.of(process) is None:
                take_control(self._kernel, process, terminal)
        return file

    def open_controlling(self, flags: int) -> SlaveFile:
        """Open the terminal that controls the current process (/dev/tty).

        Raises `LinuxError` ENXIO.
        """
        current = self._kernel.current
        terminal = self.of(current.process) if current is not None else None
        if terminal is None:
            raise LinuxError(ENXIO)
        return SlaveFile(terminal.inode, flags, "/dev/tty", self._kernel, terminal)

    def remove(self, terminal: Terminal) -> None:
        """Forget a terminal whose master is closed."""
        self._open.pop(terminal.number, None)

    def ended(self, process: Process) -> None:
        """Let go of the terminal of a session whose leader has ended."""
        if process.session == process.pid:
            terminal = self.of(process)
            if terminal is not None:
                terminal.leave_session(hang_up=True)
