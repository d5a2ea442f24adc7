"""Completion by a shell: values in lists, and the flags that a command reads itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import click
from click.shell_completion import CompletionItem

_Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def _items(names: Iterable[str], begun: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in names if name.startswith(begun)]


def offering(names: Callable[[], Iterable[str]]) -> _Complete:
    """Return a completion of values, separated by commas, of which the last is completed."""

    def complete(_ctx: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
        before, comma, last = begun.rpartition(",")
        return [CompletionItem(f"{before}{comma}{one.value}") for one in _items(names(), last)]

    return complete


def getopt_flags(short: str, long: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the flags that getopt(3) reads, each with no values."""
    return dict.fromkeys(
        [*(f"-{flag}" for flag in short.replace(":", "")), *(f"--{one.rstrip('=')}" for one in long)], ()
    )


class TracerCommand(click.Command):
    """A command that reads its words itself, as the tool does that it follows.

    `flags` returns flag -> its values.
    """

    def __init__(self, *args: Any, flags: Callable[[], Mapping[str, Iterable[str]]], **extra: Any) -> None:
        super().__init__(*args, **extra)
        self.flags = flags

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the flags that begin with a word."""
        return _items(self.flags(), incomplete) or super().shell_complete(ctx, incomplete)


def complete_word(ctx: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Return the values of the flag before a word; if none are known it may be a file."""
    assert isinstance(ctx.command, TracerCommand)
    assert parameter.name is not None
    before = (ctx.params.get(parameter.name) or ("",))[-1]
    return _items(ctx.command.flags().get(before, ()), begun) or [CompletionItem(begun, type="file")]
