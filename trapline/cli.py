"""The command `trapline`: finds its commands, and loads only the one that is run."""

from __future__ import annotations

from importlib import import_module
from typing import Final

import click

import trapline

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
    "demo": "demo_command",
}

# Exit status of a command that the user interrupts: 128 and the signal's number.
INTERRUPTED: Final = 130


class LazyGroup(click.Group):
    """Commands that are imported when somebody asks for them: start-up is most of a short run."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """Return the names, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"trapline.commands.{cmd_name}")
        command: click.Command = getattr(module, COMMANDS[cmd_name])
        return command

    def invoke(self, ctx: click.Context) -> object:
        """Run a command; an interrupt that it has no use for ends it as a shell expects."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("trapline: interrupted", err=True)
            ctx.exit(INTERRUPTED)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(trapline.__version__, prog_name="trapline")
def main() -> None:
    """Probes in running code, shown: patch, trap, displaced instruction, D.

    `trapline dtrace` is dtrace(1) on an emulated machine; the others show what happens underneath.
    """
