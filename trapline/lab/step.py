"""One firing, step by step: what `trapline step` shows, as data.

The stages are made from what `trapline.lab.recorder` saw; nothing here is made up, and nothing is
printed (see `step_report`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from capstone import Cs

from emu.guest.kernel.guest import KernelGuest, TrapPath
from trapline.d.compiler import CompileContext, Form, compile_program
from trapline.dof import encode
from trapline.framework.program import ProbeDescription
from trapline.lab.recorder import Hit, MemoryChange, Recorder, RecordingFramework, RecordingTraps, Snapshot
from trapline.machine.kernel_machine import KernelOptions, boot, kernel_guest
from trapline.options import Options

_AFTER: Final = 3
# Of a disassembly: instructions after the site, and in all.
_LINES: Final = 8


class StepError(Exception):
    """Nothing can be shown; the message says why."""


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


@dataclass(frozen=True, slots=True)
class Stepped:
    """A firing taken apart."""

    isa: str
    trap_path: str
    probe: str
    stages: tuple[Stage, ...]


class _Names:
    """Addresses and bytes in words."""

    def __init__(self, guest: KernelGuest) -> None:
        self._guest = guest
        self._decoder = Cs(*guest.isa.capstone)

    def place(self, address: int) -> str:
        """Return module`function+0xoffset."""
        found = self._guest.locate(address)
        if found is None or not found.symbol:
            return f"{address:#x}"
        return f"{found.module}`{found.symbol}" + (f"+{found.offset:#x}" if found.offset else "")

    def instruction(self, code: bytes, address: int) -> str:
        """Disassemble the first instruction of some bytes."""
        return self._first(code, address)[1]

    def _first(self, code: bytes, address: int) -> tuple[int, str]:
        for _address, size, mnemonic, operands in self._decoder.disasm_lite(code, address, 1):
            return size, f"{mnemonic} {operands}".strip()
        refused = self._guest.isa.refused
        if refused is not None and len(code) > 1 and refused(code):  # debuggers show the prefix and the rest
            size, text = self._first(code[1:], address + 1)
            return size + 1, f"lock {text}"
        return 1, "?"

    def listing(self, code: bytes, start: int, site: int) -> tuple[str, ...]:
        """Disassemble a function up to a few instructions after a site; of a long way there the end."""
        lines: list[str] = []
        at, after = 0, 0
        while at < len(code) and after < _AFTER:
            size, text = self._first(code[at : at + 16], start + at)
            after += start + at > site
            lines.append(f"<+{at}>".ljust(8) + f"{self.hexadecimal(code[at : at + size]):<24}  {text}")
            at += size
        return tuple(lines[-_LINES:])

    def hexadecimal(self, code: bytes) -> str:
        """Return bytes as they stand in memory."""
        return code.hex(" ")


def step(clause: str, options: KernelOptions) -> Stepped:
    """Run a kernel guest to the first firing of a D clause's probe for which its predicate holds, and take it apart.

    `clause` is a probe description with, perhaps, a predicate and a body.  Raises `StepError` if
    nothing fires, `trapline.d.errors.CompileError` and `emu.guest.base.GuestError`.
    """
    traps = RecordingTraps()
    guest = kernel_guest(options, traps)
    recorder = Recorder(guest, traps)
    machine = boot(guest, options.fidelity, lambda framework: RecordingFramework(framework, recorder))
    text = guest.image.symbol("kernel_text_start").value
    pristine = guest.load(text, guest.image.symbol("kernel_text_end").value - text)
    device = machine.dtrace.open()
    try:
        program = compile_program(_ending(clause), CompileContext(Options(), device.probes, form=Form.NAME))
        if not sum(device.enable(encode(program))):
            raise StepError(f"{clause.strip()}: no probe matches (`trapline dtrace -l` lists them)")
        recorder.wanted = lambda: device.status().exiting
        device.go()
        guest.run(None)
        hit = recorder.hit
        if not device.status().exiting:
            raise StepError(f"{clause.strip()}: did not fire before the guest ended")
        if hit is None:
            raise StepError(f"{clause.strip()}: fired without a breakpoint; step takes one apart: try fbt")
        recorder.complete()
        description = device.probes(ProbeDescription(id=hit.firings[-1].probe_id))[0].description
        found = guest.image.symbol_at(hit.address)
        start, size = (found[0].value, found[0].size) if found else (hit.address, 16)
        enabled = guest.load(start, size)
        stages = _stages(guest, hit, description)
    finally:
        device.close()
    names = _Names(guest)
    code = {
        "before": names.listing(pristine[start - text : start - text + size], start, hit.address),
        "enabled": names.listing(enabled, start, hit.address),
    }
    stages = (replace(stages[0], code=code), *stages[1:], _disabled(guest.load(start, size), start, hit, names))
    return Stepped(options.isa.name, options.trap_path.value, str(description), stages)


def _disabled(code: bytes, start: int, hit: Hit, names: _Names) -> Stage:
    return Stage(
        "disabled",
        "The program has ended, its probe is disabled, and the bytes are back.",
        code={"after": names.listing(code, start, hit.address)},
    )


def _ending(clause: str) -> str:
    """Make the clause end the run when it fires."""
    text = clause.rstrip()
    if text.endswith("}"):
        return text[:-1] + "; exit(0); }"
    return text + " { exit(0); }"


def _changes(before: Snapshot, after: Snapshot) -> dict[str, tuple[int, int]]:
    return {
        name: (value, after.registers[name])
        for name, value in before.registers.items()
        if after.registers[name] != value
    }


def _stages(guest: KernelGuest, hit: Hit, description: ProbeDescription) -> tuple[Stage, ...]:
    names = _Names(guest)
    stages = [_patch(guest, hit, names), _exception(guest, hit, names), _frame(hit)]
    stages += [_chain(guest, hit), _probe(guest, hit, description, names), _displaced(guest, hit, names)]
    stages.append(_resume(guest, hit, names))
    return tuple(stages)


def _patch(guest: KernelGuest, hit: Hit, names: _Names) -> Stage:
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
            "at": names.place(hit.address),
            "address": hit.address,
            "before": f"{names.hexadecimal(before)}  {names.instruction(before, hit.address)}",
            "after": f"{names.hexadecimal(after)}  {names.instruction(shown, hit.address)}",
        },
    )


