"""The report as text: the verdict first, then the counts, then each difference."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from rich.text import Text

from emu.support.did_you_mean import counted
from emu.support.one_line import one_line
from trapline.lab.check.report import facts
from trapline.lab.check.report.facts import EncodingsSummary, Trouble
from trapline.lab.check.results import RunResult, Tally
from trapline.lab.check.site.compare import WHY_LEFT_OUT, Divergence, Outcome

STYLES: Final = {
    Outcome.AGREED: "green",
    Outcome.DIVERGED: "bold red",
    Outcome.REFUSED: "yellow",
    Outcome.UNREPEATABLE: "cyan",
    Outcome.CRASHED: "bold magenta",
    Outcome.FAILED: "bold magenta",
}
# The number of rules that are shown: the most frequent ones.
_RULES: Final = 12
_PER_LINE: Final = 4


def as_text(tally: Tally) -> str:
    """Return the report, without colours."""
    return "".join(f"{line.plain.rstrip()}\n" for line in lines(tally))


def trouble_text(trouble: Trouble) -> str:
    """Return the text about one site."""
    return "\n".join(line.plain.rstrip() for line in _safe(_trouble(trouble))).strip()


def lines(tally: Tally) -> Iterator[Text]:
    """Yield the report, a line at a time."""
    return _safe(_lines(tally))


def _safe(found: Iterable[Text]) -> Iterator[Text]:
    """Yield single lines, in which a hostile file's names cannot control the terminal."""
    for line in found:
        line.plain = one_line(line.plain)
        yield line


def _lines(tally: Tally) -> Iterator[Text]:
    yield Text(facts.verdict(tally), "yellow" if tally.empty else "bold green" if tally.same else "bold red")
    yield from (Text(f"left out: {what}", "yellow") for what in tally.omitted)
    yield from _counts(tally)
    yield from _refusals(tally)
    for trouble in facts.troubles(tally):
        yield Text()
        yield from _trouble(trouble)
    for run in tally.runs:
        yield Text()
        yield from _run(run)
    for summary in facts.encodings(tally):
        yield Text()
        yield from _encodings(summary)
    if rate := facts.rate(tally):
        yield Text()
        yield Text(rate, "dim")


def _counts(tally: Tally) -> Iterator[Text]:
    if not tally.sites:
        return
    yield Text()
    for outcome in Outcome:
        if count := tally.outcomes[outcome]:
            yield (
                Text(f"{count:>12,}  ")
                .append(f"{outcome.value:12}", STYLES[outcome])
                .append(f"  {facts.MEANING[outcome]}", "dim")
            )
    if tally.left_out:
        yield Text(f"{tally.left_out:>12,}  states left out: {WHY_LEFT_OUT}", "dim")


def _refusals(tally: Tally) -> Iterator[Text]:
    if not tally.refusals:
        return
    yield Text()
    yield Text("refused by rule", "bold")
    ranked = tally.refusals.most_common()
    for rule, count in ranked[:_RULES]:
        yield Text(f"{count:>12,}  ").append(rule, "yellow")
    if rest := ranked[_RULES:]:
        yield Text(f"{sum(count for _, count in rest):>12,}  by {counted(len(rest), 'more rule')}", "dim")


def _trouble(trouble: Trouble) -> Iterator[Text]:
    result = trouble.result
    yield (
        Text(result.outcome.value, STYLES[result.outcome])
        .append(f"  {trouble.title}", "bold")
        .append(f"  {trouble.provider} in {trouble.file}", "not bold dim")
    )
    yield Text(f"  {trouble.instruction}", "cyan").append(f"  [{trouble.code.hex()}]", "dim")
    if result.why:
        yield Text(f"  {result.why}")
    for divergence in result.divergences:
        yield from _divergence(divergence)


def _divergence(divergence: Divergence) -> Iterator[Text]:
    yield Text(f"  {divergence.way}", "bold").append(f", smallest state (from: {divergence.state.kind})", "not bold")
    words = facts.state_words(divergence) or [("all registers", "0")]
    for first in range(0, len(words), _PER_LINE):
        line = Text("    ")
        for name, value in words[first : first + _PER_LINE]:
            line.append(f"{name}", "green").append(f"={value}  ", "default")
        yield line
    for difference in divergence.differences:
        yield (
            Text("    ")
            .append(f"{difference.what}: ", "bold")
            .append(difference.original, "not bold")
            .append(" became ", "dim")
            .append(difference.patched, "not bold red")
        )


def _run(run: RunResult) -> Iterator[Text]:
    numbers = [counted(run.instructions, "instruction"), counted(run.fired, "firing")]
    yield (
        Text("run ", "bold")
        .append(run.name)
        .append(f"  {facts.run_verdict(run)}", "not bold green" if run.passed else "bold red")
        .append(f"  {', '.join([*numbers, *filter(None, [run.status])])}", "not bold dim")
    )
    for difference in run.differences:
        yield Text(f"  {difference}")
    if run.culprit:
        yield Text(f"  first: {run.culprit}", "bold")


def _encodings(summary: EncodingsSummary) -> Iterator[Text]:
    classes = ", ".join(f"{count:,} {name}" for name, count in summary.classes)
    yield (
        Text("encodings ", "bold")
        .append(summary.title)
        .append(f"  {summary.encodings:,}" + (f": {classes}" if classes else ""), "not bold dim")
    )
    for row in summary.unreached:
        yield Text(f"  never reached: {row}", "red")
    for disagreement in summary.disagreements:
        yield Text(f"  disagrees: {disagreement}", "red")
