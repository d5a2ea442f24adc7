"""The findings of a check of the user's objects, as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

# The offset of an instruction that is in no function.
NO_OFFSET: Final = -1


@dataclass(frozen=True, slots=True)
class Difference:
    """A place where the user's code and the package's rules disagree."""

    kind: str
    """The kind: "only theirs", "only ours", "differs", "displaced" or "arguments"."""
    function: str
    offset: int
    probe: str
    instruction: str
    what: str
    where: str = ""
    """The line of the user's code that made it so, "" if it is not known."""
    row: str = ""
    """What differences of one cause share, besides kind and line: a rule of the table, a mnemonic."""

    @property
    def cause(self) -> tuple[str, str, str]:
        """The kind, the line and the row: equal for all differences of one cause."""
        return self.kind, self.where, self.row

    @property
    def place(self) -> str:
        """The name of the place for users."""
        return self.function if self.offset == NO_OFFSET else f"{self.function}+{self.offset:#x}"


@dataclass(frozen=True, slots=True)
class Failure:
    """A call of the user's code that did not end well."""

    subject: str
    what: str
    where: str
    code: bytes = b""
    """The bytes of the function that was made for the call; empty if none was made."""


@dataclass(frozen=True, slots=True)
class BadAccess:
    """Bad accesses of one instruction of the user's code."""

    what: str
    where: str
    size: int
    subject: str
    """The function or encoding that was examined at the first access."""
    count: int


@dataclass(frozen=True, slots=True)
class Coverage:
    """The lines of a source file that ran."""

    file: str
    lines: int
    """The number of lines that have code."""
    missed: Sequence[int]
    """The lines that have code and did not run."""

    @property
    def percent(self) -> float:
        """The percentage of the lines that ran."""
        return 100 * (self.lines - len(self.missed)) / self.lines if self.lines else 100.0


@dataclass
class ObjectReport:
    """The result of a check."""

    objects: str
    isa: str
    glue: str
    target: str = ""
    counts: dict[str, int] = field(default_factory=dict)
    """The numbers of examined things, by the words of the report."""
    differences: list[Difference] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    accesses: list[BadAccess] = field(default_factory=list)
    coverage: list[Coverage] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """One sentence about each thing that was examined, where the counts do not say it."""
    omitted: list[str] = field(default_factory=list)
    """One sentence about each part of the check that was left out."""

    @property
    def same(self) -> bool:
        """Whether the check has no findings."""
        return not (self.differences or self.failures or self.accesses)

    def as_data(self) -> Mapping[str, Any]:
        """Return the report as plain data for JSON."""
        return {
            "objects": self.objects,
            "isa": self.isa,
            "glue": self.glue,
            "target": self.target,
            "same": self.same,
            "counts": self.counts,
            "differences": [
                {
                    "kind": one.kind,
                    "function": one.function,
                    "offset": one.offset,
                    "probe": one.probe,
                    "instruction": one.instruction,
                    "what": one.what,
                    "where": one.where,
                    "row": one.row,
                }
                for one in self.differences
            ],
            "failures": [
                {"subject": one.subject, "what": one.what, "where": one.where, "bytes": one.code.hex()}
                for one in self.failures
            ],
            "accesses": [
                {"what": one.what, "where": one.where, "size": one.size, "subject": one.subject, "count": one.count}
                for one in self.accesses
            ],
            "coverage": [
                {"file": one.file, "lines": one.lines, "missed": list(one.missed), "percent": round(one.percent, 1)}
                for one in self.coverage
            ],
            "notes": self.notes,
            "omitted": self.omitted,
        }
