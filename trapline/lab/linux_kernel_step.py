"""One firing on a Linux kernel, step by step: `trapline step --guest linux-kernel`."""

from __future__ import annotations

from dataclasses import replace

from emu.disassembly import Syntax
from emu.plans import Plan
from trapline.d.compiler import CompileContext, Form, compile_program
from trapline.d.scopes import Globals
from trapline.dof import encode
from trapline.framework.program import ProbeDescription
from trapline.lab.code_text import CodeText
from trapline.lab.recorder import Recorder, RecordingFramework, RecordingTraps
from trapline.lab.stages import StepError, disabled, stages
from trapline.lab.step import Stepped, ending
from trapline.machine.linux_kernel_machine import LinuxKernelOptions, Watch, start
from trapline.options import Options

# As much of the code as is shown where no symbol says how long a function is.
_UNKNOWN_SIZE = 16


def step_linux_kernel(clause: str, options: LinuxKernelOptions, syntax: Syntax = Syntax.INTEL) -> Stepped:
    """Run a Linux kernel to the first firing of a D clause, and return its stages.

    Raises `StepError` if nothing fires, `trapline.d.errors.CompileError`,
    `emu.guest.linux_kernel.errors.KernelFileError` and `emu.guest.base.GuestError`.
    """
    traps = RecordingTraps()
    recorders: list[Recorder] = []

    def plan(address: int, _answer: int) -> Plan | None:
        return machine.text.plan(address)

    def watched(watch: Watch) -> RecordingFramework:
        recorders.append(Recorder(watch.guest, traps, plan))
        return RecordingFramework(watch.dtrace, recorders[0])

    machine = start(options, traps, watched)
    guest, recorder = machine.guest, recorders[0]
    device = machine.dtrace.open()
    try:
        context = CompileContext(
            Options(),
            device.probes,
            form=Form.NAME,
            names=Globals(foreign=machine.names),
            argument=device.probe_argument,
        )
        if not sum(device.enable(encode(compile_program(ending(clause), context)))):
            raise StepError(f"{clause.strip()}: no probe matches (`trapline dtrace -l` lists them)")
        recorder.wanted = lambda: device.status().exiting
        device.go()
        guest.run(None)
        hit = recorder.hit
        if not device.status().exiting:
            raise StepError(f"{clause.strip()}: did not fire before the command ended")
        if hit is None:
            raise StepError(f"{clause.strip()}: fired without a breakpoint, and step explains breakpoints: try fbt")
        description = device.probes(ProbeDescription(id=hit.firings[-1].probe_id))[0].description
        symbol = guest.facts.symbols.holding(hit.address)
        start_, size = (symbol.value, symbol.size) if symbol and symbol.size else (hit.address, _UNKNOWN_SIZE)
        words = CodeText(guest, syntax)
        code = {
            "before": words.listing(guest.patcher.original(start_, size), start_, hit.address),
            "enabled": words.listing(guest.load(start_, size), start_, hit.address),
        }
        first, *rest = stages(guest, hit, description, words)
    finally:
        device.close()
    last = disabled(guest.load(start_, size), start_, hit, words)
    return Stepped(options.isa.name, "host", str(description), (replace(first, code=code), *rest, last))