_EXCEPTIONS = {
    "x86_64": "#BP, vector 3: a trap, so the saved rip points after the int3.",
    "aarch64": "BRK, exception class 0x3c, immediate 0x40d: ELR points at the brk.",
    "riscv64": "breakpoint, scause 3: sepc points at the ebreak.",
    "i386": "#UD, vector 6: a LOCK before what cannot be locked is a fault, so the saved eip points at it.",
}


def _exception(guest: KernelGuest, hit: Hit, names: _Names) -> Stage:
    pc = hit.trapped.registers[guest.isa.registers.pc]
    return Stage(
        "exception",
        _EXCEPTIONS[guest.isa.name],
        {"pc": pc, "in": names.place(pc), "sp": hit.trapped.registers[guest.isa.registers.sp]},
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


def _chain(guest: KernelGuest, hit: Hit) -> Stage:
    answers = {asked.handler: asked.answer for asked in hit.asked}
    kind = "an invop code" if guest.isa.stub.by_code else "the saved instruction word"
    return Stage(
        "handler chain",
        f"dtrace_invop() asks each handler whether the address is its own; 0 is no, anything else is {kind}.",
        answers,
    )


def _probe(guest: KernelGuest, hit: Hit, description: ProbeDescription, names: _Names) -> Stage:
    firing = hit.firings[-1]
    thread = guest.thread()
    return Stage(
        "probe",
        f"dtrace_probe({firing.probe_id}, ...) fires {description} in {thread.execname}, pid {thread.pid}.",
        {f"arg{index}": value for index, value in enumerate(firing.arguments)}
        | ({"caller": names.place(firing.caller)} if firing.caller else {}),
    )


def _displaced(guest: KernelGuest, hit: Hit, names: _Names) -> Stage:
    original = guest.patcher.original(hit.address, 8)
    end = hit.resumed or hit.trapped
    executed = 0
    text = "The emulator carries out the displaced instruction's plan on the CPU's registers."
    if guest.trap_path is TrapPath.GUEST and hit.returning and hit.asked_at:
        executed = hit.returning.instructions - hit.asked_at.instructions
        text = "The kernel's stub emulates the displaced instruction on the saved frame, and restores the registers."
    return Stage(
        "displaced instruction",
        text,
        {"instruction": names.instruction(original, hit.address), "plan": str(hit.plan)},
        _changes(hit.trapped, end),
        tuple(hit.memory),
        executed,
    )


def _resume(guest: KernelGuest, hit: Hit, names: _Names) -> Stage:
    if hit.resumed is None:
        raise StepError("the guest never resumed after the breakpoint")
    pc = hit.resumed.registers[guest.isa.registers.pc]
    executed = hit.resumed.instructions - hit.returning.instructions if hit.returning else 0
    return Stage(
        "resume",
        "Execution goes on as if the displaced instruction had run where it stood.",
        {"pc": pc, "in": names.place(pc), "next": names.instruction(guest.patcher.original(pc, 16), pc)},
        instructions=executed,
    )
