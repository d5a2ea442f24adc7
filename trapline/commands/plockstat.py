"""The command `trapline plockstat`: plockstat(1), for the threaded programs of the kernel guest."""

from __future__ import annotations

import getopt
import json
import shlex
import sys
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, NoReturn

import click

from emu.guest.base import GuestError, RunState
from emu.guest.kernel.trap_path import TrapPath
from emu.isa import DEFAULT_ISA, ISAS
from emu.support.words import decimal
from trapline.commands.completion import TracerCommand, complete_word, getopt_flags
from trapline.commands.dtrace import Console
from trapline.consumer.errors import ConsumerError
from trapline.consumer.loop import Interrupts
from trapline.consumer.tracer import Tracer
from trapline.d.errors import CompileError
from trapline.lockstat.plockstat import CONTENTION, HOLD, OPTIONS, Report, program
from trapline.machine.kernel_machine import KernelMachine, KernelOptions, boot, kernel_guest
from trapline.machine.kernel_target import KernelTarget
from trapline.machine.programs import missing_program
from trapline.options import OptionError, Options
from trapline.support.options import cpu_number
from trapline.support.output_files import OutputError, prepare

_NAME: Final = "plockstat"
_FLAGS: Final = "n:ps:e:vx:ACHV"
_LONG: Final = ("isa=", "trap=", "cpus=", "seed=", "jsonl=", "help")
# The values of the flags that have few.
_VALUES: Final = getopt_flags(_FLAGS, _LONG) | {"--isa": tuple(ISAS), "--trap": tuple(path.value for path in TrapPath)}
_USAGE: Final = (
    f"Usage:\n\t{_NAME} [-vACHV] [-n count] [-s depth] [-e secs] [-x opt[=val]]\n"
    "\t    [--isa isa] [--trap host|guest] [--cpus n] [--seed n] [--jsonl file]\n"
    "\t    command [arg...]\n"
    f"\t{_NAME} [-vACHV] [-n count] [-s depth] [-e secs] [-x opt[=val]]\n"
    "\t    [--isa isa] [--trap host|guest] [--cpus n] [--seed n] [--jsonl file]\n"
    "\t    -p pid\n"
)


@dataclass(slots=True)
class Request:
    """A command line."""

    operands: list[str] = field(default_factory=list)
    hold: bool = False
    contention: bool = False
    verbose: bool = False
    show_program: bool = False
    is_pid: bool = False
    entries: int | None = None
    seconds: int | None = None
    depth: int | None = None
    options: dict[str, str | None] = field(default_factory=dict)
    isa: str = DEFAULT_ISA.name
    trap: str = TrapPath.HOST.value
    cpus: int = 1
    seed: int = 0
    lines: str | None = None
    """The file of JSON lines; None: tables are printed instead."""


@click.command(
    _NAME,
    cls=TracerCommand,
    flags=lambda: _VALUES,
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    short_help="Trace the locks of a threaded program; the flags are those of plockstat(1).",
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, shell_complete=complete_word)
def plockstat_command(arguments: tuple[str, ...]) -> None:
    """Show how long the locks of a program of the kernel guest are held, and waited for."""
    request = _parse(arguments)
    try:
        _trace(request)
    except GuestError as error:
        _fail(error.report())
    except CompileError as error:
        _fail(f"failed to compile program: {error.text(errtags=False)}")
    except ConsumerError as error:
        _fail(str(error))


def _say(text: str) -> None:
    sys.stdout.flush()
    sys.stderr.write(f"{_NAME}: {text}\n")


def _fail(text: str) -> NoReturn:
    _say(text)
    sys.exit(1)


def _wrong(text: str) -> NoReturn:
    _say(text)
    sys.stderr.write(_USAGE)
    sys.exit(2)


def _number(what: str, text: str) -> int:
    number = decimal(text)
    if number is None:
        _wrong(f"invalid {what} '{text}'")
    return number


def _cpus(flag: str, text: str) -> int:
    try:
        return cpu_number(flag, text)
    except ValueError as error:
        _wrong(str(error))


def _choice(flag: str, text: str, choices: list[str]) -> str:
    if text not in choices:
        _wrong(f"{flag} {text}: choose from {', '.join(choices)}")
    return text


