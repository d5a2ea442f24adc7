"""The command `trapline gdb`: gdb on a traced machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

import click

from emu.guest.base import GuestError, RunState
from trapline.commands.dtrace import open_machine
from trapline.consumer.environment import MachineError, TracedMachine
from trapline.consumer.errors import ConsumerError
from trapline.consumer.request import Mode, Request
from trapline.consumer.usage import UsageError, parse_arguments
from trapline.gdb import Server
from trapline.gdb.monitor import MonitorError
from trapline.gdb.server import ListenError
from trapline.options import OptionError

HELP: Final = """\
Usage: trapline gdb [--port N | --socket PATH | --stdio | --run] [flags of trapline dtrace]

Let gdb debug a traced machine.  The machine and its probes are those of trapline dtrace:
--isa, --guest, --root, -c, -n, -s, -x, --trap, --cpus and so on (trapline dtrace --help).
The guest waits for gdb; the line to type is printed.  In gdb, `monitor help` lists what
Trapline adds: probes are enabled and disabled there, too.  docs/gdb.md has sessions.

  --port N       listen on this port of this machine (default: a free one)
  --socket PATH  listen on a Unix socket
  --stdio        gdb is at standard input and output:
                 gdb -ex 'target remote | trapline gdb --stdio -c ./prog'
  --run          start gdb itself, with the symbols loaded
  -h, --help     show this

trapline gdb -n 'fbt::sys_getpid:entry'
trapline gdb --isa riscv64 -c ./prog --root DIR
trapline gdb --guest linux-kernel --isa aarch64 -c 'ls /'
"""
_FLAGS: Final = {"--port": True, "--socket": True, "--stdio": False, "--run": False}
# The debuggers that know all ISAs, and this machine's own alone.
_DEBUGGERS: Final = ("gdb-multiarch", "gdb")
_LARGEST_PORT: Final = 65535


class _Own(NamedTuple):
    """The flags that dtrace does not have."""

    port: int = 0
    socket: Path | None = None
    stdio: bool = False
    run: bool = False


@click.command(
    "gdb",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    short_help="Let gdb debug a traced machine.",
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def gdb_command(ctx: click.Context, arguments: tuple[str, ...]) -> None:
    """Let gdb debug a traced machine; `trapline gdb --help` lists the flags."""
    if {"-h", "--help"} & set(arguments):
        click.echo(HELP, nl=False)
        return
    try:
        own, rest = _own(arguments)
        ctx.exit(_debug(own, _request(rest)))
    except (UsageError, MachineError, ListenError, MonitorError, OptionError, ConsumerError) as error:
        raise click.ClickException(str(error)) from None
    except GuestError as error:
        raise click.ClickException(error.report()) from None


def _own(arguments: Sequence[str]) -> tuple[_Own, list[str]]:
    """Split the command line.  Raises `UsageError`."""
    rest: list[str] = []
    found: dict[str, str] = {}
    words = iter(arguments)
    for word in words:
        name, separator, value = word.partition("=")
        if name not in _FLAGS:
            rest.append(word)
        elif not _FLAGS[name]:
            found[name] = ""
        else:
            found[name] = value if separator else next(words, "")
            if not found[name]:
                raise UsageError(f"{name}: a value is missing")
    if len(found) > 1:
        raise UsageError(f"{' and '.join(found)}: gdb can be at one of them only")
    port = found.get("--port", "0")
    if not port.isdecimal() or int(port) > _LARGEST_PORT:
        raise UsageError(f"--port {port}: not the number of a port, 1 to {_LARGEST_PORT}")
    path = Path(found["--socket"]) if "--socket" in found else None
    return _Own(int(port), path, "--stdio" in found, "--run" in found), rest


def _request(arguments: Sequence[str]) -> Request:
    """Read the flags of dtrace.  Raises `UsageError`."""
    request = parse_arguments(arguments)
    if request.mode is not Mode.TRACE:
        raise UsageError(f"{request.mode.value}: there is nothing to debug; use trapline dtrace")
    return request


def _say(text: str) -> None:
    click.echo(f"trapline: {text}", err=True)


def _debug(own: _Own, request: Request) -> int:
    wanted = request.machine
    if own.stdio and wanted.program_output is None:
        wanted = replace(wanted, program_output="stderr")
    machine = open_machine(wanted)
    out = sys.stderr if own.stdio else sys.stdout
    server = Server(machine, _say)
    traces = server.monitor.traces
    started: subprocess.Popen[bytes] | None = None
    try:
        if request.sources:
            number, matched = traces.enable(request.sources, [(one.name, one.value) for one in request.settings])
            _say(f"program {number} matched {matched} probe{'' if matched == 1 else 's'}")
        if own.stdio:
            server.use(sys.stdin.fileno(), os.dup(sys.stdout.fileno()))
        else:
            address = server.listen(own.port, own.socket)
            if own.run:
                started = _start(server, address)
            else:
                _say(f"waiting for gdb: {' '.join(_quoted(server, address))}")
        server.wait()
        return _loop(server, machine, out)
    finally:
        server.close()
        traces.close()
        if started is not None:
            started.wait()
        if own.socket is not None:
            own.socket.unlink(missing_ok=True)


def _loop(server: Server, machine: TracedMachine, out: object) -> int:
    """Run the guest to its end, to exit(), or until gdb kills it; return the exit status."""
    traces = server.monitor.traces

    def write(text: str) -> None:
        click.echo(text, nl=False, file=out)  # type: ignore[arg-type]

    state = RunState.RUNNING
    try:
        while state is RunState.RUNNING and not traces.stopped:
            write(traces.work())
            state = server.run(traces.next_event())
            for text in machine.ended():
                _say(text)
    finally:
        if state is RunState.FINISHED:
            server.finish()
        write(traces.stop())
    return traces.status


def _debugger() -> str | None:
    return next((name for name in _DEBUGGERS if shutil.which(name)), None)


def _words(server: Server, address: str) -> Iterator[str]:
    yield _debugger() or _DEBUGGERS[0]
    path = server.target.executable
    if path and server.target.osabi == "none":
        yield path
    # Without the first, gdb shows code as it was before `monitor enable`.
    yield from ("-ex", "set code-cache off", "-ex", f"target remote {address}")


def _quoted(server: Server, address: str) -> Iterator[str]:
    return (f"'{word}'" if " " in word else word for word in _words(server, address))


def _start(server: Server, address: str) -> subprocess.Popen[bytes]:
    if _debugger() is None:
        raise MachineError("--run: there is no gdb here; install Debian's package gdb-multiarch")
    return subprocess.Popen(list(_words(server, address)))  # noqa: S603
