"""gdb's `monitor` commands: probes, their output, and the machine, from within gdb.

A command answers with text; an error is one line.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from emu.engine.time.clock import NANOSECONDS
from emu.guest.base import GuestError
from trapline.consumer.client import Client
from trapline.consumer.environment import TracedMachine
from trapline.consumer.errors import ConsumerError
from trapline.consumer.request import Source, Specifier
from trapline.consumer.tracer import Tracer
from trapline.d.errors import CompileError
from trapline.framework.base.program import ProbeDescription
from trapline.gdb.targets import Target
from trapline.options import OptionError

# The most lines of `list`.
_LONGEST: Final = 200


class MonitorError(Exception):
    """A command that cannot be done; the message says why."""


class Trace(NamedTuple):
    """An enabled program."""

    number: int
    text: str
    tracer: Tracer
    printed: int = 0
    """How much of its output was shown."""


class Traces:
    """The programs that are enabled on one machine."""

    def __init__(self, machine: TracedMachine) -> None:
        self._machine = machine
        self._traces: list[Trace] = []
        self._last = 0

    def enable(self, sources: Sequence[Source], options: Sequence[tuple[str, str | None]] = ()) -> tuple[int, int]:
        """Enable programs; return their number, and how many probes they matched.

        Raises `MonitorError`.
        """
        machine = self._machine
        try:
            tracer = Tracer(
                machine.guest,
                machine.dtrace,
                {"bufsize": "4m", "aggsize": "4m", "temporal": "1", **dict(options)},
                target=machine.target(),
                provide=machine.provide,
                foreign=machine.foreign,
                libraries=machine.libraries,
            )
        except OptionError as error:
            raise MonitorError(str(error)) from None
        try:
            matched = sum(tracer.enable_source(source) for source in sources)
            if matched:
                tracer.session.go()
        except CompileError as error:
            tracer.close()
            raise MonitorError(error.text(errtags=False)) from None
        except (ConsumerError, GuestError, OSError) as error:
            tracer.close()
            raise MonitorError(str(error)) from None
        if not matched:
            tracer.close()
            raise MonitorError("no probes matched")
        self._last += 1
        self._traces.append(Trace(self._last, " ".join(one.text for one in sources), tracer))
        return self._last, matched

    def disable(self, number: int) -> str:
        """Disable a program, and return the output that was not shown.  Raises `MonitorError`."""
        for index, one in enumerate(self._traces):
            if one.number == number:
                one.tracer.session.stop()
                text = self._output(index, aggregations=True)
                one.tracer.close()
                del self._traces[index]
                return text
        raise MonitorError(f"there is no trace {number}; `monitor list` lists them")

    def listed(self) -> list[str]:
        """Return a line for each program."""
        return [f"{one.number}: {one.text}" for one in self._traces]

    def work(self) -> str:
        """Let the consumers work, and return what they have printed since the last time."""
        return "".join(self._output(index, aggregations=False) for index in range(len(self._traces)))

    def output(self) -> str:
        """Return what was printed since the last time, and the aggregations as they are."""
        return "".join(self._output(index, aggregations=True) for index in range(len(self._traces)))

    def next_event(self) -> int | None:
        """Return the virtual time up to which the guest may run before a consumer works."""
        return min((one.tracer.session.next_work() for one in self._traces), default=None)

    @property
    def stopped(self) -> bool:
        """Whether a program has called exit()."""
        return any(one.tracer.session.stopped for one in self._traces)

    @property
    def status(self) -> int:
        """The argument of the first exit() that was called."""
        return next((one.tracer.status for one in self._traces if one.tracer.status), 0) or 0

    def stop(self) -> str:
        """Stop all programs, and return the rest of their output."""
        for one in self._traces:
            one.tracer.session.stop()
        return self.output()

    def close(self) -> None:
        """Disable all programs."""
        while self._traces:
            self._traces.pop().tracer.close()

    def _output(self, index: int, *, aggregations: bool) -> str:
        one = self._traces[index]
        session = one.tracer.session
        if aggregations:
            session.consume_now()
        else:
            session.work()
        text = one.tracer.text
        self._traces[index] = one._replace(printed=len(text))
        return text[one.printed :] + (session.report.unprinted() if aggregations else "")


class Monitor:
    """The commands; `here` returns the address of the instruction that is next."""

    def __init__(self, machine: TracedMachine, target: Target, here: Callable[[], int]) -> None:
        self._machine = machine
        self._target = target
        self._here = here
        self.traces = Traces(machine)
        self._commands: dict[str, tuple[Callable[[str], str], str]] = {
            "enable": (self._enable, "CLAUSE: enable a D program, such as fbt::malloc:entry { trace(arg0); }"),
            "disable": (self._disable, "[N]: disable program N, or all"),
            "list": (self._list, "[PROBE]: list the enabled programs, or the probes of a description"),
            "output": (self._output, "what the programs have printed, and their aggregations"),
            "sites": (self._sites, "FUNCTION: the instructions of the function that are probed now"),
            "where": (self._where, "the instruction, and what a probe has to do with it"),
            "time": (self._time, "the guest's time"),
            "instructions": (self._instructions, "the number of instructions executed so far"),
            "help": (self._help, "this list"),
        }

    def run(self, command: str) -> str:
        """Do a command and return the answer."""
        name, _, rest = command.strip().partition(" ")
        found = self._commands.get(name or "help")
        if found is None:
            known = ", ".join(self._commands)
            return f"there is no monitor command '{name}'; there are: {known}\n"
        try:
            return found[0](rest.strip())
        except MonitorError as error:
            return f"{error}\n"

    def _help(self, _rest: str) -> str:
        return "".join(f"monitor {name:13}{text}\n" for name, (_function, text) in self._commands.items())

    def _enable(self, text: str) -> str:
        if text[:1] in {"'", '"'} and text[-1:] == text[:1]:
            text = text[1:-1]
        if not text:
            raise MonitorError("monitor enable CLAUSE: a clause is missing, such as fbt::malloc:entry")
        number, matched = self.traces.enable([Source(Specifier.NAME, text)])
        return f"{number}: matched {matched} probe{'' if matched == 1 else 's'}\n"

    def _disable(self, text: str) -> str:
        if text and not text.isdecimal():
            raise MonitorError(f"'{text}' is not a number; `monitor list` has the numbers")
        numbers = [text] if text else [line.partition(":")[0] for line in self.traces.listed()]
        return "".join(self.traces.disable(int(number)) for number in numbers)

    def _list(self, text: str) -> str:
        if not text:
            return "".join(f"{line}\n" for line in self.traces.listed()) or "no program is enabled\n"
        parts = [""] * (3 - text.count(":")) + text.split(":")
        if len(parts) != 4:
            raise MonitorError(f"'{text}' is not a description: PROVIDER:MODULE:FUNCTION:NAME")
        device = Client(self._machine.dtrace.open())
        found = [
            one.description
            for one in device.probes(
                ProbeDescription(provider=parts[0], module=parts[1], function=parts[2], name=parts[3])
            )[: _LONGEST + 1]
        ]
        device.close()
        lines = [f"{one.provider}:{one.module}:{one.function}:{one.name}" for one in found]
        more = ["..."] if len(lines) > _LONGEST else []
        return "".join(f"{line}\n" for line in (*lines[:_LONGEST], *more)) or f"no probe matches {text}\n"

    def _output(self, _rest: str) -> str:
        return self.traces.output() or "nothing was printed\n"

    def _time(self, _rest: str) -> str:
        now = self._machine.guest.now()
        return f"{now / NANOSECONDS:.9f} s\n"

    def _instructions(self, _rest: str) -> str:
        return f"{self._target.engine.instructions}\n"

    def _sites(self, name: str) -> str:
        if not name:
            raise MonitorError("monitor sites FUNCTION: the name of a function is missing")
        lines = [
            f"{site.address:#x}  {self._target.name(site.address)}: {site.original.hex()} is {site.patch.hex()}, "
            f"written by {site.owner}"
            for site in self._target.tracepoints()
            if self._target.name(site.address).partition("+")[0].rpartition("`")[2] == name
        ]
        return "".join(f"{line}\n" for line in lines) or f"no instruction of {name} is probed now\n"

    def _where(self, _rest: str) -> str:
        target, pc = self._target, self._here()
        text = f"{pc:#x} {target.name(pc)}"
        for site in target.tracepoints():
            if site.address == pc:
                return (
                    f"{text}: patched bytes: the breakpoint {site.patch.hex()} of {site.owner}, over "
                    f"{site.original.hex()}; the trap is next\n"
                )
        return f"{text}: {target.stage(pc) or 'no probe is firing'}\n"
