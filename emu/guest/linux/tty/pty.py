"""The two ends of a pseudo-terminal, as open files.

Source: Linux drivers/tty/pty.c, drivers/tty/tty_io.c, drivers/tty/tty_jobctrl.c.
"""

# ruff: noqa: ARG002  (terminals have no offsets, whatever is given)

from __future__ import annotations

import struct
from typing import Final

from emu.guest.linux.errno import EINTR, EINVAL, EIO, ENOTTY, EPERM, ESPIPE, ESRCH, LinuxError
from emu.guest.linux.fs.inode import Inode
from emu.guest.linux.fs.open_file import (
    FIONREAD,
    O_CLOEXEC,
    POLLERR,
    POLLHUP,
    READABLE,
    WRITABLE,
    Notices,
    OpenFile,
    UserMemory,
)
from emu.guest.linux.process.cred import Capability
from emu.guest.linux.process.process import Thread
from emu.guest.linux.tty.n_tty import TERMIO_SIZE, TERMIOS2_SIZE, TERMIOS_SIZE
from emu.guest.linux.tty.tty import Terminal
from emu.isa.linux_signals import Signal

O_NOCTTY: Final = 0o400
_TCGETS, _TCSETS, _TCSETSW, _TCSETSF = 0x5401, 0x5402, 0x5403, 0x5404
_TCGETA, _TCSETA, _TCSETAW, _TCSETAF = 0x5405, 0x5406, 0x5407, 0x5408
_TIOCGLCKTRMIOS, _TIOCSLCKTRMIOS = 0x5456, 0x5457
_TCGETS2, _TCSETS2, _TCSETSW2, _TCSETSF2 = 0x802C542A, 0x402C542B, 0x402C542C, 0x402C542D
_TCSBRK, _TCXONC, _TCFLSH, _TIOCEXCL, _TIOCNXCL = 0x5409, 0x540A, 0x540B, 0x540C, 0x540D
_TIOCSCTTY, _TIOCGPGRP, _TIOCSPGRP, _TIOCOUTQ = 0x540E, 0x540F, 0x5410, 0x5411
_TIOCGWINSZ, _TIOCSWINSZ, _TIOCPKT, _TIOCNOTTY, _TIOCGETD = 0x5413, 0x5414, 0x5420, 0x5422, 0x5424
_TCSBRKP, _TIOCGSID = 0x5425, 0x5429
_TIOCGPTN, _TIOCSPTLCK, _TIOCSIG, _TIOCGPTLCK, _TIOCGPTPEER = 0x80045430, 0x40045431, 0x40045436, 0x80045439, 0x5441
# The requests that set: bytes of the structure.
_SETTING: Final = {
    **dict.fromkeys((_TCSETA, _TCSETAW, _TCSETAF), TERMIO_SIZE),
    **dict.fromkeys((_TCSETS, _TCSETSW, _TCSETSF), TERMIOS_SIZE),
    **dict.fromkeys((_TCSETS2, _TCSETSW2, _TCSETSF2), TERMIOS2_SIZE),
}
_FLUSHING: Final = frozenset({_TCSETAF, _TCSETSF, _TCSETSF2})
# The requests that change nothing: there is no line that could break or be drained.
_NOTHING: Final = frozenset({_TCSBRK, _TCSBRKP, _TIOCEXCL, _TIOCNXCL})


