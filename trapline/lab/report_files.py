"""Reports as files, whose suffix selects the form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from trapline.support import output_files
from trapline.support.output_files import OutputError

_Subject = TypeVar("_Subject")


@dataclass(frozen=True, slots=True)
class ReportForms(Generic[_Subject]):
    """The forms of a report about one kind of subject."""

    writers: Mapping[str, Callable[[_Subject], str]]
    """Suffix of a file -> the function that makes its content."""

    def writer(self, path: str | Path) -> Callable[[_Subject], str]:
        """Return the writer of reports for a file, which can be written.

        Raises `OutputError`: call it before a long check.
        """
        suffix = Path(path).suffix.lower()
        if suffix not in self.writers:
            known = ", ".join(self.writers)
            raise OutputError(f"{path}: cannot write reports as '{suffix}'; name a file that ends in {known}")
        output_files.prepare(path)
        return self.writers[suffix]

    def write(self, subject: _Subject, path: str | Path) -> None:
        """Write a report into a file, in the form of its suffix.  Raises `OutputError`."""
        output_files.write(path, self.writer(path)(subject))
