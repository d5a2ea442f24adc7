"""A recording as text for a terminal: the stages of each firing, or every step."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any, Final

from rich.text import Text

from emu.support.did_you_mean import counted
from trapline.lab.step.recording import Access, Firing, Mode, Recording, Stage, Step

_PER_LINE: Final = 4
# Steps of a stage that are shown one by one.
_MOST: Final = 24
# The order of the stages in the text.
_ORDER: Final = (
    Stage.PATCHED, Stage.EXCEPTION, Stage.FRAME, Stage.CHAIN, Stage.PROBE, Stage.CLAUSE, Stage.DISPLACED, Stage.RETURN,
    Stage.RESUME,
)  # fmt: skip
# Fields of the trap frame are shown if no more than these were read or written.
_FEW: Final = 6


def as_json(recordings: Sequence[Recording]) -> str:
    """Return recordings as JSON: one object, or a list of them."""
    found = [recording.data() for recording in recordings]
    return json.dumps(found[0] if len(found) == 1 else found, indent=1)


def as_json_lines(recordings: Sequence[Recording]) -> str:
    """Return recordings as JSON lines: each step, with its firing's number, probe and ISA."""
    rows = []
    for recording in recordings:
        for number, firing in enumerate(recording.data()["firings"], start=1):
            head = {"isa": recording.isa, "firing": number, "probe": firing["probe"], "pid": firing["pid"]}
            rows += [json.dumps(head | step) for step in firing["steps"]]
    return "".join(f"{row}\n" for row in rows)


def text(recording: Recording, *, every_step: bool = False) -> Iterator[Text]:
    """Yield the lines of a recording."""
    yield from _patching(recording)
    for number, firing in enumerate(recording.firings, start=1):
        if number > 1:
            yield Text()
        yield Text.assemble(
            (firing.probe, "bold"),
            f" on {recording.isa}, {recording.trap_path} trap path",
            no_wrap=True,
            overflow="ignore",
        )
        yield from _every_step(recording, firing) if every_step else _stages(recording, firing)
    if recording.ending:
        yield Text()
        yield Text.assemble(("how it ended: ", "bold red"), recording.ending)
    for note in recording.notes:
        yield Text(note, style="dim")


def _patching(recording: Recording) -> Iterator[Text]:
    if not recording.enabling:
        return
    yield Text("enabling", style="bold")
    for step in recording.enabling:
        yield Text.assemble("   ", (step.where, "green"), f"  {step.sentence}")
    yield Text()


def _rounds(firing: Firing) -> tuple[int, int]:
    """Return the number of steps up to the resume, and how often the probe fires again behind it."""
    stages = [step.stage for step in firing.steps]
    resumed = stages.index(Stage.RESUME) + 1 if Stage.RESUME in stages else len(stages)
    again = sum(step.stage is Stage.PROBE and step.text == firing.probe for step in firing.steps[resumed:])
    return (resumed, again) if again else (len(stages), 0)


def _stages(recording: Recording, firing: Firing) -> Iterator[Text]:
    whole = firing
    first, again = _rounds(firing)
    firing = replace(firing, steps=firing.steps[:first])
    number = 0
    for stage in _ORDER:
        steps = firing.of(stage)
        if not steps:
            continue
        number += 1
        yield Text()
        executed = sum(bool(step.code) for step in steps) if stage in _GUEST else 0
        yield Text.assemble((f"{number}. {stage.value}", "bold cyan"), _count(executed))
        shown = steps if stage in _GUEST else steps[:_MOST]
        yield from _TELLERS[stage](recording, firing, shown)
        if len(shown) < len(steps) and stage is not Stage.RESUME:
            yield Text(f"   and {len(steps) - len(shown)} steps more, which --steps shows")
        yield from (Text(f"   step {step.index}: {step.fault}", style="bold red") for step in steps if step.fault)
    if again:
        yield Text()
        times = f"{again} times" if again > 1 else "once"
        yield Text(f"Then the probe fires again, {times} in this recording; --steps shows that.")
    yield from (Text(f"   step {one.index}: {one.fault}", style="bold red") for one in whole.steps[first:] if one.fault)
    if recording.fault:
        return
    yield Text()
    yield Text.assemble((f"{number + 1}. {Stage.DISABLED.value}", "bold cyan"))
    if firing.listing.get("after") == firing.listing.get("before"):
        yield Text("   The program has ended, its probe is disabled, and the bytes are back.")
    else:
        yield Text("   The program has ended; the bytes of its process are as they were last.")
    yield from _listing(firing, ("after",))


