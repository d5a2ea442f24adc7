"""The rules under test: the package's own, or those of a user who tries a change.

    trapline check ./a.out --rules mymodule:MyAarch64

names a Python object, which may be

* a `providers.fasttrap.port.Port`, `providers.uprobes.port.Port` or `providers.fbt.port.Port`: an
  ISA's part of a provider;
* an `emu.displaced.decision.DisplacedTable`: the decisions of FBT's stub;
* a subclass of `emu.probe.patcher.Patcher`, which writes the breakpoints;
* a `Rules`, with several of these.

Another object that can be called without arguments is called, and its result is used.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import providers.fasttrap
import providers.fasttrap.port
import providers.fbt
import providers.fbt.port
import providers.uprobes
import providers.uprobes.port
from emu.displaced.decision import DisplacedTable
from emu.isa import ISAS
from emu.probe.patcher import CodeMemory, Patcher
from emu.support.did_you_mean import did_you_mean
from providers.fidelity import Fidelity


class RulesError(Exception):
    """Rules that cannot be loaded; the message says why, on one line."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules to check; None: those of the package."""

    pid: providers.fasttrap.port.Port | None = None
    uprobe: providers.uprobes.port.Port | None = None
    fbt: providers.fbt.port.Port | None = None
    displaced: DisplacedTable | None = None
    patcher: Callable[[CodeMemory], Patcher] = Patcher
    method: str = ""
    """How it is written while other CPUs run (`trapline.lab.race.methods`); "": the right way."""
    fidelity: Fidelity = Fidelity.EXACT
    """The fidelity of the package's own rules, and of the providers."""

    @property
    def own(self) -> bool:
        """Whether they are the package's own, true to the CPU."""
        return self == Rules()


# Type of an object -> the part of the rules that it is.
_FIELDS: Final[tuple[tuple[type, str], ...]] = (
    (providers.fasttrap.port.Port, "pid"),
    (providers.uprobes.port.Port, "uprobe"),
    (providers.fbt.port.Port, "fbt"),
    (DisplacedTable, "displaced"),
)


def as_rules(thing: Any) -> Rules:
    """Return the rules of an object.  Raises `RulesError`."""
    if isinstance(thing, Rules):
        return thing
    for kind, field in _FIELDS:
        if isinstance(thing, kind):
            parts: dict[str, Any] = {field: thing}
            return Rules(**parts)
    if isinstance(thing, type) and issubclass(thing, Patcher):
        return Rules(patcher=thing)
    if callable(thing):
        return as_rules(thing())
    kinds = ", ".join(f"{kind.__module__}.{kind.__name__}" for kind, _ in _FIELDS)
    raise RulesError(f"a {type(thing).__name__} cannot be used as rules: give one of {kinds}, Patcher, Rules")


# Part of the rules -> the package's own, by ISA.
_OWN: Final[dict[str, Mapping[str, object]]] = {
    "pid": providers.fasttrap.PORTS,
    "uprobe": providers.uprobes.PORTS,
    "fbt": providers.fbt.PORTS,
    "displaced": {name: isa.stub for name, isa in ISAS.items()},
}


def _pieces(part: Any) -> set[int]:
    """Return the identities of the parts of a port or a table: its functions, or its rows."""
    if isinstance(part, DisplacedTable):
        return {id(row) for row in part.rows}
    return {id(value) for value in (getattr(part, one.name) for one in fields(part)) if callable(value)}


def check_isa(rules: Rules, name: str, isa_name: str, path: Path) -> None:
    """Refuse rules that were made from another ISA's.  Raises `RulesError`."""
    for field, own in _OWN.items():
        part = getattr(rules, field)
        if part is None:
            continue
        pieces = _pieces(part)
        near = [one for one, port in own.items() if pieces & _pieces(port)]
        if near and isa_name not in near:
            raise RulesError(
                f"{name}: these rules are made from those of {' and '.join(near)}, but {path} is for {isa_name}"
            )


def load_rules(text: str) -> Rules:
    """Return the rules that "module:object" names; modules of the current directory are found.

    Raises `RulesError`.
    """
    module_name, colon, name = text.partition(":")
    if not colon or not module_name or not name:
        raise RulesError(f"'{text}' does not name rules: write module:object")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        thing: Any = import_module(module_name)
    except Exception as error:  # noqa: BLE001  a user's module may fail in any way
        raise RulesError(f"{module_name} cannot be imported: {type(error).__name__}: {error}") from None
    for part in name.split("."):
        if not hasattr(thing, part):
            raise RulesError(f"{module_name} has no '{name}'{did_you_mean(part, dir(thing))}")
        thing = getattr(thing, part)
    return as_rules(thing)
