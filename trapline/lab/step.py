"""One firing, step by step: what `trapline step` shows, as data.

`trapline.lab.recorder` watches the firing, `trapline.lab.stages` makes the stages from it, and
`trapline.lab.step_report` prints them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from emu.disassembly import Syntax
from emu.guest.kernel.guest import KernelGuest
from emu.plans import Plan
from trapline.d.compiler import CompileContext, Form, compile_program
from trapline.dof import encode
from trapline.framework.program import ProbeDescription
from trapline.lab.code_text import CodeText
from trapline.lab.recorder import Recorder, RecordingFramework, RecordingTraps
from trapline.lab.stages import Stage, StepError, disabled, stages
from trapline.machine.kernel_machine import KernelOptions, boot, kernel_guest
from trapline.options import Options


@dataclass(frozen=True, slots=True)
class Stepped:
    """One firing, in stages."""

    isa: str
    trap_path: str
    probe: str
    stages: tuple[Stage, ...]


def step(clause: str, options: KernelOptions, syntax: Syntax = Syntax.INTEL) -> Stepped:
    """Run a kernel guest to the first firing of a D clause, and return its stages.

    `clause` is a probe description, which may have a predicate and a body.  Raises `StepError` if
    nothing fires, `trapline.d.errors.CompileError` and `emu.guest.base.GuestError`.
    """
    traps = RecordingTraps()
    guest = kernel_guest(options, traps)
    recorder = Recorder(guest, traps, lambda address, answer: _plan(guest, address, answer))
    recorder.watch_return(guest.image.symbol("dtrace_invop_return").value)
    machine = boot(guest, options.fidelity, lambda framework: RecordingFramework(framework, recorder))
    text = guest.image.symbol("kernel_text_start").value
    pristine = guest.load(text, guest.image.symbol("kernel_text_end").value - text)
    device = machine.dtrace.open()
    try:
        program = compile_program(ending(clause), CompileContext(Options(), device.probes, form=Form.NAME))
        if not sum(device.enable(encode(program))):
            raise StepError(f"{clause.strip()}: no probe matches (`trapline dtrace -l` lists them)")
        recorder.wanted = lambda: device.status().exiting
        device.go()
        guest.run(None)
        hit = recorder.hit
        if not device.status().exiting:
            raise StepError(f"{clause.strip()}: did not fire before the guest ended")
        if hit is None:
            raise StepError(f"{clause.strip()}: fired without a breakpoint, and step explains breakpoints: try fbt")
        recorder.complete()
        description = device.probes(ProbeDescription(id=hit.firings[-1].probe_id))[0].description
        found = guest.image.symbol_at(hit.address)
        start, size = (found[0].value, found[0].size) if found else (hit.address, 16)
        enabled = guest.load(start, size)
        words = CodeText(guest, syntax)
        found_stages = stages(guest, hit, description, words)
    finally:
        device.close()
    code = {
        "before": words.listing(pristine[start - text : start - text + size], start, hit.address),
        "enabled": words.listing(enabled, start, hit.address),
    }
    last = disabled(guest.load(start, size), start, hit, words)
    first, *rest = found_stages
    return Stepped(
        options.isa.name, options.trap_path.value, str(description), (replace(first, code=code), *rest, last)
    )


def _plan(guest: KernelGuest, address: int, answer: int) -> Plan | None:
    """Return what is done instead of the displaced instruction after a handler's answer."""
    saved = int.from_bytes(guest.patcher.original(address, 4), "little")
    return guest.isa.stub.invop(answer, saved, address)


def ending(clause: str) -> str:
    """Return a clause that ends the run when it fires."""
    text = clause.rstrip()
    if text.endswith("}"):
        return text[:-1] + "; exit(0); }"
    return text + " { exit(0); }"
