"""The stages of one firing, made from what `trapline.lab.recorder` saw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trapline.framework.program import ProbeDescription
from trapline.lab.code_text import CodeText
from trapline.lab.guests import SteppedGuest
from trapline.lab.hit import CpuSnapshot, Hit, MemoryChange


class StepError(Exception):
    """A firing cannot be shown; the message says why."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of a firing.

    `facts` are what is known then (ints are addresses or values, shown in hex), `registers` what
    changed since the stage before as (before, after), `instructions` what the guest executed since
    then.
    """

    title: str
    text: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    registers: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    memory: tuple[MemoryChange, ...] = ()
    instructions: int = 0
    code: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Disassemblies, by when: what memory holds of the probed function around the site."""


def _changes(before: CpuSnapshot, after: CpuSnapshot) -> dict[str, tuple[int, int]]:
    return {
        name: (value, after.registers[name])
        for name, value in before.registers.items()
        if after.registers[name] != value
    }


def stages(guest: SteppedGuest, hit: Hit, description: ProbeDescription, words: CodeText) -> tuple[Stage, ...]:
    """Return the stages from the patched bytes to the resume.  Raises `StepError`."""
    return (
        _patch(guest, hit, words),
        _exception(guest, hit, words),
        _frame(hit),
        _chain(guest, hit),
        _probe(guest, hit, description, words),
        _displaced(guest, hit, words),
        _resume(guest, hit, words),
    )


def _patch(guest: SteppedGuest, hit: Hit, words: CodeText) -> Stage:
    tracepoint = next(point for point in guest.patcher.listing() if point.address == hit.address)
    size = max(len(tracepoint.patch), guest.isa.instruction_length(guest.patcher.original(hit.address, 8)))
    before = guest.patcher.original(hit.address, size)
    after = tracepoint.patch + before[len(tracepoint.patch) :]
    shown = tracepoint.patch + guest.patcher.original(hit.address, 16)[len(tracepoint.patch) :]
    return Stage(
        "patched bytes",
        f"{tracepoint.owner} wrote a breakpoint over the first {len(tracepoint.patch)} of "
        f"{size} bytes of the instruction.",
        {
            "at": words.place(hit.address),
            "address": hit.address,
            "before": f"{before.hex(' ')}  {words.instruction(before, hit.address)}",
            "after": f"{after.hex(' ')}  {words.instruction(shown, hit.address)}",
        },
    )


def _exception(guest: SteppedGuest, hit: Hit, words: CodeText) -> Stage:
    pc = hit.trapped.registers[guest.isa.registers.pc]
    return Stage(
        "exception",
        guest.isa.traps.exception,
        {"pc": pc, "in": words.place(pc), "sp": hit.trapped.registers[guest.isa.registers.sp]},
    )


def _frame(hit: Hit) -> Stage:
    if hit.frame_address is None or hit.asked_at is None:
        return Stage(
            "trap frame",
            "The emulator handles the trap itself: no frame is built, the handlers read the CPU's registers.",
            dict(hit.trapped.registers),
        )
    return Stage(
        "trap frame",
        "The CPU entered the kernel's vector, whose code saved the registers on the kernel stack "
        "and called dtrace_invop().",
        {"frame": hit.frame_address, **hit.frame},
        _changes(hit.trapped, hit.asked_at),
        instructions=hit.asked_at.instructions - hit.trapped.instructions,
    )


def _chain(guest: SteppedGuest, hit: Hit) -> Stage:
    answers = {asked.handler: asked.answer for asked in hit.asked}
    kind = "an invop code" if guest.isa.stub.by_code else "the saved instruction word"
    return Stage(
        "handler chain",
        f"dtrace_invop() asks each handler whether the address is its own; 0 means no, any other answer is {kind}.",
        answers,
    )


def _probe(guest: SteppedGuest, hit: Hit, description: ProbeDescription, words: CodeText) -> Stage:
    firing = hit.firings[-1]
    thread = guest.thread()
    return Stage(
        "probe",
        f"dtrace_probe({firing.probe_id}, ...) fires {description} in {thread.execname}, pid {thread.pid}.",
        {f"arg{index}": value for index, value in enumerate(firing.arguments)}
        | ({"caller": words.place(firing.caller)} if firing.caller else {}),
    )


def _displaced(guest: SteppedGuest, hit: Hit, words: CodeText) -> Stage:
    original = guest.patcher.original(hit.address, 8)
    end = hit.resumed or hit.trapped
    executed = 0
    text = "The emulator carries out the displaced instruction's plan on the CPU's registers."
    if hit.returning and hit.asked_at:  # on the guest trap path
        executed = hit.returning.instructions - hit.asked_at.instructions
        text = "The kernel's stub emulates the displaced instruction on the saved frame, and restores the registers."
    if hit.plan is None:
        text = "A copy of the displaced instruction runs elsewhere, and leads back."
    return Stage(
        "displaced instruction",
        text,
        {"instruction": words.instruction(original, hit.address), "plan": str(hit.plan or "the copy")},
        _changes(hit.trapped, end),
        tuple(hit.memory),
        executed,
    )


def _resume(guest: SteppedGuest, hit: Hit, words: CodeText) -> Stage:
    if hit.resumed is None:
        raise StepError("the guest never resumed after the breakpoint")
    pc = hit.resumed.registers[guest.isa.registers.pc]
    executed = hit.resumed.instructions - hit.returning.instructions if hit.returning else 0
    return Stage(
        "resume",
        "Execution goes on as if the displaced instruction had run in its place.",
        {"pc": pc, "in": words.place(pc), "next": words.instruction(guest.patcher.original(pc, 16), pc)},
        instructions=executed,
    )


def disabled(code: bytes, start: int, hit: Hit, words: CodeText) -> Stage:
    """Return the last stage: what memory holds of the function once its probe is disabled."""
    return Stage(
        "disabled",
        "The program has ended, its probe is disabled, and the bytes are back.",
        code={"after": words.listing(code, start, hit.address)},
    )
