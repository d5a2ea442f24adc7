"""A D program on several CPUs: each has its buffer, `cpu` is its number, and aggregations are merged."""

import pytest

from emu.assembly import machine_code
from emu.elf.symbols import Binding, Symbol, SymbolType
from emu.guest.function import CODE
from emu.guest.modules import Module
from emu.guest.multiprocessor import Multiprocessor
from emu.isa import ISAS
from providers.fbt import FBT
from tests.trapline.d.support import compile_text
from trapline import dof
from trapline.consumer.aggregations.aggregate import Aggregate
from trapline.consumer.text.symbols import Symbols
from trapline.dof import encode
from trapline.framework.base.engines import ProgramEngine
from trapline.framework.device.dtrace import DTrace

# f, whose entry FBT probes, called in a loop as often as the first argument says.
LOOP = {
    "x86_64": "push rbp; mov rbp, rsp; dec rdi; pop rbp; jne {0}; ret",
    "aarch64": "stp x29, x30, [sp, #-16]!; mov x29, sp; subs x0, x0, #1; ldp x29, x30, [sp], #16; b.ne {0}; ret",
    "riscv64": "addi sp, sp, -16; sd ra, 8(sp); addi a0, a0, -1; ld ra, 8(sp); addi sp, sp, 16; bnez a0, {0}; ret",
}
CPUS, TIMES = 4, 40


def loop(isa):
    return machine_code(ISAS[isa], "again: " + LOOP[isa].format("again"))


def traced(isa, program, times, seed=0):
    code = loop(isa)
    guest = Multiprocessor(ISAS[isa], code, cpus=CPUS, seed=seed)
    dtrace = DTrace(guest, guest.traps.core, dof, cpus=CPUS, engine=ProgramEngine.REFERENCE)
    symbol = Symbol("f", CODE, len(code), SymbolType.FUNC, Binding.GLOBAL, 1)
    FBT(dtrace, guest.patcher, guest.traps, guest.isa).provide_module(
        Module("m", (symbol,), lambda at, size: code[at - CODE :][:size])
    )
    device = dtrace.open()
    for name, value in {"bufsize": 1 << 14, "aggsize": 1 << 14, "dynvarsize": 1 << 14}.items():
        device.set_option(name, value)
    device.enable(encode(compile_text(program, probes=device.probes)))
    device.go()
    guest.call_all([(times,)] * CPUS)
    return guest, device


def cpus_of(device, cpu):
    """The values traced in one CPU's buffer."""
    data, found = device.buffer_snapshot(cpu).data, []
    while data:
        epid = int.from_bytes(data[:4], "little")
        size = device.enabled_probe(epid).size if epid else 4
        if epid:
            found.append(int.from_bytes(data[12:16], "little"))
        data = data[size:]
    return found


@pytest.mark.parametrize("isa", LOOP)
def test_each_cpu_records_in_its_own_buffer(isa):
    _, device = traced(isa, "fbt::f:entry { trace((int32_t)cpu); }", TIMES)
    assert [cpus_of(device, cpu) for cpu in range(CPUS)] == [[cpu] * TIMES for cpu in range(CPUS)]


@pytest.mark.parametrize("isa", LOOP)
def test_aggregations_of_all_cpus_are_merged(isa):
    guest, device = traced(isa, "fbt::f:entry { @all = count(); @each[cpu] = count(); @most = max(arg0); }", TIMES)
    aggregate = Aggregate(device.aggregation, Symbols(guest))
    for cpu in range(CPUS):
        aggregate.add(device.aggregation_snapshot(cpu))
    found = {}
    for entry in aggregate:
        found.setdefault(entry.description.variable, []).append(entry.words[0])
    assert sorted(found.values()) == [[TIMES], [TIMES] * CPUS, [TIMES * CPUS]]


def test_the_order_of_the_cpus_is_the_seed_s():
    def times(seed):
        _, device = traced("x86_64", "fbt::f:entry { trace(timestamp); }", TIMES, seed)
        return [device.buffer_snapshot(cpu).data for cpu in range(CPUS)]

    assert times(1) == times(1) != times(2)
