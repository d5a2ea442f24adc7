"""The output of `trapline displace`: lines of text, or plain data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any, Final

from rich.text import Text

from emu.support.did_you_mean import counted
from trapline.lab.displace.bench import DisplacedInstruction
from trapline.lab.displace.decisions import NOT_A_SITE, ProviderDecision
from trapline.lab.displace.run import Executed, Run

# The version of the data that `--format json` prints.
VERSION: Final = 1
_STYLES: Final = {
    "emulated": "green",
    "out of line": "cyan",
    "single-stepped": "cyan",
    "refused": "yellow",
    "not a site": "dim",
}


def as_text(found: Iterable[DisplacedInstruction], missing: Iterable[str] = ()) -> Iterator[Text]:
    """Yield the report, a line at a time; `missing`: the providers that the ISA lacks."""
    for number, one in enumerate(found):
        if number:
            yield Text()
        length = counted(one.length, "byte")
        yield (
            Text(f"{one.address:#x}  ", "dim")
            .append(one.code, "red")
            .append(f"  {one.text}", "bold not dim")
            .append(f"  ({length})", "not bold dim")
        )
        for decision in one.decisions:
            yield from _decision(decision)
    for provider in sorted(missing):
        yield Text(f"(there is no {provider} on this ISA)", "dim")


def _decision(decision: ProviderDecision) -> Iterator[Text]:
    probe = f" {decision.probe} probe," if decision.probe else ""
    line = Text(f"  {decision.provider:7}", "default").append(f"{decision.what:15}", _STYLES[decision.what])
    patch = f"{decision.patch} is written," if decision.patch else ""
    errno = f"errno {decision.errno}: " if decision.errno else ""
    yield line.append(f"{patch}{probe} {errno}{decision.how}".strip().replace("  ", " "), "default")
    indent = " " * 24
    if decision.copy is not None and decision.copy.relocation:
        yield Text(f"{indent}the copy: {decision.copy.code}  {decision.copy.text}", "default")
    if decision.rule == NOT_A_SITE.name:
        return
    reason = "" if decision.what in {"refused", "not a site"} else f": {decision.why}"
    yield Text(f"{indent}{decision.rule}{reason}  [{decision.source}]", "dim")
    if decision.quirk:
        yield Text(f"{indent}the real system: {decision.quirk}", "yellow")
    for other in decision.differs:
        yield Text(f"{indent}{other}", "yellow")


def as_data(isa: str, found: Iterable[DisplacedInstruction]) -> dict[str, Any]:
    """Return the report as plain data: addresses are numbers, bytes are hexadecimal."""
    return {
        "version": VERSION,
        "isa": isa,
        "instructions": [asdict(one) | {"length": one.length} for one in found],
    }


def run_as_text(found: Run) -> Iterator[Text]:
    """Yield what a run did, a line at a time."""
    if found.bias:
        yield Text(f"it ran {found.bias:#x} higher than it was assembled for: there is no code below that", "dim")
        yield Text()
    for one in found.executed:
        yield Text(f"{one.address:#x}  ", "dim").append(f"{one.text}", "bold not dim")
        for change in one.changes:
            line = f"  {change.what:8} {change.before:#x} -> {change.after:#x}"
            yield Text(line, "default")
        if one.end:
            yield Text(f"  end: {one.end}", "default")
        yield from _probed(one)
    yield Text()
    yield Text(f"it stopped: {found.stopped}")


def _probed(one: Executed) -> Iterator[Text]:
    """Yield what was the same under which providers, and what was not."""
    same = [f"{each.provider} {each.how}" for each in one.probed if each.probed and not each.differences]
    if same:
        yield Text("  the same: ", "green").append(", ".join(same), "default")
    unprobed = [each.provider for each in one.probed if not each.probed]
    if unprobed:
        yield Text(f"  not probed: {', '.join(unprobed)}", "dim")
    for each in one.probed:
        for difference in each.differences:
            yield Text(f"  NOT the same: {each.provider} {each.how}: ", "red").append(difference, "default")


def run_as_data(found: Run) -> dict[str, Any]:
    """Return what a run did as plain data."""
    return asdict(found) | {"same": found.same}
