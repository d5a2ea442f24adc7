"""The request of a dtrace command as data: its programs, its settings, and the machine to trace."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from emu.support.immutable import immutable
from trapline.framework.base.program import DataModel


class Mode(Enum):
    """The task of a dtrace command."""

    TRACE = ""
    ANONYMOUS = "-A"
    HEADER = "-h"
    LINK = "-G"
    LIST = "-l"
    VERSION = "-V"


class Specifier(Enum):
    """The first field of a description on the command line; a script has none."""

    SCRIPT = "s"
    NAME = "n"
    FUNCTION = "f"
    MODULE = "m"
    PROVIDER = "P"
    ID = "i"


@immutable
class Source:
    """One program: a description with its text, or a script with its path."""

    specifier: Specifier
    text: str

    @property
    def kind(self) -> str:
        """Its kind in messages."""
        return "script" if self.specifier is Specifier.SCRIPT else "description"

    @property
    def name(self) -> str:
        """Its name in messages: the path of a script, a description up to its predicate or body."""
        if self.specifier is Specifier.SCRIPT:
            return self.text
        return self.text[: next((i for i, mark in enumerate(self.text) if mark in "{/;"), len(self.text))]


@immutable
class Setting:
    """An option given by a flag."""

    flag: str
    """Its name in messages: `-x bufsize`, `-b 4q`."""
    name: str
    value: str | None


@immutable
class MachineOptions:
    """The machine to trace: Trapline's own flags, and -c."""

    isa: str | None = None
    """None: that of the program, x86_64 for the kernel."""
    guest: str | None = None
    """`kernel`, `linux` or `linux-kernel`; None: as the command of -c demands, else the kernel."""
    root: str | None = None
    debug_root: str | None = None
    """Folder of debug files; None: usr/lib/debug in the root."""
    program_output: str | None = None
    """The destination of the program's output: "stderr" or a file; None: standard output."""
    trap: str = "host"
    fidelity: str = "exact"
    sdt: str = "2024"
    """Generation of SDT that the kernel is built with."""
    patch: str | None = None
    """How static probes of a kernel with several CPUs are patched; None: while no CPU runs."""
    load: tuple[str, ...] = ()
    """Modules that the kernel, or its boot loader, loads before tracing begins."""
    console: bool = False
    boot: bool = False
    """Whether tracing begins during the boot of a Linux kernel."""
    ram: int | None = None
    """Size in bytes of a Linux guest's memory; None: the guest's default."""
    quantum: int | None = None
    """Instructions of a thread's turn in the Linux guest; None: its scheduler's own."""
    evaltime: str = "main"
    """The point in the start of a Linux program at which probes are created."""
    cpus: int = 1
    """CPUs of the teaching kernel or of a Linux program."""
    seed: int = 0
    """Decides about the turns of several CPUs."""
    commands: tuple[str, ...] = ()
    """The commands of -c."""
    pids: tuple[int, ...] = ()
    """The processes of -p."""
    environment: tuple[tuple[str, str | None], ...] = ()
    """Changes to the environment of the commands, in order (-x setenv, unsetenv); None: not set."""


@dataclass(slots=True)
class Request:
    """A command line as data."""

    mode: Mode = Mode.TRACE
    sources: list[Source] = field(default_factory=list)
    settings: list[Setting] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)
    """The words that are not flags: $1, $2 ..."""
    export: str | None = None
    """The file of --export."""
    export_format: str | None = None
    machine: MachineOptions = field(default_factory=MachineOptions)
    output: str | None = None
    execute: bool = True
    """Whether probes are enabled: not with -e."""
    disassemble: bool = False
    verbose: bool = False
    allow_zero: bool = False
    help: bool = False
    dump: bool = False
    """Whether the programs are printed after they were transformed (-d)."""
    all_aggregations: bool = False
    """Whether -x oformat shows the aggregations at the end (-O)."""
    model: DataModel | None = None
    """The data model of the programs; None: that of the machine."""