class _End(OpenFile):
    """The common part of both ends of a terminal."""

    takes_offsets = False
    sees_all_sessions = False
    """Whether a process of any session may ask which session the terminal controls."""

    def __init__(self, inode: Inode, flags: int, path: str, terminal: Terminal) -> None:
        super().__init__(inode, flags, path)
        self.terminal = terminal
        self.thread: Thread | None = None
        """The thread that reads or writes."""

    def attend(self) -> None:
        """Note who reads or writes."""
        self.thread = self.terminal.tasks.current

    def _caller(self) -> Thread:
        """Return the thread that makes the system call."""
        current = self.terminal.tasks.current
        assert current is not None
        return current

    def wakeups(self, events: int) -> int:
        """Return how often waiting threads were woken."""
        return self.terminal.arrivals

    def control(self, memory: UserMemory, request: int, argument: int) -> int:
        """Do what both ends do.  Raises `LinuxError`."""
        terminal = self.terminal
        discipline = terminal.discipline
        if request in {_TCGETS, _TCGETS2}:
            memory.write(argument, discipline.packed(speeds=request == _TCGETS2))
        elif request == _TCGETA:
            memory.write(argument, discipline.packed_short())
        elif request == _TIOCGLCKTRMIOS:
            memory.write(argument, discipline.locked)
        elif request == _TIOCSLCKTRMIOS:
            if not self._caller().process.credentials.can(Capability.SYS_ADMIN):
                raise LinuxError(EPERM)
            discipline.locked = memory.read(argument, TERMIOS_SIZE)
        elif request in _SETTING:
            self._may_change()
            data = memory.read(argument, _SETTING[request])
            (discipline.set_short if len(data) == TERMIO_SIZE else discipline.set)(data)
            if request in _FLUSHING:
                discipline.forget_input()
            terminal.wake()
        elif request == _TIOCGWINSZ:
            memory.write(argument, terminal.window)
        elif request == _TIOCSWINSZ:
            terminal.window_changed(memory.read(argument, 8))
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
            memory.write(argument, bytes(4))
        else:
            return self._control_session(memory, request, argument)
        return 0

    def _flush(self, which: int) -> None:
        if which not in range(3):
            raise LinuxError(EINVAL)
        if which in {0, 2}:
            self.terminal.discipline.forget_input()
        if which in {1, 2}:
            self.terminal.discipline.screen.clear()
        self.terminal.wake()

    def _may_change(self) -> None:
        """Return if the caller is in the foreground, or does not mind (tty_check_change).

        Raises `LinuxError`.
        """
        thread = self._caller()
        if self.terminal.stops(thread, Signal.SIGTTOU):
            self.terminal.signal_group(thread.process.group, Signal.SIGTTOU)
            raise LinuxError(EINTR)

    def _control_session(self, memory: UserMemory, request: int, argument: int) -> int:
        terminal, process = self.terminal, self._caller().process
        ours = terminal.session is not None and terminal.session == process.session
        if request == _TIOCSCTTY:
            terminal.take_control(process)
        elif request == _TIOCNOTTY:
            if not ours:
                raise LinuxError(ENOTTY)
            if process.session == process.pid:
                terminal.leave_session(hang_up=True)
        elif request == _TIOCGPGRP:
            if not ours and not self.sees_all_sessions:
                raise LinuxError(ENOTTY)
            memory.write(argument, struct.pack("<i", terminal.foreground))
        elif request == _TIOCGSID:
            if terminal.session is None or (not ours and not self.sees_all_sessions):
                raise LinuxError(ENOTTY)
            memory.write(argument, struct.pack("<i", terminal.session))
        elif request == _TIOCSPGRP:
            self._set_foreground(memory, argument)
        else:
            raise LinuxError(ENOTTY)
        return 0

    def _set_foreground(self, memory: UserMemory, argument: int) -> None:
        terminal = self.terminal
        self._may_change()
        if terminal.session is None or terminal.session != self._caller().process.session:
            raise LinuxError(ENOTTY)
        group = memory.number(argument, 4, signed=True)
        if group < 0:
            raise LinuxError(EINVAL)
        members = terminal.tasks.group(group)
        if not members:
            raise LinuxError(ESRCH)
        if all(process.session != terminal.session for process in members):
            raise LinuxError(EPERM)
        terminal.foreground = group


