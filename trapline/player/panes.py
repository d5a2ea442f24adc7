"""The panes of the player in a terminal: what is known at a step, as lines.

A mark of its own stands beside each colour: the panes are complete without colours, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Final

from textual.content import Content

from trapline.lab.step.recording import Cost, Stage
from trapline.player.model import FiringModel

SOFT: Final = "dim"
LIT: Final = "bold $text-warning"
NEW: Final = "bold $text-accent"
HERE: Final = "reverse"
# The words for the numbers of `Cost`.
_COSTS: Final = {
    "instructions": "instructions of the guest",
    "accesses": "accesses to memory",
    "traps": "traps",
    "handlers": "handlers asked",
    "dif": "instructions of DIF",
}


@dataclass(frozen=True, slots=True)
class Shown:
    """The lines of a pane, and the line that should be in view."""

    lines: Sequence[Content]
    here: int | None = None
    prose: bool = False
    """Whether long lines are wrapped; of code and tables the end is cut."""

    def content(self) -> Content:
        """Return the lines as one text."""
        return Content("\n").join(self.lines)


def _soft(text: str) -> Content:
    return Content.styled(text, SOFT)


def _hex(code: bytes) -> str:
    return code.hex(" ")


def _last(present: Sequence[bool]) -> int | None:
    """Return the index of the last one that is true."""
    return next((position for position in range(len(present) - 1, -1, -1) if present[position]), None)


def code(model: FiringModel, index: int) -> Shown:
    """Return the instructions of the present symbol; of a patched one the bytes before and after."""
    at = model.instruction(index)
    executing = bool(model.steps[index].code)
    lines = [_soft(f"{at.where.partition('+')[0]}: what is executed of it")]
    end, here = None, None
    for step in model.code(index):
        if end is not None and step.pc != end:
            lines.append(_soft("  ..."))
        end = step.pc + len(step.code)
        present = step.pc == at.pc
        here = len(lines) if present else here
        text = f"+{step.where.partition('+')[2] or '0':<5} {'~' if step.out_of_line else ' '}{step.text}  "
        parts: list[str | Content | tuple[str, str]] = [
            ">" if present and executing else "-" if present else " ",
            (text, HERE if present and executing else ""),
        ]
        if step.patch is not None:
            parts += [(_hex(step.patch.before), f"strike {SOFT}"), " -> ", (_hex(step.code), NEW)]
        else:
            parts.append((_hex(step.code), SOFT))
        lines.append(Content.assemble(*parts))
    if any(step.out_of_line for step in model.code(index)):
        lines.append(_soft("~ exists only because of the probe"))
    if at.source is not None:
        lines += [Content(""), _soft(f"{at.source.file}:{at.source.line}"), Content(f"  {at.source.text}")]
    return Shown(lines, here)


def registers(model: FiringModel, index: int) -> Shown:
    """Return all registers; those that the present step changes have a star and their value before."""
    values, changed = model.registers(index), model.steps[index].registers
    digits = 2 + 2 * model.recording.word
    lines = []
    # Those that change come first: they are in sight whatever number of registers an ISA has.
    for name in sorted(model.recording.registers, key=lambda name: name not in changed):
        value = f"{values.get(name, 0):#0{digits}x}"
        if name in changed:
            was = f"  was {changed[name][0]:#x}"
            lines.append(Content.assemble(f"{name:>8} ", (f"{value} *", LIT), (was, SOFT)))
        else:
            lines.append(Content.assemble((f"{name:>8} ", SOFT), value))
    return Shown(lines)


def stack(model: FiringModel, index: int) -> Shown:
    """Return the stack with the fields of the trap frame, from the top; * is written, r is read."""
    words = model.stack(index)
    if not words:
        return Shown([_soft("Nothing of the stack has been used yet.")])
    size, digits = model.recording.word, 2 + 2 * model.recording.word
    lines: list[Content] = []
    here, above = None, None
    for word in words:
        if above is not None and above - word.address != size:
            lines.append(_soft("..."))
        above = word.address
        if word.written or word.read:
            here = len(lines)
        mark = "*" if word.written else "r" if word.read else " "
        value = f"{word.value:#0{digits}x}"
        lines.append(
            Content.assemble(
                f"{mark} ", (f"{_short(word.address)} ", SOFT), (value, LIT if word.written else ""), f" {word.field}",
                (f" <- {', '.join(word.marks)}" if word.marks else "", NEW),
            )
        )  # fmt: skip
    return Shown(lines, here)


def _short(address: int) -> str:
    """Return an address by its low half: the high one is that of all the stack."""
    return f"{address:#010x}" if address < 1 << 32 else f"..{address & 0xFFFFFFFF:08x}"


def chain(model: FiringModel, index: int) -> Shown:
    """Return the handlers that have been asked, and what they have answered."""
    asked = model.asked(index)
    lines = [
        Content.assemble(
            "> " if one.present else "  ", (f"{one.name:<24} ", HERE if one.present else ""),
            ("asked", SOFT) if one.answer is None else (f"{one.answer:#x} {one.meaning}", NEW if one.answer else SOFT),
        )
        for one in asked
    ] or [_soft("No handler has been asked yet.")]  # fmt: skip
    return Shown(lines, _last([one.present for one in asked]))


def probe(model: FiringModel, index: int) -> Shown:
    """Return the probe with its arguments, once it has fired."""
    firing, fired = model.firing, model.fired(index)
    if fired is None:
        return Shown([_soft("The probe has not fired yet.")])
    width = max(map(len, fired.facts), default=0)
    lines = [Content(f"{firing.probe} in {firing.execname}, pid {firing.pid}")]
    lines += [
        Content.assemble((f"{name:<{width}}  ", SOFT), f"{value:#x}" if isinstance(value, int) else value)
        for name, value in fired.facts.items()
    ]
    return Shown(lines)


def dif(model: FiringModel, index: int) -> Shown:
    """Return the clause, its instructions of DIF so far, %r0 to %r7, and the record."""
    done = [(position, step) for position, step in enumerate(model.steps[: index + 1]) if step.dif is not None]
    lines = [Content(line) for line in model.recording.clause.splitlines()]
    if not done:
        return Shown([*lines, _soft("No DIF has been executed.")])
    here, last = None, ""
    for position, step in done:
        assert step.dif is not None
        if step.dif.object != last:
            last = step.dif.object
            lines.append(_soft(last))
        here = len(lines) if position == index else here
        text = f"{step.dif.offset:02}  {step.dif.text}"
        lines.append(Content.assemble("> " if position == index else "  ", (text, HERE if position == index else "")))
        held = [f"%r{number} {value:#x}" for number, value in enumerate(step.dif.registers) if value]
        if position == done[-1][0] and held:
            lines.append(Content.styled("    " + ", ".join(held), LIT))
    records = [step.facts["record"] for step in model.steps[: index + 1] if "record" in step.facts]
    lines += [Content(f"record: {record}") for record in records]
    return Shown(lines, here)


def function(model: FiringModel, index: int) -> Shown:
    """Return the probed function before the patch, and as it is now."""
    listing = model.firing.listing
    now = "after" if model.steps[index].stage is Stage.DISABLED else "enabled"
    lines: list[Content] = []
    before = frozenset(listing.get("before", ()))  # a line begins with its address
    for name in ("before", now):
        lines.append(_soft(name))
        for line in listing.get(name, ()):
            same = line in before
            lines.append(Content.assemble("  " if same else "* ", (line, "" if same else NEW)))
    return Shown(lines)


def cost(model: FiringModel, index: int) -> Shown:
    """Return the cost of the firing so far."""
    spent = model.steps[index].cost
    return Shown([Content(f"{getattr(spent, one.name):6}  {_COSTS[one.name]}") for one in fields(Cost)])


def run(model: FiringModel, others: Sequence[tuple[str, FiringModel]], index: int) -> Shown:
    """Return the same stage elsewhere, how the run ended, notes, and the output of dtrace."""
    lines: list[Content] = []
    for label, other in others:
        position = model.aligned(index, other)
        if position is None:
            lines.append(_soft(f"{label}: this stage does not occur"))
            continue
        step = other.steps[position]
        lines.append(Content.assemble((f"{label}, step {position}: ", SOFT), step.text))
        lines.append(Content(f"  {step.sentence}"))
    recording = model.recording
    if recording.ending:
        lines.append(Content.assemble(("how it ended: ", "bold"), recording.ending))
    lines += [_soft(note) for note in recording.notes]
    lines += [_soft("what dtrace prints:"), *map(Content, recording.output.splitlines())] if recording.output else []
    return Shown(lines or [_soft(f"{recording.guest}: {recording.command}")], prose=True)


# Name -> the pane of one model.
PANES: Final[dict[str, Callable[[FiringModel, int], Shown]]] = {
    "Code": code,
    "Registers": registers,
    "Stack, trap frame and written memory": stack,
    "Handler chain": chain,
    "Probe": probe,
    "D and DIF": dif,
    "Function, before and now": function,
    "Cost so far": cost,
}
