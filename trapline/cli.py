"""The command `trapline`: it finds its commands, and loads only the one that is run."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any, Final

import click

import trapline
from trapline.framework.engines import EngineError, chosen, described

# Command -> its name in the module of `trapline.commands` that is called as the command is.
COMMANDS: Final = {
    "dtrace": "dtrace_command",
    "lockstat": "lockstat_command",
    "uprobe": "uprobe_command",
    "usdt": "usdt_command",
    "sites": "sites_command",
    "step": "step_command",
    "check": "check_command",
    "plockstat": "plockstat_command",
    "kldstat": "kldstat_command",
    "kernel": "kernel_command",
    "oracle": "oracle_command",
    "demo": "demo_command",
}

# Exit status of a command that the user interrupts: 128 and the signal's number.
INTERRUPTED: Final = 130
# Exit status of a command whose output nobody reads any more: 128 and SIGPIPE's number, as shells show it.
BROKEN_PIPE: Final = 141


@contextmanager
def _writing() -> Iterator[None]:
    """End the process when its output cannot be written: the one rule of all commands.

    If the reader has exited (`| head`), it ends silently, as SIGPIPE ends other tools; any other
    error, such as a full disk, is one line.  What is still buffered is written first.
    """
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        _abandon_output()
        sys.exit(BROKEN_PIPE)
    except OSError as error:
        _abandon_output()
        place = error.filename or "standard output"
        with suppress(OSError):
            click.echo(f"trapline: {place}: {error.strerror or error}", err=True)
        sys.exit(1)


def _abandon_output() -> None:
    """Discard the rest of the output: the interpreter writes its buffer when it ends."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


class LazyGroup(click.Group):
    """Commands that are imported when they are used: start-up is most of a short run."""

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """Read the arguments; this prints the help."""
        with _writing():
            return super().make_context(*args, **extra)

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """Return the names, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name not in COMMANDS:
            return None
        # What modules make stays: looking through it for garbage, now and later, takes a tenth of a short run.
        # Looking through tens of thousands of probes while they are made takes half of a long one.
        gc.disable()
        module = import_module(f"trapline.commands.{cmd_name}")
        gc.freeze()
        gc.set_threshold(100_000, 20, 20)
        gc.enable()
        command: click.Command = getattr(module, COMMANDS[cmd_name])
        return command

    def invoke(self, ctx: click.Context) -> object:
        """Run a command; an interrupt that it does not handle ends it as a shell expects."""
        try:
            with _writing():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("trapline: interrupted", err=True)
            ctx.exit(INTERRUPTED)


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    invoke_without_command=True,
    no_args_is_help=True,
    subcommand_metavar="COMMAND [ARGS]...",
)
@click.option("--version", is_flag=True, help="Show the version and exit; with -v, also what runs D programs.")
@click.option("-v", "verbose", is_flag=True, help="With --version: say more.")
@click.pass_context
def main(ctx: click.Context, *, version: bool, verbose: bool) -> None:
    """Probes in running code, shown: patch, trap, displaced instruction, D.

    `trapline dtrace` is dtrace(1) on an emulated machine; the others show what happens underneath.
    """
    try:
        engine = chosen()
    except EngineError as error:
        click.echo(f"trapline: {error}", err=True)
        ctx.exit(1)
    if version:
        click.echo(f"trapline, version {trapline.__version__}")
        if verbose:
            click.echo(f"engine: {described(engine)}")
        ctx.exit()
    if ctx.invoked_subcommand is None:
        ctx.fail("Missing command.")