class MasterFile(_End):
    """The side of the keyboard and the screen (/dev/ptmx)."""

    sees_all_sessions = True

    def notices(self) -> Notices:
        """Return how often its owner was to be told."""
        return Notices(self.terminal.shown)

    def events(self) -> int:
        """Return what poll says."""
        terminal = self.terminal
        events = READABLE if terminal.discipline.screen else 0
        if terminal.was_opened and not terminal.slaves:
            events |= POLLHUP
        return events | (WRITABLE if terminal.discipline.space() > 0 else 0)

    def read_ready(self) -> bool:
        """Return whether there are bytes to read, or no writer exists."""
        terminal = self.terminal
        return bool(terminal.discipline.screen) or (terminal.was_opened and not terminal.slaves)

    def write_ready(self) -> bool:
        """Return whether something can be typed."""
        return self.terminal.discipline.space() > 0

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
        part, screen = data[: max(0, discipline.space())], len(discipline.screen)
        discipline.typed(part)
        self.terminal.shown += len(discipline.screen) > screen
        self.terminal.wake()
        return len(part)

    def seek(self, offset: int, whence: int) -> int:
        """Refuse."""
        raise LinuxError(ESPIPE)

    def control(self, memory: UserMemory, request: int, argument: int) -> int:
        """Do what only this end does: its number, its lock, its other end."""
        terminal = self.terminal
        if request == _TIOCGPTN:
            memory.write(argument, struct.pack("<I", terminal.number))
        elif request == _TIOCSPTLCK:
            terminal.locked = bool(memory.number(argument, 4))
        elif request == _TIOCGPTLCK:
            memory.write(argument, struct.pack("<i", terminal.locked))
        elif request == _TIOCGPTPEER:
            file = SlaveFile(terminal.inode, argument, f"/dev/pts/{terminal.number}", terminal)
            return self._caller().process.files.add(file, close_on_exec=bool(argument & O_CLOEXEC))
        elif request in {FIONREAD, _TIOCOUTQ}:
            memory.write(argument, struct.pack("<i", len(terminal.discipline.screen) if request == FIONREAD else 0))
        elif request == _TIOCPKT:
            if memory.number(argument, 4):
                raise LinuxError(EINVAL)  # packet mode is not there
        elif request == _TIOCSIG:
            if not 1 <= argument <= 31:
                raise LinuxError(EINVAL)
            terminal.signal_foreground(Signal(argument))
        else:
            return super().control(memory, request, argument)
        return 0

    def closed(self) -> None:
        """Hang up."""
        self.terminal.hang_up()


class SlaveFile(_End):
    """The side of the programs (/dev/pts/N)."""

    def __init__(self, inode: Inode, flags: int, path: str, terminal: Terminal) -> None:
        super().__init__(inode, flags & ~O_NOCTTY, path, terminal)

    def opened(self) -> None:
        """Count who has the terminal open."""
        self.terminal.slaves += 1
        self.terminal.was_opened = True

    def again(self, flags: int, path: str) -> SlaveFile:
        """Return the same terminal."""
        return SlaveFile(self.inode, flags, path, self.terminal)

    def notices(self) -> Notices | None:
        """Return how often its owner was to be told."""
        return Notices(self.terminal.discipline.offered) if self.terminal.has_master else None

    def events(self) -> int:
        """Return what poll says."""
        terminal = self.terminal
        if not terminal.has_master:
            return READABLE | WRITABLE | POLLERR | POLLHUP
        events = READABLE if terminal.discipline.readable() else 0
        return events | (WRITABLE if terminal.discipline.output_space() else 0)

    def read_ready(self) -> bool:
        """Return whether reading would not wait."""
        terminal = self.terminal
        return not terminal.has_master or terminal.discipline.readable() or terminal.discipline.returns_at_once()

    def patience(self) -> int | None:
        """Return how long reading waits (VTIME), in nanoseconds."""
        return self.terminal.discipline.patience()

    def write_ready(self) -> bool:
        """Return whether writing would not wait."""
        return not self.terminal.has_master or self.terminal.discipline.output_space() > 0

    def holds_off(self, *, writing: bool) -> bool:
        """Send those in the background SIGTTIN or SIGTTOU, and return whether they wait for it.

        Raises `LinuxError` EIO.
        """
        number = Signal.SIGTTOU if writing else Signal.SIGTTIN
        if self.thread is None or (writing and not self.terminal.discipline.stops_writers):
            return False
        if not self.terminal.stops(self.thread, number, refuse=not writing):
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
        if not self.terminal.has_master:
            raise LinuxError(EIO)
        done = self.terminal.discipline.written(data)
        self.terminal.shown += done > 0
        self.terminal.wake()
        return done

    def seek(self, offset: int, whence: int) -> int:
        """Refuse."""
        raise LinuxError(ESPIPE)

    def control(self, memory: UserMemory, request: int, argument: int) -> int:
        """Do what both ends do, and say how much can be read.

        Raises `LinuxError` EIO after a hang-up.
        """
        if not self.terminal.has_master:
            raise LinuxError(EIO)
        if request in {FIONREAD, _TIOCOUTQ}:
            memory.write(argument, struct.pack("<i", self.terminal.discipline.held() if request == FIONREAD else 0))
            return 0
        return super().control(memory, request, argument)

    def closed(self) -> None:
        """Leave the terminal."""
        self.terminal.slaves -= 1
        self.terminal.wake()
