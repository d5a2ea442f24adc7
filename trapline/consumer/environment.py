"""The environment of the command: a machine to trace, streams to write to, a shell."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from emu.guest.base import Guest
from trapline.consumer.client import File
from trapline.consumer.output import Writer
from trapline.consumer.program.compile import Provide, provide_nothing
from trapline.consumer.request import MachineOptions
from trapline.d.types.names import Foreign, NoNames
from trapline.framework.base.program import Program


class Framework(Protocol):
    """The opener of devices: `trapline.framework.device.dtrace.DTrace`."""

    def open(self) -> File:
        """Open a device for one consumer."""
        ...


@dataclass(slots=True)
class TracedMachine:
    """A machine to trace."""

    guest: Guest
    dtrace: Framework
    target: Callable[[], int] = lambda: 0
    """Returns the pid of the first command of -c or process of -p ($target); 0: there is none.

    The guest may have to run to the start of that process.  Raises `emu.guest.base.GuestError`.
    """
    provide: Provide = provide_nothing
    """Makes the probes of processes that a description names."""
    ended: Callable[[], Sequence[str]] = tuple
    """Returns a message for each command of -c that ended since the last call: `pid 5 has exited`."""
    killed: Callable[[], bool] = bool
    """Returns whether a signal has ended the command of -c, which quiet does not hide."""
    foreign: Foreign = field(default_factory=NoNames)
    """The traced system's types and symbols."""
    libraries: tuple[str, ...] = ()
    """Directories of trapline/dlib for this machine."""


class MachineError(Exception):
    """A machine that cannot be opened; the message names the cause and the remedy."""


def _shell(command: str) -> None:
    """Run a command of the traced program with the shell of this host; -w allowed it."""
    subprocess.run(command, shell=True, check=False)  # noqa: S602


def _keep() -> None:
    """Leave the output to its owner."""


@dataclass(slots=True)
class CommandEnvironment:
    """The environment of the command."""

    open_machine: Callable[[MachineOptions], TracedMachine]
    """Builds and boots the machine.  Raises `MachineError` or OSError."""
    stdout: Writer
    stderr: Writer
    system: Callable[[str], None] = _shell
    """Runs a command of system()."""
    machine_code: Callable[[Program, Mapping[str, int]], Iterable[str]] | None = None
    """Lists the machine code of a program for the options that were set; None: it has none."""
    abandon_output: Callable[[], None] = _keep
    """Discards what is left of the standard output, after an error in writing it was reported."""
