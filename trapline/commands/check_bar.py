"""The progress bar of `trapline check`."""

from __future__ import annotations

from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from emu.support.did_you_mean import counted


class _Rate(ProgressColumn):
    """Site-states per second."""

    def render(self, task: Task) -> Text:
        """Render the rate, once there is one."""
        return Text(f"{task.speed:,.0f}/s" if task.speed else "", "progress.data.speed")


class Bar:
    """The progress bar: site-states, their rate, and the time left."""

    def __init__(self, *, shown: bool) -> None:
        console = Console(stderr=True)
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), _Rate(), TimeRemainingColumn())
        self._progress = Progress(*columns, console=console, disable=not shown)
        self._task = self._progress.add_task("checking", total=None)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def begin(self, total: int, done: int) -> None:
        """Set the amount of work."""
        self._progress.update(self._task, total=total, completed=done)

    def advance(self, states: int) -> None:
        """Add to the finished work."""
        self._progress.advance(self._task, states)

    def runs(self, left: int) -> None:
        """Show that whole runs are in progress, whose length is unknown."""
        self._progress.update(self._task, description=f"{counted(left, 'whole run')} left")
