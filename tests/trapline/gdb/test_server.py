"""gdb's protocol, spoken by a small client: it runs where no gdb is."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest

from emu.guest.base import RunState
from emu.isa import ISAS
from emu.isa.base import Isa
from tests.support.some import some
from trapline.commands.dtrace import open_machine
from trapline.consumer.request import MachineOptions
from trapline.gdb import Server
from trapline.gdb.packets import Connection, Gone, Parser, RubbishError, escaped, framed, unescaped
from trapline.gdb.registers import DESCRIPTIONS
from trapline.gdb.server import ListenError


class Client:
    """The other side, in a thread of its own; `packets` are sent one after the other."""

    def __init__(self, there: socket.socket) -> None:
        self._there = there
        self._parser = Parser()
        self._found: list[bytes] = []
        there.settimeout(30)

    def ask(self, packet: bytes) -> bytes:
        self._there.sendall(framed(packet))
        return self.answer()

    def answer(self) -> bytes:
        while not self._found:
            data = self._there.recv(65536)
            if not data:
                raise Gone
            self._found += [body for body, right in self._parser.feed(data) if right]
        return self._found.pop(0)

    def monitor(self, command: str) -> str:
        return bytes.fromhex(self.ask(b"qRcmd," + command.encode().hex().encode()).decode()).decode()


class Session:
    """A machine, its server, and what a client makes of it."""

    def __init__(self, options: MachineOptions) -> None:
        self.said: list[str] = []
        self.machine = open_machine(options)
        self.server = Server(self.machine, self.said.append)
        self.target = self.server.target

    def run(self, script: Callable[[Client], Any]) -> Any:
        """Run the guest to its end while a client follows a script; return what the script returns."""
        here, there = socket.socketpair()
        self.server.use(here.fileno(), here.fileno())
        found: list[Any] = []

        def follow() -> None:
            try:
                found.append(script(Client(there)))
            finally:
                there.close()

        thread = threading.Thread(target=follow)
        thread.start()
        while self.server.run(None) is not RunState.FINISHED:
            pass
        self.server.finish()
        thread.join(30)
        here.close()
        return found[0]


def _kernel(isa: Isa, command: str = "getpid 3", **more: Any) -> Session:
    return Session(MachineOptions(isa=isa.name, commands=(command,), program_output=os.devnull, **more))


def _program(isa: Isa, command: str = "testbins:zoo markers") -> Session:
    return Session(MachineOptions(isa=isa.name, commands=(command,), program_output=os.devnull))


def _symbol(session: Session, name: str) -> int:
    return int(session.machine.guest.image.symbol(name).value)


def _read(client: Client, address: int, size: int) -> bytes:
    return bytes.fromhex(client.ask(b"m%x,%x" % (address, size)).decode())


def _pc(client: Client, session: Session) -> int:
    number = next(n for n, one in enumerate(session.target.registers.fields) if one.type == "code_ptr")
    return int.from_bytes(bytes.fromhex(client.ask(b"p%x" % number).decode()), "little")


@pytest.mark.parametrize("isa", ISAS.values(), ids=ISAS)
def test_a_breakpoint_stops_before_the_probes_trap_and_is_no_byte(isa: Isa) -> None:
    session = _kernel(isa)
    address = _symbol(session, "sys_getpid")

    def script(client: Client) -> None:
        before = _read(client, address, 32)
        assert "matched 1 probe" in client.monitor("enable fbt::sys_getpid:entry { @ = count(); }")
        probed = _read(client, address, 32)
        assert probed != before
        site = next(one.address for one in session.target.tracepoints() if 0 <= one.address - address < 32)
        assert client.ask(b"Z0,%x,1" % site) == b"OK"
        assert _read(client, address, 32) == probed
        for _ in range(3):
            assert client.ask(b"vCont;c").startswith(b"T05swbreak:;")
            assert _pc(client, session) == site
            assert "patched bytes" in client.monitor("where")
        assert client.monitor("output").split() == ["2"]  # the third is before its trap
        assert client.ask(b"z0,%x,1" % site) == b"OK"
        client.ask(b"vCont;s")
        assert _pc(client, session) != site
        assert client.monitor("disable").split() == ["3"]
        assert _read(client, address, 32) == before
        assert client.ask(b"c") == b"W00"

    session.run(script)


def _trace(session: Session, script: Callable[[Client], Any] | None) -> tuple[Any, ...]:
    """Return the trace of a run with or without a debugger, its instructions and its time."""
    from trapline.consumer.tracer import Tracer

    machine = session.machine
    tracer = Tracer(machine.guest, machine.dtrace, {"bufsize": "4m"}, libraries=machine.libraries)
    tracer.enable("fbt::sys_getpid:entry, fbt::sys_write:return, profile-97 { trace(timestamp); trace(arg0); }")
    tracer.session.go()
    if script is None:
        while machine.guest.run(None) is not RunState.FINISHED:
            pass
    else:
        session.run(script)
    tracer.session.consume_now()
    records = [(one.timestamp, one.probe, one.values) for one in tracer._events]
    return records, session.target.engine.instructions, machine.guest.now()


@pytest.mark.parametrize("isa", ISAS.values(), ids=ISAS)
def test_a_run_is_the_same_with_gdb(isa: Isa) -> None:
    plain = _trace(_kernel(isa), None)
    assert plain[0]
    session = _kernel(isa)
    address = _symbol(session, "sys_getpid")

    def script(client: Client) -> None:
        for _ in range(3):
            client.ask(b"Z0,%x,1" % address)
            assert client.ask(b"vCont;c").startswith(b"T05swbreak")
            client.ask(b"z0,%x,1" % address)
            for _ in range(5):
                assert client.ask(b"vCont;s:1;c").startswith(b"T05")
        client.ask(b"vCont;c")

    assert _trace(session, script) == plain


@pytest.mark.parametrize("isa", ISAS.values(), ids=ISAS)
def test_a_program_stops_and_its_registers_are_set(isa: Isa) -> None:
    session = _program(isa)

    def script(client: Client) -> None:
        pc = _pc(client, session)
        assert client.ask(b"?").startswith(b"T05thread:")
        assert pc == session.target.engine.pc
        for number, one in enumerate(session.target.registers.fields):
            assert len(client.ask(b"p%x" % number)) == one.bits // 4
        assert client.ask(b"vCont;s").startswith(b"T05thread:")
        assert 0 < abs(_pc(client, session) - pc) <= 16
        assert client.ask(b"qXfer:auxv:read::0,1000").startswith(b"l")
        assert b"zoo" in client.ask(b"qXfer:exec-file:read::0,1000")
        assert client.ask(b"m0,8") == b"E01"
        assert client.ask(b"c").startswith(b"W")

    session.run(script)


def test_a_write_watchpoint_stops_behind_the_write() -> None:
    session = _kernel(ISAS["x86_64"])
    address = _symbol(session, "ticks")

    def script(client: Client) -> None:
        before = _read(client, address, 8)
        assert client.ask(b"Z2,%x,8" % address) == b"OK"
        assert client.ask(b"c").startswith(b"T05watch:%x;" % address)
        assert _read(client, address, 8) != before
        assert client.ask(b"z2,%x,8" % address) == b"OK"
        assert client.ask(b"Z3,%x,8" % address) == b"OK"
        assert client.ask(b"c").startswith(b"T05rwatch:%x;" % address)
        client.ask(b"D")

    session.run(script)


def test_descriptions_name_each_register_once() -> None:
    for name, description in some(DESCRIPTIONS.items()):
        names = [one.name for one in description.fields]
        assert len(set(names)) == len(names), name
        for number in some(range(len(names))):
            assert f'regnum="{number}"' in description.xml("none")


def test_packets_are_cut_and_escaped() -> None:
    parser = Parser()
    assert parser.feed(b"+$m0,4#") == []
    assert parser.feed(b"fd\x03") == [(b"m0,4", True), (b"\x03", True)]
    assert parser.feed(b"$c#00") == [(b"c", False)]
    data = bytes(range(256))
    assert unescaped(escaped(data)) == data
    with pytest.raises(RubbishError, match="GET /"):
        parser.feed(b"GET / HTTP/1.0\r\n")


def test_a_first_packet_that_gdb_has_sent_twice_is_answered_once() -> None:
    here, there = socket.socketpair()
    connection = Connection(here.fileno(), here.fileno(), lambda: None, here.close)
    there.sendall(framed(b"qSupported:x"))
    assert connection.receive() == b"qSupported:x"
    connection.send(b"PacketSize=20000")
    there.sendall(framed(b"qSupported:x") + framed(b"?") + framed(b"?"))
    assert connection.receive() == b"?"
    connection.send(b"S05")
    there.sendall(framed(b"g"))
    assert connection.receive() == b"g"
    there.close()
    connection.close()


def test_a_client_that_sends_rubbish_is_left_and_the_guest_goes_on() -> None:
    session = _kernel(ISAS["x86_64"])
    here, there = socket.socketpair()
    session.server.use(here.fileno(), here.fileno())
    there.sendall(b"GET / HTTP/1.0\r\n\r\n")
    while session.server.run(None) is not RunState.FINISHED:
        pass
    assert "is not a packet of gdb's remote protocol; the guest goes on" in session.said[0]
    here.close()
    there.close()


def test_a_port_that_is_taken_is_named() -> None:
    session = _kernel(ISAS["x86_64"])
    address = session.server.listen()
    assert address.startswith("localhost:")
    port = int(address.rpartition(":")[2])
    with pytest.raises(ListenError, match=f"gdb cannot connect to port {port}: "):
        Server(session.machine).listen(port)
    session.server.close()


def test_monitor_commands_answer_in_one_line_what_is_wrong() -> None:
    session = _kernel(ISAS["x86_64"])
    monitor = session.server.monitor
    assert monitor.run("enable fbt::nosuch:entry").count("\n") == 1
    assert "there is no monitor command 'nosuch'" in monitor.run("nosuch")
    assert "no trace 7" in monitor.run("disable 7")
    assert "fbt:kernel:sys_getpid:entry" in monitor.run("list fbt::sys_getpid:")
    assert monitor.run("help").count("monitor ") >= 9
