"""Tables by the name of an ISA, whose rows are in modules of that name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Generic, TypeVar

T = TypeVar("T")


class ByName(Mapping[str, T], Generic[T]):
    """A row for each name.  Its module is imported when the row is first looked up.

    A trace is of one ISA, and the modules of the others take long to import.
    """

    def __init__(self, package: str, names: Sequence[str], attribute: str | None = None) -> None:
        """`attribute` is a row in the module `package.name`; None: it is the name in capitals."""
        self._package = package
        self._names = tuple(names)
        self._attribute = attribute
        self._rows: dict[str, T] = {}

    def __getitem__(self, name: str) -> T:
        """Raise KeyError for a name that is not in the table."""
        if name not in self._rows:
            if name not in self._names:
                raise KeyError(name)
            self._rows[name] = getattr(import_module(f"{self._package}.{name}"), self._attribute or name.upper())
        return self._rows[name]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
