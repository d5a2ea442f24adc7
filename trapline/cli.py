"""The command `trapline`: it finds its commands, and loads only the one that is run."""

from __future__ import annotations

import errno
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from itertools import pairwise
from typing import Any, Final, NamedTuple

import click

from emu.engine.qemu.rewriters import RewriterError, switched_off
from emu.native import NOT_INSTALLED, missing
from emu.support.did_you_mean import did_you_mean
from emu.support.one_line import one_line
from emu.unicorn_layout.errors import UnusableLibraryError
from trapline.framework.base.engines import EngineError, ProgramEngine, chosen, described
from trapline.support import process
from trapline.support.process import abandon_output
from trapline.version import installed_version


class Entry(NamedTuple):
    """A command, before its module is imported."""

    name: str
    """The name of its module in `trapline.commands`."""
    summary: str
    """One line of `trapline --help`.  It is here because importing all commands takes ten times as
    long."""


COMMANDS: Final = {
    "dtrace": Entry("dtrace_command", "Trace a guest with D programs, as dtrace(1) does."),
    "lockstat": Entry("lockstat_command", "Trace the locks of the kernel guest, as lockstat(1) does."),
    "plockstat": Entry("plockstat_command", "Trace the locks of a threaded program."),
    "uprobe": Entry("uprobe_command", "Trace a function of a Linux program with a uprobe."),
    "usdt": Entry("usdt_command", "List or trace the USDT markers of a Linux program."),
    "sites": Entry("sites_command", "Show where probes go in an ELF file, and by which rules."),
    "flame": Entry("flame_command", "Draw folded stacks as a flame graph."),
    "step": Entry("step_command", "Show one firing of a probe, step by step."),
    "gdb": Entry("gdb_command", "Let gdb debug a traced machine, with its probes."),
    "displace": Entry("displace_command", "Show what becomes of any instruction when it is probed."),
    "race": Entry("race_command", "Explore a patch that is written while other CPUs execute it."),
    "check": Entry("check_command", "Check that a program behaves the same when it is probed."),
    "object": Entry("object_command", "Compile a kernel's probe code, to be checked as it is."),
    "bench": Entry("bench_command", "Count what a probe costs, and predict it for real machines."),
    "kldstat": Entry("kldstat_command", "Show the modules of the kernel guest."),
    "kernel": Entry("kernel_command", "Fetch, boot and enter unmodified Linux kernels."),
    "oracle": Entry("oracle_command", "Compare our breakpoints with a Linux kernel's own kprobes."),
    "lab": Entry("lab_command", "Work through lab sheets on probes, and check them."),
    "doctor": Entry("doctor_command", "Say how Trapline runs on this host, and what to do about it."),
    "demo": Entry("demo_command", "Trace the kernel guest on every ISA: the first thing to run."),
}

# Exit status of a command whose output has no reader any more: 128 and SIGPIPE's number, as shells show it.
BROKEN_PIPE: Final = 141


@contextmanager
def _writing() -> Iterator[None]:
    """End the process when its output cannot be written: the one rule of all commands.

    If the reader has exited (`| head`), it ends silently, as SIGPIPE ends other tools; any other
    error, such as a full disk, is one line.  Buffered output is written first.
    """
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        abandon_output()
        sys.exit(BROKEN_PIPE)
    except OSError as error:
        abandon_output()
        # Whoever writes a file names it: an error without a name is of standard output, or of no file.
        file = error.filename or ("" if error.errno == errno.ENOMEM else "standard output")
        with suppress(OSError):
            click.echo(": ".join(filter(None, ("trapline", str(file), error.strerror or str(error)))), err=True)
        sys.exit(1)


def _advise() -> None:
    """Say what the missing extra would do: once for each user, as far as the cache keeps it."""
    from emu.support.disk_cache import cached  # noqa: PLC0415  rarely needed

    def say() -> bytes:
        advice = "pip install 'trapline[fast]'"
        click.echo(f"trapline: llvmlite is not installed, so probes fire many times more slowly: {advice}", err=True)
        return b"said"

    cached("advice", b"llvmlite", say)


def _warn() -> None:
    """Say once that this host's Unicorn is not the known one, if a command has loaded it."""
    layout = sys.modules.get("emu.unicorn_layout.layout")
    if layout is None:
        return
    from emu.support.disk_cache import cached  # noqa: PLC0415  rarely needed

    def say() -> bytes:
        click.echo(f"trapline: {warning}; `trapline doctor` says more", err=True)
        return b"said"

    warning = layout.warning()
    if warning:
        cached("advice", warning.encode(), say)


def _reads_words(command: click.Command) -> bool:
    """Return whether a command reads its words itself, as the tool does that it follows."""
    return any(parameter.type is click.UNPROCESSED for parameter in command.params)


def _refuse_empty(words: list[str]) -> None:
    """Raise `click.UsageError` for the first word, or value of an option, that is empty."""
    for before, word in pairwise(["", *words]):
        flag, separator, value = word.partition("=")
        if not word:
            raise click.UsageError(f"{before} '': it is empty" if before.startswith("-") else "an argument is empty")
        if flag.startswith("--") and separator and not value:
            raise click.UsageError(f"{flag} '': it is empty")


class LazyGroup(click.Group):
    """Commands that are imported when they are used: start-up is most of a short run."""

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """Read the arguments; this prints the help."""
        with _writing():
            return super().make_context(*args, **extra)

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """Return the names, in the order of the table."""
        return list(COMMANDS)

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands from the table: no command is imported for it."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in COMMANDS.items()])

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name not in COMMANDS:
            return None
        # The objects of modules are permanent: searching them for garbage takes a tenth of a short run.  Searching tens
        # of thousands of probes while they are created takes half of a long one.
        gc.disable()
        module = import_module(f"trapline.commands.{cmd_name}")
        process.relieve_collector()
        gc.enable()
        process.raise_at_signals()
        command: click.Command = getattr(module, COMMANDS[cmd_name].name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return a command's name, the command and its words; those of click's are not empty.

        An empty word is a variable that the shell has not set: it would name the working directory,
        or all there is.  A command that reads its words itself says what it wants.
        """
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            ctx.fail(f"No such command '{args[0]}'.{did_you_mean(args[0], COMMANDS)}")
        name, command, words = super().resolve_command(ctx, args)
        if command is not None and not _reads_words(command):
            _refuse_empty(words)
        return name, command, words

    def invoke(self, ctx: click.Context) -> object:
        """Run a command; an interrupt that it does not handle ends it as a shell expects."""
        try:
            with _writing():
                return super().invoke(ctx)
        except click.ClickException as error:
            vars(error)["message"] = one_line(error.message, "\n\t")
            raise
        except KeyboardInterrupt as end:
            why, status = process.ending(end)
            click.echo(one_line("; ".join((f"trapline: {why}", *map(str, end.args)))), err=True)
            ctx.exit(status)
        except UnusableLibraryError as error:
            click.echo(f"trapline: {error}", err=True)
            ctx.exit(1)


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
        switched_off()
    except (EngineError, RewriterError) as error:
        click.echo(f"trapline: {error}", err=True)
        ctx.exit(1)
    if version:
        click.echo(f"trapline, version {installed_version()}")
        if verbose:
            click.echo(f"engine: {described(chosen())}")
        ctx.exit()
    if ctx.invoked_subcommand is None:
        ctx.fail("Missing command.")
    if engine is ProgramEngine.REFERENCE and missing() == NOT_INSTALLED:
        _advise()
    if ctx.invoked_subcommand != "doctor":
        _warn()