def _parse(arguments: tuple[str, ...]) -> Request:
    request = Request()
    try:
        flags, request.operands = getopt.getopt(list(arguments), _FLAGS, list(_LONG))
    except getopt.GetoptError as error:
        _wrong(error.msg)
    for flag, value in flags:
        match flag:
            case "--help":
                sys.stdout.write(_USAGE)
                sys.exit(0)
            case "-A":
                request.hold = request.contention = True
            case "-C":
                request.contention = True
            case "-H":
                request.hold = True
            case "-V":
                request.show_program = True
            case "-v":
                request.verbose = True
            case "-p":
                request.is_pid = True
            case "-n":
                request.entries = _number("count", value)
            case "-e":
                request.seconds = _number("timeout", value)
            case "-s":
                request.depth = _number("depth", value)
            case "-x":
                name, _, setting = value.partition("=")
                try:
                    Options().set(name, setting or None)
                except OptionError as error:
                    _fail(f"failed to set -x {name}: {error}")
                request.options[name] = setting or None
            case "--isa":
                request.isa = _choice(flag, value, list(ISAS))
            case "--cpus":
                request.cpus = _cpus("cpus", value)
            case "--seed":
                request.seed = _cpus("seed", value)
            case "--jsonl":
                if not value:
                    _wrong(f"{flag} '': it is empty")
                try:
                    prepare(value)
                except OutputError as error:
                    _fail(str(error))
                request.lines = value
            case "--trap":
                request.trap = _choice(flag, value, [path.value for path in TrapPath])
    if not request.operands:
        _wrong(f"a {'pid' if request.is_pid else 'command'} is missing")
    if request.is_pid and len(request.operands) > 1:
        _wrong("only one pid is allowed")
    request.contention |= not request.hold
    return request


def _trace(request: Request) -> None:
    console = Console(sys.stdout)
    pid = _number("pid", request.operands[0]) if request.is_pid else None
    command = "" if request.is_pid else shlex.join(request.operands)
    missing = None if request.is_pid else missing_program(command, ISAS[request.isa])
    if missing is not None:
        _fail(missing)
    options = KernelOptions(
        isa=ISAS[request.isa],
        trap_path=TrapPath(request.trap),
        cpus=request.cpus,
        seed=request.seed,
        command=command or None,
        console=console.write,
    )
    machine = boot(kernel_guest(options))
    console.shown = not request.is_pid
    target = KernelTarget(machine.guest, command, pid)
    number = target.number()
    settings = OPTIONS | ({} if request.depth is None else {"ustackframes": str(request.depth)}) | request.options
    with Tracer(
        machine.guest, machine.dtrace, settings, target=number, provide=machine.probes.provide, foreign=machine.names
    ) as tracer:
        _run(request, machine, target, tracer)


def _run(request: Request, machine: KernelMachine, target: KernelTarget, tracer: Tracer) -> None:
    events = (HOLD if request.hold else ()) + (CONTENTION if request.contention else ())
    text = program(events, histogram=request.depth is not None, seconds=request.seconds)
    if request.show_program:
        sys.stderr.write(f"{_NAME}: vvvv D program vvvv\n{text}{_NAME}: ^^^^ D program ^^^^\n")
    tracer.enable(text)
    number = target.number()
    session = tracer.session
    session.go()
    if request.verbose:
        print(f"{_NAME}: tracing enabled for pid {number}")  # noqa: T201
    done = False
    with Interrupts(lambda _count: machine.guest.interrupt()) as interrupts:
        while not done:
            state = session.sleep()
            ended = target.ended()
            for line in ended:
                _say(line)
            over = state is RunState.FINISHED or bool(ended) or bool(interrupts.count)
            done = over or session.timed_out() or session.stopped
            if done:
                session.stop()
            session.work()
            done |= session.stopped
    report = Report(
        partial(machine.guest.locate_user, pid=number),
        histogram=request.depth is not None,
        frames=request.depth or 0,
        entries=request.entries,
    )
    elements = tracer.aggregations()
    if request.lines is None:
        sys.stdout.write(report.text(events, elements))
        return
    text = "".join(f"{json.dumps(row)}\n" for row in report.rows(events, elements))
    if request.lines == "-":
        sys.stdout.write(text)
        return
    try:
        Path(request.lines).write_text(text, "utf-8")
    except OSError as error:
        _fail(f"{request.lines}: {(error.strerror or str(error)).lower()}")