# Stages in which the guest's own kernel works: their instructions are counted.
_GUEST: Final = frozenset({Stage.FRAME, Stage.DISPLACED, Stage.RETURN})


def _count(instructions: int) -> str:
    if not instructions:
        return ""
    return f"  ({counted(instructions, 'guest instruction')})"


def _listing(firing: Firing, names: Sequence[str]) -> Iterator[Text]:
    for name in names:
        if firing.listing.get(name):
            yield Text.assemble("   ", (name, "green"))
            yield from (Text(f"     {line}") for line in firing.listing[name])


def _told(_recording: Recording, _firing: Firing, steps: Sequence[Step]) -> Iterator[Text]:
    """Every step's own sentence and facts."""
    for step in steps:
        if step.code:
            yield Text.assemble("     ", (f"{step.where:<32} ", "green"), step.text)
            yield Text(f"       {step.sentence}")
        else:
            yield Text(f"   {step.sentence}")
        yield from _facts(step.facts)


def _patched(_recording: Recording, firing: Firing, steps: Sequence[Step]) -> Iterator[Text]:
    for step in steps:
        yield Text(f"   {step.sentence}")
        if step.patch is None:
            continue
        yield from _facts(
            {
                "at": step.patch.where,
                "address": step.patch.address,
                "before": f"{step.patch.before.hex(' ')}  {step.patch.before_text}",
                "after": f"{step.patch.after.hex(' ')}  {step.patch.after_text}",
            }
        )
    yield from _listing(firing, ("before", "enabled"))


def _exception(recording: Recording, _firing: Firing, steps: Sequence[Step]) -> Iterator[Text]:
    for step in steps:
        yield Text(f"   {step.sentence}")
        yield from _changes(recording, step.registers)
        yield from _memory(step.memory)


def _frame(_recording: Recording, firing: Firing, steps: Sequence[Step]) -> Iterator[Text]:
    if firing.frame is None:
        yield from (Text(f"   {step.sentence}") for step in steps if not step.code)
        return
    yield Text("   The kernel's vector saves the registers in a trap frame on the kernel's stack.")
    words: dict[str, int | str] = {} if firing.frame is None else {"frame": firing.frame}
    exceptions = firing.of(Stage.EXCEPTION)
    for step in (*exceptions, *steps):
        for access in step.memory:
            if access.write and access.name and "`" not in access.name:
                words[access.name] = access.value
    yield from _facts(words)


def _chain(_recording: Recording, _firing: Firing, steps: Sequence[Step]) -> Iterator[Text]:
    yield Text("   Each handler is asked whether the breakpoint is its own; 0 means no.")
    for step in steps:
        if "answer" in step.facts:
            name = step.text.removesuffix(" answers")
            yield Text.assemble("   ", (name, "green"), f"  {step.facts['answer']:#x}  {step.facts['meaning']}")


def _displaced(recording: Recording, firing: Firing, steps: Sequence[Step]) -> Iterator[Text]:
    planned = [step for step in steps if "plan" in step.facts]
    if planned:
        yield Text("   The emulator carries out the displaced instruction's plan on the CPU's registers.")
        yield from _facts(planned[0].facts)
    for step in steps:
        if step.mode is Mode.EMULATOR and "plan" not in step.facts:
            yield Text(f"   {step.sentence}")
    if any(step.code and not step.out_of_line for step in steps):
        work = "works on" if recording.fault else "does the displaced instruction's work on"
        yield Text(f"   The kernel's stub {work} the trap frame.")
    copies = [step for step in steps if step.out_of_line]
    if copies:
        yield Text("   A copy of the displaced instruction runs out of line, and leads back.")
    for step in copies:
        yield Text.assemble("     ", (f"{step.where:<32} ", "green"), f"{step.code.hex(' '):<24}  {step.text}")
    yield from _changes(recording, _net(recording, firing))
    writes = [access for step in steps for access in step.memory if access.write and not _in_frame(access)]
    most = _MOST if recording.fault else len(writes)
    yield from _memory(writes[:most])
    if len(writes) > most:
        yield Text(f"   and {len(writes) - most} writes more, which --steps shows")


