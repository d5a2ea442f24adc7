"""D itself: the speed of compiling programs, of executing DIF, and of updating aggregations."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from benchmarks.figures import Cell, Figures, Scale, interleaved
from emu.isa import Isa
from trapline.d.compiler import CompileContext, compile_program
from trapline.dof import decode, encode
from trapline.framework.base.device import ProbeInfo
from trapline.framework.base.program import ProbeDescription, Program
from trapline.framework.device.dtrace import DTrace
from trapline.machine.kernel_machine import KernelOptions, boot, kernel_guest
from trapline.options import Options

_CLAUSE = """\
fbt::f{number}:entry
/execname != "sh" && arg0 > {number}/
{{
	self->start{number} = timestamp;
	@calls[execname, probefunc] = count();
}}

fbt::f{number}:return
/self->start{number}/
{{
	@times[probefunc] = quantize((timestamp - self->start{number}) / 1000);
	printf("%s %d %x\\n", probefunc, arg1, (uint32_t)arg0 >> 3);
	self->start{number} = 0;
}}

"""
_LINES = 200
_ROUNDS = 20_000
_PROGRAM = "BEGIN { x = 5; y = 3; trace(((x + 1) * 3 ^ y) % 7 + (x << 2 | y & 15) - (x > 5 ? x : y) / 3) }"
_UPDATES = {
    "@ = count()": "@ = count();",
    "@[arg0 & 15] = sum(arg1)": "@[arg0 & 15] = sum(arg1);",
    "@[execname] = count()": "@[execname] = count();",
    "@ = quantize(arg0)": "@ = quantize(arg0);",
}


def _compiled(text: str, probes: Callable[[ProbeDescription], list[ProbeInfo]]) -> Program:
    options = Options()
    options.set("zdefs")
    return compile_program(text, CompileContext(options, probes))


def measure(isas: Sequence[Isa], scale: Scale) -> Figures:
    """Measure all, on the first of some ISAs: D does not depend on it."""
    rounds = scale.rounds(_ROUNDS)
    machine = boot(kernel_guest(KernelOptions(isa=isas[0])))
    dtrace = machine.dtrace
    script = "".join(_CLAUSE.format(number=number) for number in range(_LINES // 14 + 1))
    lines = script.count("\n")
    probes = dtrace.open().probes

    def description(pattern: ProbeDescription) -> list[ProbeInfo]:
        return list(probes(pattern))

    program = _compiled(script, description)
    dof = encode(program)

    device = dtrace.open()
    running = _compiled(_PROGRAM, description)
    difo = running.ecbs[0].actions[-1].difo
    assert difo is not None
    device.enable(encode(running))
    device.go()
    loaded = device.runtime.machine.load(difo)

    def machine_runs() -> None:
        for _ in range(rounds):
            device.runtime.machine.run(loaded, device.runtime.context)

    actions: dict[str, Callable[[], object]] = {
        "compile": lambda: _compiled(script, description),
        "encode": lambda: encode(program),
        "decode": lambda: decode(dof),
        "machine": machine_runs,
    }
    (probe,) = description(ProbeDescription("fbt", "kernel", "sys_read", "entry"))
    for name, body in _UPDATES.items():
        actions[name] = _updates(machine.dtrace, probe.id, body, description, rounds)
    times = interleaved(actions, scale.turns(3))
    executed = rounds * len(difo.code)
    rows: list[list[Cell]] = [
        ["compile a script", f"{lines} lines", 1000 * times["compile"], lines / times["compile"]],
        ["encode its DOF", f"{len(dof)} bytes", 1000 * times["encode"], len(dof) / times["encode"]],
        ["decode it", f"{len(dof)} bytes", 1000 * times["decode"], len(dof) / times["decode"]],
        ["DIF, by the machine", f"{executed} instructions", 1000 * times["machine"], executed / times["machine"]],
    ]
    rows += [[name, f"{rounds} firings", 1000 * times[name], rounds / times[name]] for name in _UPDATES]
    return Figures(
        "The D language",
        ("what", "of", "ms", "a second"),
        rows,
        "One run, in turns; updates include the firing's predicate, record and context.",
        text_columns=frozenset({"what", "of"}),
    )


def _updates(
    dtrace: DTrace, probe: int, body: str, probes: Callable[[ProbeDescription], list[ProbeInfo]], rounds: int
) -> Callable[[], None]:
    def run() -> None:
        device = dtrace.open()
        device.set_option("aggsize", 1 << 20)
        device.enable(encode(_compiled(f"fbt::sys_read:entry {{ {body} }}", probes)))
        device.go()
        for number in range(rounds):
            dtrace.probe(probe, number, number, 0, 0, 0)
        device.stop()
        device.close()

    return run
