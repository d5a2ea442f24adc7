"""The machine under gdb: the guest's run, and the stops in which gdb's packets are answered.

gdb's breakpoints are not bytes in the guest: the engine calls the server before an instruction
(`emu.engine.stops`).  So memory shows the guest's own bytes, with the breakpoints of probes, and
where both are at one address gdb stops before the trap.

A stop is inside the run, so nothing of the run changes.  Only an interrupt (^C) and the first stop
are between two runs.
"""

from __future__ import annotations

import os
import re
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from emu.guest.base import RunState
from emu.support.words import BadAddressError
from trapline.consumer.environment import TracedMachine
from trapline.gdb.monitor import Monitor
from trapline.gdb.packets import INTERRUPT, MOST, Connection, Gone, RubbishError, escaped, unescaped
from trapline.gdb.registers import DESCRIPTIONS
from trapline.gdb.targets import File, Target, target_of

_SIGNAL_INTERRUPT, _SIGNAL_TRAP = 2, 5
# Seconds between two attempts to interrupt the guest: it may be about to start a run.
_AGAIN: Final = 0.05
_ANY: Final = 0
_FEATURES: Final = (
    f"PacketSize={MOST:x};QStartNoAckMode+;swbreak+;hwbreak+;vContSupported+;qXfer:features:read+;"
    "qXfer:exec-file:read+;qXfer:auxv:read+;qXfer:libraries-svr4:read+;qXfer:memory-map:read+"
)
# The numbers of the kinds of breakpoints in packets Z and z.
_SOFTWARE, _HARDWARE, _WRITE, _READ, _ACCESS = range(5)
_KINDS: Final = {_WRITE: "watch", _READ: "rwatch", _ACCESS: "awatch"}
# gdb's own numbers of errors in file requests (File-I/O).
_NO_ENTRY, _BAD_FILE = 2, 9


class ListenError(Exception):
    """gdb cannot connect there; the message names the address and the cause."""


class Watch(NamedTuple):
    """A watched range."""

    kind: int
    address: int
    size: int


class Refusal(Exception):  # noqa: N818  it is an answer
    """A packet that is answered with an error."""


