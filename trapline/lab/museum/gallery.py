"""The museum's exhibits, found by name and printed."""

from __future__ import annotations

import pkgutil
import textwrap
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Final

from emu.isa.disassembly import Syntax, disassemble
from emu.support.did_you_mean import did_you_mean
from trapline.lab.museum import displaced, in_c, patched
from trapline.lab.museum.exhibit import Exhibit

_WIDTH: Final = 100


class MuseumError(Exception):
    """An exhibit cannot be found; the message says why, on one line."""


def exhibits() -> dict[str, Exhibit]:
    """Return the exhibits by name: `EXHIBIT` of every module in the folders of exhibits."""
    modules = (
        import_module(f"{folder.__name__}.{module.name}")
        for folder in (displaced, patched)
        for module in pkgutil.iter_modules(folder.__path__)
    )
    found: list[Exhibit] = [module.EXHIBIT for module in modules]
    return {exhibit.name: exhibit for exhibit in found}


def find(name: str) -> Exhibit:
    """Return the exhibit of a name.  Raises `MuseumError`."""
    known = exhibits()
    if name not in known:
        raise MuseumError(f"no exhibit '{name}'{did_you_mean(name, known, ' (--museum list names them)')}")
    return known[name]


def listing() -> Iterator[str]:
    """Yield a line for each exhibit.  Raises `MuseumError`."""
    known = exhibits()
    width = max(map(len, known))
    for name, exhibit in known.items():
        yield f"{name:{width}}  {exhibit.isa_name:7}  {exhibit.provider:6}  {exhibit.title}"


def show(name: str, echo: Callable[[str], object], syntax: Syntax = Syntax.INTEL) -> int:
    """Print an exhibit with both verdicts, or the list of all; return the exit status.

    It is 0 if the old rule fails and the right one does not, and their C likewise.  Raises
    `MuseumError`.
    """
    if name == "list":
        for line in listing():
            echo(line)
        return 0
    exhibit = find(name)
    old, right = exhibit.run()
    for line in _label(exhibit, syntax):
        echo(line)
    echo("")
    shown = [("old rule", exhibit.was, old), ("right rule", exhibit.now, right)]
    if exhibit.glue:
        file = f"{in_c.source(exhibit)}, by --glue {exhibit.glue}"
        shown.append(("old C", f"{file}, with -DBUGGY", in_c.verdict(exhibit, wrong=True)))
        shown.append(("right C", file, in_c.verdict(exhibit, wrong=False)))
    for title, rule, verdict in shown:
        echo(f"{title + ':':12}{rule}")
        echo(f"{'':12}{'agrees' if verdict.agrees else 'DIVERGES'}")
        for line in verdict.lines:
            echo(f"{'':14}{line}")
    wrong, corrected = [one for _, _, one in shown[::2]], [one for _, _, one in shown[1::2]]
    silent = any(one.agrees for one in wrong)
    if silent or not all(one.agrees for one in corrected):
        echo(f"{name}: " + ("the old rule shows nothing" if silent else "the right rule fails as well"))
        return 1
    return 0


def _label(exhibit: Exhibit, syntax: Syntax) -> Iterator[str]:
    yield f"{exhibit.name}: {exhibit.title}"
    yield f"{exhibit.system}"
    yield f"shown here on {exhibit.isa_name}, with the rules of {exhibit.provider}"
    for paragraph in exhibit.description:
        yield ""
        yield from textwrap.wrap(paragraph, _WIDTH, break_long_words=False)
    yield ""
    yield from exhibit.references
    yield ""
    for at, size, text in disassemble(exhibit.isa, exhibit.code, 0, syntax):
        yield f"  +{at:#04x}  {exhibit.code[at : at + size].hex():18}  {text}"
