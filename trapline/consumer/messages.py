"""Messages of the command on standard error, and its end with a status."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NoReturn

NAME: Final = "dtrace"
SUCCESS: Final = 0
FAILURE: Final = 1


class CommandEnd(Exception):  # noqa: N818  not an error
    """The end of the command, with its status."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class Messages:
    """Messages, each behind the name of the command."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self.write = write
        """Writes text without the name of the command."""

    def say(self, text: str) -> None:
        """Print a message."""
        self.write(f"{NAME}: {text}\n")

    def fail(self, text: str) -> NoReturn:
        """Print a message, and end the command: raises `CommandEnd`."""
        self.say(text)
        raise CommandEnd(FAILURE)