class Server:
    """gdb's server over one traced machine.  `say` is told in one line what a user has to know."""

    def __init__(self, machine: TracedMachine, say: Callable[[str], object] = lambda _text: None) -> None:
        self.machine = machine
        self.target: Target = target_of(machine.guest)
        self.monitor = Monitor(machine, self.target, self._here)
        self.where_stopped: int | None = None
        """The address of the instruction that has not run, in a stop."""
        self._say = say
        self._stops = self.target.engine.stops(self._reached)
        self._breakpoints: dict[int, int] = {}
        """The kinds of breakpoints, by address."""
        self._placed: set[int] = set()
        """Where gdb has ever had a breakpoint."""
        self._watches: dict[Watch, bytes | None] = {}
        """The watched ranges, with their content at the last look."""
        self._accessed: Watch | None = None
        self._stepping: int | None = None
        """The thread that makes a single step; None: none does."""
        self._start: int | None = None
        """The address of the instruction that a run begins with, which is before no stop of its own."""
        self._stepping_range: range | None = None
        self._over = False
        """Whether the next step was made already: a watched access, of which the ISA tells late."""
        self._connection: Connection | None = None
        self._attached = threading.Event()
        self._listener: socket.socket | None = None
        self._fresh = True
        """Whether the next gdb was not served yet."""
        self._noticed = threading.Event()
        self._last = b""
        """The last stop, as gdb was told."""
        self._chosen = self.target.current
        self._files: dict[int, File] = {}
        self._finished = False
        self._running = False

    # -- connections

    def listen(self, port: int = 0, path: Path | None = None) -> str:
        """Wait for gdb on a port of this machine, or on a Unix socket; return gdb's name of it.

        Nobody but this machine can connect.  Raises `ListenError`.
        """
        try:
            if path is not None:
                self._listener = socket.socket(socket.AF_UNIX)
                with _private():
                    self._listener.bind(str(path))
            else:
                self._listener = socket.create_server(("127.0.0.1", port))
            self._listener.listen()
        except (OSError, OverflowError) as error:
            name = f"port {port}" if path is None else str(path)
            raise ListenError(f"gdb cannot connect to {name}: {getattr(error, 'strerror', None) or error}") from None
        threading.Thread(target=self._accept, args=(self._listener,), name="gdb-listener", daemon=True).start()
        return str(path) if path is not None else f"localhost:{self._listener.getsockname()[1]}"

    def use(self, reader: int, writer: int) -> None:
        """Let gdb be at a pair of file descriptors."""
        self._connect(Connection(reader, writer, self._wake, lambda: None))

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _address = listener.accept()
            except OSError:
                return
            if self._connection is not None:
                self._say("a second gdb was refused: one is connected")
                client.close()
                continue
            if client.family == socket.AF_INET:
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._connect(Connection(client.fileno(), client.fileno(), self._wake, client.close))

    def _connect(self, connection: Connection) -> None:
        self._connection = connection
        self._attached.set()
        self._wake()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until gdb is there; False: it has not come in time."""
        return self._attached.wait(seconds)

    def close(self) -> None:
        """Stop listening, and leave gdb."""
        if self._listener is not None:
            self._listener.close()
        if self._connection is not None:
            self._connection.close()

    def _wake(self) -> None:
        """Interrupt the guest, from another thread, until the server has noticed."""

        def again() -> None:
            connection = self._connection
            while self._running and connection is not None and self._connection is connection:
                if not (connection.waiting or self._fresh):
                    return
                self.machine.guest.interrupt()
                self._noticed.wait(_AGAIN)

        if self._running:
            threading.Thread(target=again, daemon=True).start()

    # -- the run

    def run(self, deadline: int | None) -> RunState:
        """Run the guest as `Guest.run` does; gdb may stop it meanwhile."""
        guest = self.machine.guest
        while True:
            self._serve_between()
            self._running = True
            self._stops.apply()
            try:
                state = guest.run(deadline)
            finally:
                self._running = False
            if state is RunState.FINISHED:
                return state
            if not self._wanted():
                return state

    def _wanted(self) -> bool:
        connection = self._connection
        return connection is not None and (self._fresh or connection.waiting)

    def _serve_between(self) -> None:
        """Answer gdb between two runs, if it wants something."""
        while self._wanted():
            assert self._connection is not None
            if self._fresh:
                self._fresh = False
                self._talk(None)
                continue
            try:
                body = self._connection.receive()
            except (Gone, RubbishError) as error:
                self._leave(error)
                return
            if body == INTERRUPT:
                self._talk(f"T{_SIGNAL_INTERRUPT:02x}")

    def finish(self) -> None:
        """Tell gdb that the guest has ended, if it is connected."""
        self._finished = True
        if self._connection is not None:
            with suppress(Gone):
                self._connection.send(self.target.ending())

    def _reached(self, address: int) -> None:
        """Stop before an instruction, if gdb wants that; called by the engine."""
        start, self._start = self._start, None
        if self._connection is None or address == start:
            return
        reason = self._reason(address)
        if reason is not None:
            self.where_stopped = address
            self._talk(f"T{_SIGNAL_TRAP:02x}{reason}")
            self.where_stopped = None

    def _reason(self, address: int) -> str | None:
        """Return why to stop before an instruction, as packet T says it; None: there is no reason."""
        target = self.target
        if not target.concerns(address):
            return None
        for watch in self._watches:
            if watch.kind == _WRITE:
                now = self._content(watch)
                if now != self._watches[watch]:
                    self._watches[watch] = now
                    return self._watched(watch)
        if self._accessed is not None:
            watch, self._accessed = self._accessed, None
            return self._watched(watch)
        if address in self._breakpoints:
            return "hwbreak:;" if self._breakpoints[address] == _HARDWARE else "swbreak:;"
        if self._stepping is not None and self._stepping in {_ANY, target.current}:
            inside = self._stepping_range
            if inside is None or address not in inside:
                return ""
        return None

    def _watched(self, watch: Watch) -> str:
        self._over = DESCRIPTIONS[self.target.isa.name].reports_before
        return f"{_KINDS[watch.kind]}:{watch.address:x};"

    def _content(self, watch: Watch) -> bytes | None:
        try:
            return self.target.read(self.target.current, watch.address, watch.size)
        except BadAddressError:
            return None

    # -- a stop

    def _talk(self, reason: str | None) -> None:
        """Answer gdb until the guest is to go on."""
        target = self.target
        self._chosen = target.current
        self._noticed.set()
        self._running, was = False, self._running
        self._stepping = self._stepping_range = None
        if reason is not None:
            self._last = f"{reason}thread:{target.current:x};".encode()
        else:
            self._last = b"T%02xthread:%x;" % (_SIGNAL_TRAP, target.current)
        try:
            assert self._connection is not None
            if reason is not None:
                self._connection.send(self._last)
            while not self._answer(self._connection.receive()):
                pass
        except (Gone, RubbishError) as error:
            self._leave(error)
        self._noticed.clear()
        self._running = was
        self._want()

    def _leave(self, error: Exception | None = None) -> None:
        """Forget gdb: the guest goes on without stops."""
        connection, self._connection = self._connection, None
        self._attached.clear()
        self._fresh = True
        self._breakpoints.clear()
        self._watches.clear()
        self._files.clear()
        self._stepping = None
        self._want()
        if connection is not None:
            connection.close()
        if isinstance(error, RubbishError):
            self._say(f"gdb was disconnected: {error}; the guest goes on")
        elif isinstance(error, Gone) and not self._finished:
            self._say("gdb has gone; the guest goes on")

    def _want(self) -> None:
        """Tell the engine where to stop."""
        stops = self._stops
        stops.points = set(self._breakpoints)
        stops.each = self._stepping is not None or bool(self._watches)
        stops.ranges = {}
        for watch in self._watches:
            self._watches[watch] = self._content(watch)
            if watch.kind != _WRITE:
                self._tell_accesses(watch)
        self._start = self.target.engine.pc if self.where_stopped is None else None

    def _tell_accesses(self, watch: Watch) -> None:
        def accessed(writes: bool, _address: int, _size: int) -> None:
            if watch.kind == _ACCESS or not writes:
                self._accessed = watch

        with suppress(BadAddressError):
            for begin, end in self.target.engine.memory.places(watch.address, watch.size):
                self._stops.ranges[begin, end] = accessed

    # -- packets

    def _answer(self, body: bytes) -> bool:
        """Answer a packet; True: the guest goes on."""
        connection = self._connection
        assert connection is not None
        if body == INTERRUPT:
            return False
        if body.startswith(b"vCont") and body != b"vCont?":
            return self._continue(body)
        if body[:1] in {b"c", b"s"}:
            return self._continue(b"vCont;" + body[:1])
        if body[:1] == b"k" or body.startswith(b"vKill"):
            if body[:1] != b"k":
                connection.send(b"OK")
            self._leave()
            raise KeyboardInterrupt("gdb has killed the guest")
        if body[:1] == b"D":
            connection.send(b"OK")
            self._leave()
            return True
        try:
            answer = self._reply(body)
        except (BadAddressError, Refusal):
            answer = b"E01"
        except (ValueError, IndexError, KeyError):
            answer = b"E16"
        connection.send(answer)
        if body == b"QStartNoAckMode":
            connection.acknowledges = False
        return False

    def _continue(self, body: bytes) -> bool:
        """Note what vCont asks for: the first action that is a step, or that all go on."""
        for action in body.split(b";")[1:]:
            what, _, thread = action.partition(b":")
            if what[:1] in {b"s", b"S", b"r"}:
                self._stepping = _ANY if not thread or thread == b"-1" else int(thread, 16)
                if what[:1] == b"r":
                    begin, end = what[1:].split(b",")
                    self._stepping_range = range(int(begin, 16), int(end, 16))
                break
        over, self._over = self._over, False
        if over and self._stepping is not None:
            self._stepping = self._stepping_range = None
            assert self._connection is not None
            self._connection.send(self._last)
            return False
        return True

    def _reply(self, body: bytes) -> bytes:
        target, text = self.target, body.decode("latin-1")
        match text[:1]:
            case "?":
                return self._last
            case "g":
                return b"".join(self._register(n) for n in range(len(target.registers.fields))).hex().encode()
            case "p":
                return self._register(int(text[1:], 16)).hex().encode()
            case "P":
                number, _, value = text[1:].partition("=")
                if self._skips(int(number, 16), bytes.fromhex(value)):
                    return b"OK"
                cpu = self._cpu()
                if not target.registers.write(int(number, 16), bytes.fromhex(value), cpu):
                    raise Refusal
                self._stops.changed = True
                return b"OK"
            case "m":
                address, size = (int(one, 16) for one in text[1:].split(","))
                return self._read(address, min(size, MOST // 2 - 8)).hex().encode()
            case "M" | "X":
                where, _, _ = text[1:].partition(":")
                address, size = (int(one, 16) for one in where.split(","))
                data = body[body.index(b":") + 1 :]
                data = bytes.fromhex(data.decode()) if text[0] == "M" else unescaped(data)
                if len(data) != size:
                    raise Refusal
                if data:
                    target.write(self._chosen, address, data)
                    self._stops.changed = True
                return b"OK"
            case "Z" | "z":
                return self._breakpoint(text)
            case "H":
                thread = int(text[len("Hg") :], 16)
                if thread > 0:
                    if thread not in {one.number for one in target.threads()}:
                        raise Refusal
                    self._chosen = thread
                elif text[1] == "g":
                    self._chosen = target.current
                return b"OK"
            case "T":
                alive = int(text[1:], 16) in {one.number for one in target.threads()}
                return b"OK" if alive else b"E01"
            case "q" | "Q" | "v":
                return self._query(text, body)
        return b""

    def _here(self) -> int:
        return self.target.engine.pc if self.where_stopped is None else self.where_stopped

    def _skips(self, number: int, value: bytes) -> bool:
        """Return whether gdb moves the pc over a probe's breakpoint that has one of gdb's, too.

        It takes the instruction for a breakpoint that was compiled into the program
        (`gdbarch_skip_permanent_breakpoint`).  But it stands for the displaced instruction, and so
        it runs.
        """
        target, here = self.target, self.where_stopped
        if here is None or target.registers.fields[number].type != "code_ptr" or here not in self._placed:
            return False
        sizes = [len(one) for one in target.isa.traps.breakpoints if self._read(here, len(one)) == one]
        return int.from_bytes(value, "little") - here in sizes

    def _cpu(self) -> Any:
        cpu = self.target.registers_of(self._chosen)
        if cpu is None:
            raise Refusal
        return cpu

    def _register(self, number: int) -> bytes:
        return self.target.registers.read(number, self._cpu())

    def _read(self, address: int, size: int) -> bytes:
        """Return memory; less where it ends.  Raises `BadAddressError` if it begins outside."""
        try:
            return self.target.read(self._chosen, address, size)
        except BadAddressError as error:
            if not address < error.address < address + size:
                raise
            return self.target.read(self._chosen, address, error.address - address)

    def _breakpoint(self, text: str) -> bytes:
        kind, address, size = (int(one, 16) for one in text[1:].split(";", maxsplit=1)[0].split(","))
        if kind > _ACCESS:
            return b""
        if kind in {_SOFTWARE, _HARDWARE}:
            if text[0] == "Z":
                self._breakpoints[address] = kind
                self._placed.add(address)
            else:
                self._breakpoints.pop(address, None)
            return b"OK"
        watch = Watch(kind, address, size)
        if text[0] == "z":
            self._watches.pop(watch, None)
            return b"OK"
        self._read(address, size)
        self._watches[watch] = None
        return b"OK"

    def _query(self, text: str, body: bytes) -> bytes:
        target = self.target
        name = re.split("[:,;]", text, maxsplit=1)[0]
        match name:
            case "qSupported":
                return _FEATURES.encode()
            case "QStartNoAckMode":
                return b"OK"
            case "vCont?":
                return b"vCont;c;C;s;S;r"
            case "qAttached":
                return b"1"
            case "qC":
                return b"QC%x" % target.current
            case "qfThreadInfo":
                return b"m" + b",".join(b"%x" % one.number for one in target.threads())
            case "qsThreadInfo":
                return b"l"
            case "qThreadExtraInfo":
                number = int(text.split(",")[1], 16)
                return next(one.text for one in target.threads() if one.number == number).encode().hex().encode()
            case "qXfer":
                return self._transfer(text)
            case "qRcmd":
                command = bytes.fromhex(text.split(",")[1]).decode("utf-8", "replace")
                answer = self.monitor.run(command).encode("utf-8", "surrogateescape")
                self._stops.changed = True
                return answer.hex().encode() or b"OK"
            case "vFile":
                return self._file(text, body)
        return b""

    def _transfer(self, text: str) -> bytes:
        _, what, _, annex, where = text.split(":", 4)
        offset, size = (int(one, 16) for one in where.split(","))
        target = self.target
        match what:
            case "features" if annex == "target.xml":
                data = target.registers.description.xml(target.osabi).encode()
            case "exec-file":
                data = target.executable.encode()
            case "libraries-svr4":
                data = target.libraries().encode()
            case "auxv":
                data = target.auxiliary
            case "memory-map":
                top = (1 << 8 * target.isa.word) - 1
                data = (
                    f'<?xml version="1.0"?><memory-map><memory type="ram" start="0x0" length="{top:#x}"/></memory-map>'
                ).encode()
            case _:
                return b""
        part = data[offset : offset + min(size, MOST // 2)]
        return (b"m" if offset + len(part) < len(data) else b"l") + escaped(part)

    def _file(self, text: str, body: bytes) -> bytes:
        """Answer a request for a file of the guest's: gdb reads the program and its libraries."""
        del body
        operation, _, rest = text.removeprefix("vFile:").partition(":")
        words = rest.split(",")
        match operation:
            case "setfs":
                return b"F0"
            case "open":
                found = self.target.file(bytes.fromhex(words[0]).decode("utf-8", "surrogateescape"))
                if found is None:
                    return b"F-1,%x" % _NO_ENTRY
                number = max(self._files, default=0) + 1
                self._files[number] = found
                return b"F%x" % number
            case "close":
                return b"F0" if self._files.pop(int(words[0], 16), None) else b"F-1,%x" % _BAD_FILE
            case "pread":
                number, size, offset = (int(one, 16) for one in words)
                data = self._files[number].read(offset, min(size, MOST // 2))
                return b"F%x;" % len(data) + escaped(data)
            case "fstat":
                one = self._files[int(words[0], 16)]
                status = bytearray(64)  # struct stat of File-I/O, big-endian: st_mode at 8, st_size at 28
                status[8:12] = one.mode.to_bytes(4, "big")
                status[28:36] = one.size.to_bytes(8, "big")
                return b"F%x;" % len(status) + escaped(bytes(status))
        return b""


class _private:  # noqa: N801  a context manager
    """Lets only this user open what is made meanwhile."""

    def __enter__(self) -> None:
        self._mask = os.umask(0o177)

    def __exit__(self, *_: object) -> None:
        os.umask(self._mask)