def _in_frame(access: Access) -> bool:
    return bool(access.name) and "`" not in access.name


def _net(recording: Recording, firing: Firing) -> Mapping[str, tuple[int, int]]:
    """Return the registers that are different at the resume."""
    now = dict(firing.registers)
    for step in takewhile(lambda step: step.stage is not Stage.RESUME, firing.steps):
        now.update({name: after for name, (_, after) in step.registers.items()})
    del recording
    return {name: (value, now[name]) for name, value in firing.registers.items() if now[name] != value}


def _resume(_recording: Recording, _firing: Firing, steps: Sequence[Step]) -> Iterator[Text]:
    for step in steps[:1]:
        yield Text(f"   {step.sentence}")
        yield from _facts({"pc": step.pc, "in": step.where, "next": step.text})
    if len(steps) > 1:
        yield Text("   Some instructions behind it are recorded, too; --steps shows them.")


def _every(recording: Recording, _firing: Firing, steps: Sequence[Step]) -> Iterator[Text]:
    for step in steps:
        yield Text.assemble("     ", (f"{step.where:<32} ", "green"), step.text)
        yield Text(f"       {step.sentence}")
    del recording


_TELLERS: Final = {
    Stage.PATCHED: _patched,
    Stage.EXCEPTION: _exception,
    Stage.FRAME: _frame,
    Stage.CHAIN: _chain,
    Stage.PROBE: _told,
    Stage.CLAUSE: _told,
    Stage.DISPLACED: _displaced,
    Stage.RETURN: _every,
    Stage.RESUME: _resume,
}


def _changes(recording: Recording, changes: Mapping[str, tuple[int, int]]) -> Iterator[Text]:
    digits = 2 * recording.word + 2
    for name, (before, after) in changes.items():
        yield Text.assemble(
            "   ", (f"{name:>8}", "green"), f"  {before:#0{digits}x} -> ", (f"{after:#0{digits}x}", "yellow")
        )


def _memory(accesses: Sequence[Access]) -> Iterator[Text]:
    for access in accesses:
        if not access.write:
            continue
        where = f"[{access.address:#x}]" + (f" {access.name}" if access.name else "")
        if access.changes:
            yield Text.assemble("   ", (where, "green"), f"  {access.before:#x} -> ", (f"{access.value:#x}", "yellow"))
        else:
            yield Text.assemble("   ", (where, "green"), f"  {access.value:#x}, as before")


def _facts(facts: Mapping[str, Any]) -> Iterator[Text]:
    if len(facts) > 2 * _PER_LINE:  # registers: several to a line
        cells = [f"{name:>7} {_value(value)}" for name, value in facts.items()]
        for start in range(0, len(cells), _PER_LINE):
            yield Text("   " + "  ".join(cell.ljust(26) for cell in cells[start : start + _PER_LINE]).rstrip())
        return
    width = max(map(len, facts), default=0)
    for name, value in facts.items():
        yield Text.assemble("   ", (name.ljust(width), "green"), f"  {_value(value)}")


def _value(value: Any) -> str:
    return f"{value:#x}" if isinstance(value, int) else str(value)


def _every_step(recording: Recording, firing: Firing) -> Iterator[Text]:
    stage: Stage | None = None
    for step in firing.steps:
        if step.stage is not stage:
            stage = step.stage
            yield Text()
            yield Text(stage.value, style="bold cyan")
        line = f"; {step.source.file}:{step.source.line}  {step.source.text}" if step.source else ""
        yield Text.assemble(f"{step.index:5}  ", (f"{step.where:<34} ", "green"), f"{step.text:<44} ", (line, "dim"))
        yield Text(f"       {step.sentence}")
        if step.fault:
            yield Text(f"       {step.fault}", style="bold red")
        yield from _changes(recording, {n: c for n, c in step.registers.items() if n != recording.pc})
        yield from _memory(step.memory)
