"""Options of dtrace (-x, #pragma D option): any value, alone and together, with programs that use them."""

from __future__ import annotations

import io
import json
from random import Random
from typing import Final

from emu.isa import ISAS
from tests.fuzz.case import Fuzzer
from tests.fuzz.mutation import damage_words
from trapline.consumer.command import main
from trapline.consumer.environment import CommandEnvironment, TracedMachine
from trapline.consumer.request import MachineOptions
from trapline.machine.kernel_machine import KernelMachine, KernelOptions, boot, kernel_guest
from trapline.options import OPTIONS, OptionError, Options

# Programs that use what options give: strings, aggregations, speculations, dynamic variables, stacks.
_PROGRAMS: Final = (
    'BEGIN { x = strjoin("a", execname); trace(x); y[x] = 1; exit(0); }',
    "fbt::sys_*:entry { @[execname, probefunc] = quantize(arg0); self->a = arg0; } fbt::sys_*:return { self->a = 0; }",
    "BEGIN { self->s = speculation(); speculate(self->s); trace(1); } END { commit(self->s); }",
    "fbt::malloc:entry { @[stack()] = count(); @b[arg0] = sum(1); trace(arg0); }",
    'tick-1ms { i++; printf("%d %s\\n", i, strjoin(execname, "x")); } tick-2ms { @ = sum(1); printa(@); exit(1); }',
    "fbt::sys_read:entry { tracemem(arg1, 64); ustack(); trace(curpsinfo->pr_psargs); }",
    'BEGIN { @["x"] = lquantize(1, 0, 10); @m = max(2); printa("%@d %@u\\n", @m, @m); } END { trace(timestamp); }',
)
_NUMBERS: Final = (
    *"0 1 2 7 8 15 16 17 63 255 4095 4096 65535 65536 1000000 2147483647 2147483648 4294967295 4294967296".split(),
    *"9223372036854775807 9223372036854775808 18446744073709551615 99999999999999999999999 0x10 010 08 +1 -1".split(),
    " 1", "1 ", "²", "1e3",
)  # fmt: skip
_UNITS: Final = (*"k K m g t T kb ns us ms s sec min hour d hz x".split(), *[""] * 14)
_TEXTS: Final = (
    *"on off yes no ring fill switch auto manual dynamic text json main exec /nosuch . A=1 x=y=z a 1.0 1.14".split(),
    "", "99.99.99", "stable/stable/common", "\n", "é", "%s", "a" * 300, "=",
)  # fmt: skip
# They would end the case early, write files anywhere, or are another class's (commands).
_OTHERS: Final = frozenset(
    {"timeout", "hosttimeout", "cpp", "cpppath", "cpphdrs", "grabanon", "verbose_ioctl", "ctypes", "dtypes"}
)


class OptionValues(Fuzzer):
    """Values of options."""

    name = "options"
    seconds = 20.0
    megabytes = 1200
    forks = True
    quick = 3
    compared = 2

    def __init__(self) -> None:
        self._machines: dict[str, KernelMachine] = {}

    def warm(self) -> None:
        """Boot a machine of each ISA."""
        super().warm()
        for name, isa in ISAS.items():
            if name not in self._machines:
                self._machines[name] = boot(kernel_guest(KernelOptions(isa, command="ls /etc; cat /etc/motd | wc")))

    def warm_for_long(self) -> None:
        """Compile the programs: a kernel's types are read once, not in each case."""
        for isa in ISAS:
            for program in _PROGRAMS:
                self._dtrace(isa, ["-e", "-n", program])

    def make(self, random: Random) -> bytes:
        """Make an ISA's name, a program, and settings."""
        names = [name for name in OPTIONS if name not in _OTHERS]
        settings = [self._setting(random, names) for _ in range(random.choice((1, 1, 2, 3, 5)))]
        if random.random() < 0.1:
            settings.append("".join(damage_words(random, list(random.choice(settings)), (*_NUMBERS, *_TEXTS), 2)))
        program = random.choice(_PROGRAMS)
        if random.random() < 0.15:
            pragma = random.choice(settings).replace("\n", " ")
            program = f"#pragma D option {pragma}\n{program}"
        return json.dumps([random.choice(list(ISAS)), program, settings]).encode()

    def _setting(self, random: Random, names: list[str]) -> str:
        """Return an option and a value; of four, three are taken."""
        for _ in range(30):
            name, value = random.choice(names), self._value(random)
            try:
                Options().set(name, value[1:] if value else None)
            except OptionError:
                if random.random() < 0.97:
                    continue
            break
        return name + value

    @staticmethod
    def _value(random: Random) -> str:
        choice = random.randrange(5)
        if choice == 0:
            return random.choice(("", "="))
        if choice == 1:
            return f"={random.choice(_TEXTS)}"
        return f"={random.choice(_NUMBERS)}{random.choice(_UNITS)}"

    def run(self, case: bytes) -> str:
        """Set the options, each alone, then all in a trace of a few virtual milliseconds."""
        isa, program, settings = json.loads(case)
        for setting in settings:
            name, equals, value = setting.partition("=")
            try:
                Options().set(name, value if equals else None)
            except OptionError as error:
                if not str(error) or "\n" in str(error):
                    raise AssertionError(f"the message is not one line: {error}") from error
        words = ["-x", "timeout=5ms", *(word for setting in settings for word in ("-x", setting)), "-n", program]
        status, shown, said = self._dtrace(isa, words)
        assert 0 <= status <= 2, f"status {status}: {said[-300:]}"
        assert not status or said.startswith("dtrace: ") or "exit" in program, said[-300:]
        return f"ends with {status}: {said[:300]} {shown[:300]}"

    def _dtrace(self, isa: str, words: list[str]) -> tuple[int, str, str]:
        out, err = io.StringIO(), io.StringIO()
        environment = CommandEnvironment(lambda wanted: self._machine(isa, wanted), out, err, system=_no_system)
        return main(words, environment), out.getvalue(), err.getvalue()

    def _machine(self, isa: str, wanted: MachineOptions) -> TracedMachine:
        del wanted
        machine = self._machines[isa]
        return TracedMachine(
            machine.guest, machine.dtrace, provide=machine.probes.provide, foreign=machine.names,
            libraries=("common", "kernel", isa),
        )  # fmt: skip


def _no_system(command: str) -> None:
    raise AssertionError(f"system() was called: {command}")
