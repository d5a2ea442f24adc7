"""The command line of dtrace(1): its usage, and flags as getopt reads them.

Source: FreeBSD cmd/dtrace/dtrace.c.  Words that are not flags may stand anywhere; they are the
macro arguments.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

from emu.isa import ISAS
from emu.support.words import decimal
from trapline.consumer.request import MachineOptions, Mode, Request, Setting, Source, Specifier
from trapline.framework.base.program import DataModel
from trapline.options import OPTIONS, OptionError, parse_assignment, parse_size
from trapline.support.options import BOUNDS, cpu_number

SHORT: Final = "3:6:aAb:c:CdD:eFf:GhHi:I:lL:m:n:o:Op:P:qs:SU:vVwx:X:Z"
# Trapline's own flags and --libxo, and whether they take a value.
LONG: Final = {
    "libxo": True,
    "isa": True,
    "guest": True,
    "root": True,
    "debug-root": True,
    "export": True,
    "export-format": True,
    "program-output": True,
    "trap": True,
    "console": False,
    "cpus": True,
    "seed": True,
    "help": False,
}
_CHOICES: Final = {
    "isa": tuple(ISAS),
    "guest": ("kernel", "linux", "linux-kernel"),
    "trap": ("host", "guest"),
    "fidelity": ("exact", "freebsd"),
    "sdt": ("2005", "2013", "2018", "2024"),
    "patch": ("stop-machine", "rendezvous", "int3-first"),
}
# Options of -x that describe the machine: programs cannot set them.
_MACHINE_OPTIONS: Final = frozenset({"boot", "fidelity", "load", "patch", "quantum", "ram", "sdt"})

# CPUs of the teaching kernel (MAXCPU in testbins/kernel/smp/smp.h).
# Bytes that -x ram may give the Linux guest.
_LEAST_RAM, _MOST_RAM = 16 << 20, 64 << 30
# Instructions that -x quantum may give a turn: a thread has to get on between two switches.
_LEAST_QUANTUM, _MOST_QUANTUM = 500, 1_000_000_000

_PREDICATE: Final = "[[ predicate ] action ]"
USAGE: Final = f"""\
Usage: dtrace [-32|-64] [-aACdeFGhHlOqSvVwZ] [--libxo style] [-b bufsz] [-c cmd]
\t[-D name[=def]] [-I path] [-L path] [-o output] [-p pid] [-s script] [-U name]
\t[-x opt[=val]] [-X a|c|s|t]

\t[-P provider {_PREDICATE}]
\t[-m [ provider: ] module {_PREDICATE}]
\t[-f [[ provider: ] module: ] func {_PREDICATE}]
\t[-n [[[ provider: ] module: ] func: ] name {_PREDICATE}]
\t[-i probe-id {_PREDICATE}] [ args ... ]

\tpredicate -> '/' D-expression '/'
\t   action -> '{{' D-statements '}}'

\t-32 generate 32-bit D programs and ELF files
\t-64 generate 64-bit D programs and ELF files

\t-a  claim anonymous tracing state
\t-A  generate directives for anonymous tracing
\t-b  set trace buffer size
\t-c  run specified command and exit upon its completion
\t-C  run preprocessor on script files
\t-d  print the programs as they are after syntactic transformations
\t-D  define symbol when invoking preprocessor
\t-e  exit after compiling request but prior to enabling probes
\t-f  enable or list probes matching the specified function name
\t-F  coalesce trace output by function
\t-G  generate an ELF file containing embedded dtrace program
\t-h  generate a header file with definitions for static probes
\t-H  print included files when invoking preprocessor
\t-i  enable or list probes matching the specified probe id
\t-I  add include directory to preprocessor search path
\t-l  list probes matching specified criteria
\t-L  add library directory to library search path
\t-m  enable or list probes matching the specified module name
\t-n  enable or list probes matching the specified probe name
\t-o  set output file
\t-O  with -x oformat: print the aggregations upon exiting
\t-p  grab specified process-ID and cache its symbol tables
\t-P  enable or list probes matching the specified provider name
\t-q  set quiet mode (only output explicitly traced data)
\t-s  enable or list probes according to the specified D script
\t-S  print D compiler intermediate code
\t-U  undefine symbol when invoking preprocessor
\t-v  set verbose mode (report stability attributes, arguments)
\t-V  report DTrace API version
\t-w  permit destructive actions
\t-x  enable or modify compiler and tracing options
\t-X  specify ISO C conformance settings for preprocessor
\t-Z  permit probe descriptions that match zero probes
\t--libxo json|xml|html|text[,pretty]
\t    the form of the output, as -x oformat

