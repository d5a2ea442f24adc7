"""The commands `trapline kernel`: unmodified Linux kernels to trace."""

from __future__ import annotations

import os
import select
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from emu.engine.time.clock import NANOSECONDS
from emu.guest.base import GuestError, RunState
from emu.guest.linux_kernel.errors import KernelFileError
from emu.guest.linux_kernel.files import store
from emu.guest.linux_kernel.machine import snapshot
from emu.guest.linux_kernel.machine.machine import LinuxKernelMachine
from emu.guest.linux_kernel.platforms.boards import BOARDS
from emu.isa import ISAS
from trapline.commands.shared import say
from trapline.machine.linux_kernel_machine import LinuxKernelOptions, command_line, machine_of
from trapline.support import kernel_packages

_isa_option: Callable[[Any], Any] = click.option("--isa", type=click.Choice(list(BOARDS)), required=True)
_root_option: Callable[[Any], Any] = click.option(
    "--root", type=click.Path(path_type=Path), help="The directory for the initial file system, instead of busybox."
)
# The guest's time between two reads of the keyboard, and the time that the host waits for a key while the guest is
# idle.
_TURN = NANOSECONDS // 50
_WAIT = 0.02


@contextmanager
def _one_line() -> Iterator[None]:
    """Turn errors into one line, after the kernel's log if there is one."""
    try:
        yield
    except KernelFileError as error:
        raise click.ClickException(str(error)) from None
    except GuestError as error:
        raise click.ClickException(error.report()) from None


@click.group("kernel")
def kernel_command() -> None:
    """Fetch, boot and enter unmodified Linux kernels (dtrace --guest linux-kernel traces them)."""


@kernel_command.command("get")
@click.argument("isa", type=click.Choice(list(BOARDS)))
@click.option("--image", type=click.Path(path_type=Path), help="Store this kernel: an Image, a bzImage or a vmlinux.")
@click.option("--busybox", type=click.Path(path_type=Path), help="A static busybox for the ISA (default: Debian's).")
@click.option("--modules", type=click.Path(path_type=Path), help="The folder of the modules of --image.")
@click.option("--suite", default=kernel_packages.DEFAULT_SUITE, show_default=True, help="Debian's release.")
@click.option("--package", help="The kernel's Debian package (default: the newest of the suite).")
def get_command(
    isa: str, image: Path | None, busybox: Path | None, modules: Path | None, suite: str, package: str | None
) -> None:
    """Fetch a Debian kernel for ISA with apt, or take a file, and keep it.

    \b
    trapline kernel get riscv64
    trapline kernel get x86_64 --image /boot/vmlinuz
    """  # noqa: D301  (click reads the backspace: lines as they are)

    def report(text: str) -> None:
        say(text, err=True)

    with _one_line():
        if image is not None:
            kept = kernel_packages.take(ISAS[isa], image, busybox=busybox, modules=modules, suite=suite, report=report)
        else:
            kept = kernel_packages.get(ISAS[isa], suite=suite, package=package, report=report)
    say(f"Linux {kept.image.release} for {ISAS[isa].title} is stored in {kept.busybox.parent}")


@kernel_command.command("list")
def list_command() -> None:
    """List the kernels that are kept."""
    kernels = store.all_stored()
    for kernel in kernels:
        say(f"{kernel.image.isa:10} {kernel.image.release:32} {kernel.source}")
    if not kernels:
        click.echo("no kernels are stored; fetch one with: trapline kernel get ISA", err=True)


@kernel_command.command("boot")
@_isa_option
@_root_option
@click.option("--append", default="", help="Parameters to add to the kernel's command line.")
@click.option("-c", "command", default="", help="A command for the kernel's shell.")
def boot_command(isa: str, root: Path | None, append: str, command: str) -> None:
    """Boot a kernel from its first instruction, show what it prints, and say what it took."""
    with _one_line():
        options = LinuxKernelOptions(ISAS[isa], root=root, append=append, quiet=False, console=_show)
        machine = machine_of(options)
        machine.load()
        began = time.perf_counter()
        machine.boot()
        took = time.perf_counter() - began
        instructions, at = machine.engine.instructions, machine.clock.now()
        machine.command(command_line((command,) if command else ()))
        machine.run(None)
    click.echo(
        f"user space after {instructions:,} instructions, {at / NANOSECONDS:.2f} s of its own time, "
        f"{took:.2f} s here ({instructions / took / 1e6:.0f} million instructions a second)",
        err=True,
    )
    raise SystemExit(machine.status or 0)


@kernel_command.command("shell")
@_isa_option
@_root_option
def shell_command(isa: str, root: Path | None) -> None:
    """Boot a kernel and connect the terminal with its shell; `exit` switches it off."""
    with _one_line():
        machine = machine_of(LinuxKernelOptions(ISAS[isa], root=root, console=_show))
        snapshot.booted(machine)
        machine.command(b"stty sane; setsid cttyhack sh -i\n")
        with _raw(sys.stdin.fileno()):
            _connect(machine, sys.stdin.fileno())
    raise SystemExit(machine.status or 0)


def _show(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.flush()


@contextmanager
def _raw(terminal: int) -> Iterator[None]:
    """Pass each key on unchanged, if there is a terminal."""
    if not os.isatty(terminal):
        yield
        return
    before = termios.tcgetattr(terminal)
    tty.setraw(terminal)
    try:
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def _connect(machine: LinuxKernelMachine, keyboard: int) -> None:
    """Run a machine, and pass the keyboard input to it."""
    is_open = True
    while machine.run(machine.clock.now() + _TURN) is not RunState.FINISHED:
        if is_open and select.select([keyboard], [], [], _WAIT if machine.idle else 0)[0]:
            data = os.read(keyboard, 4096)
            is_open = bool(data)
            machine.type(data or b"exit\n")
