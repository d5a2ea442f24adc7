"""Reports as files, whose suffix selects the form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

_Subject = TypeVar("_Subject")


class ReportFileError(Exception):
    """A report that cannot be written: the message says why, on one line."""


@dataclass(frozen=True, slots=True)
class ReportForms(Generic[_Subject]):
    """The forms of a report about one kind of subject."""

    writers: Mapping[str, Callable[[_Subject], str]]
    """Suffix of a file -> the function that makes its content."""

    def writer(self, path: str | Path) -> Callable[[_Subject], str]:
        """Return the writer of reports for a file name.

        Raises `ReportFileError`: call it before a long check.
        """
        suffix = Path(path).suffix.lower()
        if suffix not in self.writers:
            known = ", ".join(self.writers)
            raise ReportFileError(f"{path}: cannot write reports as '{suffix}'; name a file that ends in {known}")
        return self.writers[suffix]

    def write(self, subject: _Subject, path: str | Path) -> None:
        """Write a report into a file, in the form of its suffix.  Raises `ReportFileError`."""
        content = self.writer(path)(subject)
        try:
            Path(path).write_text(content, encoding="utf-8")
        except OSError as error:
            raise ReportFileError(f"{path}: {(error.strerror or str(error)).lower()}") from None