\tOptions that only Trapline has:

\t--isa x86_64|aarch64|riscv64|i386  CPU of the machine to trace (the program's, or x86_64)
\t--guest kernel|linux|linux-kernel
\t                              the guest: the teaching kernel, a Linux program without a kernel (default
\t                              if the command of -c is an ELF file), or an unmodified Linux kernel
\t                              (see trapline kernel get)
\t--root DIR                    the directory that a Linux program or a Linux kernel sees as /
\t--debug-root DIR              the folder of debug files for stripped programs (usr/lib/debug in the --root)
\t--export FILE                 also write the trace for another tool; its suffix tells the format (docs/export.md)
\t--export-format FORMAT        the format of --export: chrome, perfetto, jsonl, folded, speedscope, svg, html,
\t                              ctf, perf, ftrace, csv or parquet
\t--program-output stderr|FILE  where the program's standard output goes, so that it is not among the trace
\t--trap host|guest             who handles breakpoints: the emulator (default), or the guest's kernel
\t--console                     show the guest's console output
\t--cpus N                      the CPUs of the teaching kernel or of a Linux program, 1 to 8 (1);
\t                              docs/guests.md
\t--seed N                      a number that decides about the turns of several CPUs (0)
\t-x timeout=TIME               stop tracing after TIME, such as 10s or 500ms, of the guest's time
\t-x lines                      name the source lines of frames, and inlined functions, by DWARF
\t-x demangle                   show C++ names as they are written (needs cxxfilt)
\t-x machinecode                with -S: also print LLVM's code and the machine code of every clause
\t-x hosttimeout=TIME           stop tracing after TIME of the host's time, with exit status 1
\t-x fidelity=exact|freebsd     freebsd reproduces the bugs of FreeBSD that change the traced program,
\t                              such as FBT sites inside of RISC-V instructions or a loop
\t                              instruction that is off by one (default: exact)
\t-x ram=SIZE                   memory of a Linux guest, such as 256m or 2g (1g; linux-kernel: 256m)
\t-x quantum=N                  a thread of the Linux guest gives way after N instructions wherever it is
\t-x boot                       trace the boot of a Linux kernel too, from its drivers on
\t-x load=MODULE[,MODULE...]    load these modules of the guest's kernel before tracing begins
\t-x sdt=2005|2013|2018|2024    the mechanism of the kernel's static probes: LOCK over a nop (illumos),
\t                              a test of the probe's id, a test of a flag, or a patched nop (default
\t                              2024)
\t-x patch=stop-machine|rendezvous|int3-first
\t                              with --cpus: static probes of the kernel are patched while no CPU runs
\t                              (default), at a rendezvous of all CPUs, or in steps behind a breakpoint
\t                              while all run; the kernel calls its CPUs by interrupts for the last two
"""


class UsageError(Exception):
    """An invalid command line; the message has one line."""


class FlagError(UsageError):
    """A flag getopt() refuses; the usage text is shown after the message."""


_SPECIFIERS: Final = {specifier.value: specifier for specifier in Specifier}
_MODELS: Final = {"32": DataModel.ILP32, "64": DataModel.LP64}
_MODES: Final = {mode.value[1:]: mode for mode in Mode if mode.value}
# Modes in which a description may match nothing: they imply -Z.
_ZERO_ALLOWED: Final = frozenset({Mode.LIST, Mode.LINK, Mode.HEADER})
_SWITCHES: Final = {
    "d": "dump",
    "O": "all_aggregations",
    "S": "disassemble",
    "v": "verbose",
    "Z": "allow_zero",
}
_OPTION_FLAGS: Final = {
    "b": "bufsize",
    "C": "cpp",
    "D": "define",
    "I": "incdir",
    "L": "libdir",
    "U": "undef",
    "X": "stdc",
    "F": "flowindent",
    "H": "cpphdrs",
    "q": "quiet",
    "w": "destructive",
    "a": "grabanon",
}


def scan(argv: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """Yield the flags of a command line with their values; other words are values of flag "".

    Raises `UsageError`.
    """
    words = iter(argv)
    for word in words:
        if word == "--":
            # getopt() skips it; dtrace then treats the next word as an argument and searches for flags again.
            following = next(words, None)
            if following is not None:
                yield "", following
        elif word.startswith("--"):
            yield _long(word[2:], words)
        elif word.startswith("-") and len(word) > 1:
            yield from _short(word[1:], words)
        else:
            yield "", word


def _long(text: str, words: Iterator[str]) -> tuple[str, str | None]:
    name, value = parse_assignment(text)
    if name not in LONG:
        hint = (
            " (JSON is -x format=json or --libxo json; for other tools --export FILE)"
            if name in {"json", "jsonl"}
            else ""
        )
        raise FlagError(f"illegal option -- -{name}{hint}")
    if not LONG[name] and value is not None:
        raise FlagError(f"option doesn't take an argument -- -{name}")
    if LONG[name] and value is None and (value := next(words, None)) is None:
        raise FlagError(f"option requires an argument -- -{name}")
    return name, value


def _short(letters: str, words: Iterator[str]) -> Iterator[tuple[str, str | None]]:
    while letters:
        letter, letters = letters[0], letters[1:]
        position = SHORT.find(letter) if letter != ":" else -1
        if position < 0:
            raise FlagError(f"illegal option -- {letter}")
        if not SHORT.startswith(":", position + 1):
            yield letter, None
            continue
        value = letters or next(words, None)
        if value is None:
            raise FlagError(f"option requires an argument -- {letter}")
        yield letter, value
        return


def parse_arguments(argv: Sequence[str]) -> Request:
    """Read a command line.  Raises `UsageError`."""
    request = Request()
    machine: dict[str, str] = {}
    commands: list[str] = []
    pids: list[int] = []
    modes: list[Mode] = []
    for flag, value in scan(argv):
        text = value or ""
        if value == "" and (flag == "o" or flag in LONG):
            raise UsageError(f"{'-' if len(flag) == 1 else '--'}{flag} '': it is empty")
        if not flag:
            request.arguments.append(text)
        elif flag in _SPECIFIERS:
            request.sources.append(Source(_SPECIFIERS[flag], text))
        elif flag in _MODES:
            modes.append(_MODES[flag])
        elif flag in _SWITCHES:
            setattr(request, _SWITCHES[flag], True)
        elif flag in _OPTION_FLAGS:
            label = f"-{flag}" if value is None else f"-{flag} {text}"
            request.settings.append(Setting(label, _OPTION_FLAGS[flag], value))
        elif flag == "x":
            name, setting = parse_assignment(text)
            if name in _MACHINE_OPTIONS:
                machine[name] = _chosen(f"-x {name}", name, setting or "")
                continue
            request.settings.append(Setting(f"-x {name}", name, setting))
        elif flag == "libxo":
            request.settings.append(Setting(f"--libxo {text}", "oformat", text))
        elif flag == "c":
            commands.append(_command(text))
        elif flag == "p":
            pids.append(_pid(text))
        elif flag == "e":
            request.execute = False
        elif flag == "o":
            request.output = text
        elif flag == "help":
            request.help = True
        elif (flag + text) in _MODELS:
            request.model = _MODELS[flag + text]
        elif flag in LONG:
            machine[flag] = _chosen(f"--{flag}", flag, text)
        else:
            raise FlagError(f"illegal option -- {flag}{text}")
    if len(modes) > 1:
        raise UsageError("only one of the [-AGhlV] options can be specified at a time")
    if modes:
        request.mode = modes[0]
    if request.mode in {Mode.HEADER, Mode.LINK} and not request.sources:
        raise UsageError(f"{request.mode.value} requires one or more scripts or enabling options")
    request.export, request.export_format = machine.get("export"), machine.get("export-format")
    if request.export_format is not None and request.export is None:
        raise UsageError("--export-format needs --export FILE")
    request.allow_zero = request.allow_zero or request.mode in _ZERO_ALLOWED
    request.machine = MachineOptions(
        isa=machine.get("isa"),
        guest=machine.get("guest"),
        root=machine.get("root"),
        debug_root=machine.get("debug-root"),
        program_output=machine.get("program-output"),
        trap=machine.get("trap", "host"),
        fidelity=machine.get("fidelity", "exact"),
        sdt=machine.get("sdt", "2024"),
        patch=machine.get("patch"),
        load=tuple(filter(None, machine.get("load", "").split(","))),
        boot=_boot(machine.get("boot")),
        ram=_ram(machine.get("ram")),
        quantum=_quantum(machine.get("quantum")),
        evaltime=_evaltime(request.settings),
        cpus=_cpus(machine, "cpus"),
        seed=_cpus(machine, "seed"),
        console="console" in machine,
        commands=tuple(commands),
        pids=tuple(pids),
        environment=tuple(_environment(request.settings)),
    )
    return request


def _boot(text: str | None) -> bool:
    """Return whether -x boot was given.  Raises `UsageError`."""
    if text:
        raise UsageError(f"-x boot={text}: it has no value")
    return text is not None


def _evaltime(settings: Sequence[Setting]) -> str:
    """Return the value of option evaltime; the consumer refuses a wrong one later."""
    for setting in reversed(settings):
        if setting.name == "evaltime":
            with suppress(OptionError):
                return str(OPTIONS["evaltime"].parse(setting.value))
    return "main"


def _ram(text: str | None) -> int | None:
    """Return the bytes of -x ram.  Raises `UsageError`."""
    if text is None:
        return None
    try:
        size = parse_size(text)
    except OptionError:
        size = None
    if not isinstance(size, int) or not _LEAST_RAM <= size <= _MOST_RAM:
        raise UsageError(f"-x ram={text}: expected a size from 16m to 64g (for example 256m)")
    return size


def _quantum(text: str | None) -> int | None:
    """Return the instructions of -x quantum.  Raises `UsageError`."""
    number = None if text is None else decimal(text)
    if text is not None and (number is None or not _LEAST_QUANTUM <= number <= _MOST_QUANTUM):
        raise UsageError(
            f"-x quantum={text}: expected a number of instructions from {_LEAST_QUANTUM} to {_MOST_QUANTUM}"
        )
    return number


def _cpus(machine: Mapping[str, str], flag: str) -> int:
    """Return the number of CPUs, or their seed.  Raises `UsageError`."""
    try:
        return cpu_number(flag, machine.get(flag, str(BOUNDS[flag][0])))
    except ValueError as error:
        raise UsageError(str(error)) from None


def _pid(text: str) -> int:
    number = decimal(text)
    if number is None:
        raise UsageError(f"-p {text}: expected the number of a process of the guest")
    return number


def _command(text: str) -> str:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"-c {text}: {str(error).lower()}") from None
    if not words:
        raise UsageError("-c needs a command")
    return text


def flag_values() -> dict[str, tuple[str, ...]]:
    """Return flag -> the values that it may have, none if they cannot be listed."""
    from trapline.export.formats import FORMATS  # noqa: PLC0415  only a shell asks

    settings = [name for name in {**OPTIONS, **dict.fromkeys(_MACHINE_OPTIONS)} if name not in _CHOICES]
    settings += [f"{name}={value}" for name in sorted(_MACHINE_OPTIONS & _CHOICES.keys()) for value in _CHOICES[name]]
    return {
        **{f"-{flag}": () for flag in SHORT.replace(":", "")},
        **{f"--{name}": _CHOICES.get(name, ()) for name in LONG},
        "--export-format": tuple(FORMATS),
        "-x": tuple(sorted(settings)),
        "-X": ("a", "c", "s", "t"),
    }


def _chosen(flag: str, name: str, value: str) -> str:
    choices = _CHOICES.get(name)
    if choices is not None and value not in choices:
        raise UsageError(f"{flag} {value}: choose from {', '.join(choices)}")
    return value


def _environment(settings: Sequence[Setting]) -> Iterator[tuple[str, str | None]]:
    for setting in settings:
        if setting.name == "setenv" and setting.value:
            name, value = parse_assignment(setting.value)
            yield name, value or ""
        elif setting.name == "unsetenv" and setting.value:
            yield setting.value, None
