"""The output of `trapline sites`: a block for each function, a legend of rules, or JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rich.text import Text

from emu.displaced.decision import Decision, Emulated, Rule
from emu.support.did_you_mean import counted
from trapline.lab.sites.data import FunctionSites, Instruction, ProbeSite

_PROBE_STYLE = {"entry": "green", "return": "cyan"}


def text(functions: Sequence[FunctionSites]) -> Iterator[Text]:
    """Yield the report, a line at a time."""
    rows = [site.instruction for function in functions for site in function.sites]
    rows += [passed.instruction for function in functions for passed in function.passed_over]
    width = _Widths(rows)
    for function in functions:
        yield from _function(function, width)
    yield Text()
    yield from _legend(functions)
    yield _summary(functions)


class _Widths:
    """Widths of the columns, the same in every block."""

    def __init__(self, instructions: Iterable[Instruction]) -> None:
        self.offset = self.code = self.text = 0
        for instruction in instructions:
            self.offset = max(self.offset, len(f"{instruction.offset:x}"))
            self.code = max(self.code, 2 * len(instruction.code))
            self.text = max(self.text, len(instruction.text))


def _function(function: FunctionSites, width: _Widths) -> Iterator[Text]:
    title = Text(f"{function.name}", "bold").append(
        f"  {function.address:#x}, {counted(function.size, 'byte')}", "not bold dim"
    )
    if function.refusal is not None:
        yield title.append("  no probes: ", "not bold dim").append(function.refusal.name, "not bold yellow")
        return
    yield title
    lines: list[tuple[int, Text]] = []
    for site in function.sites:
        line = _start(site.probe, _PROBE_STYLE[site.probe], site.instruction, width)
        line.append(f"  {site.patch.hex()}", "red").append(f"  {site.invop_name:9}  ").append(_what(site))
        if site.remark is not None:
            line.append(f"  ({site.remark.name})", "yellow")
        lines.append((site.instruction.address, line))
    for passed in function.passed_over:
        line = _start("-", "dim", passed.instruction, width).append(f"  {passed.rule.name}", "yellow")
        lines.append((passed.instruction.address, line))
    for _address, line in sorted(lines, key=lambda entry: entry[0]):
        yield line


def _start(word: str, style: str, instruction: Instruction, width: _Widths) -> Text:
    line = Text(f"  {word:6}", style)
    line.append(f"  +{instruction.offset:<{width.offset}x}", "not bold default")
    line.append(f"  {instruction.code.hex():{width.code}}", "dim")
    return line.append(f"  {instruction.text:{width.text}}", "default")


def _what(site: ProbeSite) -> str:
    found = site.decision
    return str(found.plan) if isinstance(found, Emulated) else found.rule.why


def _rules(functions: Iterable[FunctionSites]) -> Iterator[Rule]:
    """Yield every rule in the report, once for each occurrence."""
    for function in functions:
        if function.refusal is not None:
            yield function.refusal
        yield from (site.remark for site in function.sites if site.remark is not None)
        yield from (passed.rule for passed in function.passed_over)


def _legend(functions: Sequence[FunctionSites]) -> Iterator[Text]:
    """Yield the explanations of the rules' names, the most frequent first."""
    counts = Counter(_rules(functions))
    for rule, count in counts.most_common():
        yield Text(f"{rule.name}", "yellow").append(f" ({count}): {rule.why}  [{rule.source}]", "default")
    if counts:
        yield Text()


def _summary(functions: Sequence[FunctionSites]) -> Text:
    probed = sum(not function.refusal for function in functions)
    entries = sum(site.probe == "entry" for function in functions for site in function.sites)
    total = sum(len(function.sites) for function in functions)
    return Text(
        f"{counted(len(functions), 'function')}: {probed} with probes ({counted(entries, 'entry site')}, "
        f"{counted(total - entries, 'return site')}), {len(functions) - probed} without"
    )


def summary_text(functions: Sequence[FunctionSites]) -> Iterator[Text]:
    """Yield the summary: the number of uses of each rule, and the totals."""
    yield from _legend(functions)
    yield _summary(functions)


def summary_data(functions: Sequence[FunctionSites]) -> list[dict[str, Any]]:
    """Return the number of uses of each rule, as plain data."""
    return [
        {"rule": rule.name, "count": count, "why": rule.why, "source": rule.source}
        for rule, count in Counter(_rules(functions)).most_common()
    ]


def as_data(functions: Iterable[FunctionSites]) -> list[dict[str, Any]]:
    """Return the report as plain data: an object for each function, numbers in hexadecimal."""
    return [_json_function(function) for function in functions]


def _json_function(function: FunctionSites) -> dict[str, Any]:
    return {
        "function": function.name,
        "address": f"{function.address:#x}",
        "size": function.size,
        "refusal": _json_rule(function.refusal),
        "sites": [
            {
                "probe": site.probe,
                **_json_instruction(site.instruction),
                "patch": site.patch.hex(),
                "invop": site.invop,
                "invop_name": site.invop_name,
                "displaced": {
                    "row": site.decision.rule.name,
                    "why": site.decision.rule.why,
                    "plan": _operations(site.decision),
                    "quirk": site.decision.rule.quirk or None,
                    "source": site.decision.rule.source,
                },
                "remark": _json_rule(site.remark),
            }
            for site in function.sites
        ],
        "passed_over": [
            {**_json_instruction(passed.instruction), "rule": _json_rule(passed.rule)}
            for passed in function.passed_over
        ],
    }


def _operations(decision: Decision) -> list[str] | None:
    return list(map(str, decision.plan.operations)) if isinstance(decision, Emulated) else None


def _json_instruction(instruction: Instruction) -> dict[str, Any]:
    return {
        "address": f"{instruction.address:#x}",
        "offset": instruction.offset,
        "bytes": instruction.code.hex(),
        "instruction": instruction.text,
    }


def _json_rule(rule: Rule | None) -> dict[str, str] | None:
    return None if rule is None else {"name": rule.name, "why": rule.why, "source": rule.source}
