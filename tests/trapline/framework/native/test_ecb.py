"""A clause's machine code does what its definition does: records, aggregations, faults, drops."""

from __future__ import annotations

import ctypes

import pytest

pytest.importorskip("llvmlite")

from tests.support.fake_guest import KERNEL
from tests.trapline.framework.support import Bench
from trapline.framework.native.ecb import ClauseCode

ERRORS = "ERROR { trace(arg1); trace(arg2); trace(arg3); trace(arg4); trace(arg5); }"
CLAUSES = [
    "f:entry {}",
    "f:entry { trace(1); }",
    "f:entry /arg0 > 1/ { trace((char)arg0); trace(arg1); trace((short)arg2); }",
    "uint64_t x; f:entry { x += arg0; trace(x); this->y = x * 2; trace(this->y); self->z = x + 1; trace(self->z); }",
    "f:entry { a[arg0, execname] = arg1; trace(a[arg0, execname]); a[arg0, execname] = 0; }",
    "f:entry { self->t[arg0] = probefunc; trace(self->t[arg0]); }",
    'g:entry { s = probefunc; } f:entry { s = s == "" ? execname : strjoin(s, "!"); trace(s); this->u = s; }',
    'f:entry { this->s = strjoin(execname, "!"); trace(this->s); this->u = this->s; trace(this->u); }',
    "f:entry { @ = count(); @two[arg0, execname] = sum(arg1); @q[pid] = quantize(arg0, arg1); trace(pid); }",
    "f:entry { @l = lquantize(arg0, 0, 100, 10); @a = avg(arg0); @m = max(arg1); @n = min(arg1); @s = stddev(arg0); }",
    "f:entry, g:entry { @n[probefunc] = count(); @m[probename, 5] = max(arg0); @o[id] = quantize(1, arg0); }",
    "f:entry { @stacks[stack(3), ustack(2)] = count(); stack(2); ustack(3); }",
    'f:entry { printf("%s %d %d", probefunc, arg0, cpu); tracemem(arg1, 16); tracemem(arg1, 16, arg0); }',
    "f:entry { trace(timestamp); trace(walltimestamp - timestamp); trace(vtimestamp); trace(id); trace(epid); }",
    "f:entry { trace(arg1 / arg0); trace(1); }",
    "f:entry { @f[*(int *)arg1] = count(); trace(*(int *)arg1); }",
    "f:entry { this->p = (int *)alloca(8); *this->p = arg0; trace(*this->p); bcopy(this->p, this->p + 1, 4); }",
    "f:entry { self->s = speculation(); } f:entry { speculate(self->s); trace(arg0); } f:entry { commit(self->s); }",
    "f:entry { self->s = speculation(); } f:entry { speculate(self->s); trace(arg0); } f:entry { discard(self->s); }",
    'f:entry { trace(strlen(execname)); trace(substr(execname, 1)); trace(index(execname, "h")); }',
    "f:entry { self->s = speculation(); } "
    + 3 * "f:entry { speculate(self->s); trace(arg0); trace(arg1); } "
    + "f:entry /arg0 & 1/ { commit(self->s); } f:entry /!(arg0 & 1)/ { discard(self->s); }",
    "f:entry { speculate(arg0); trace(1); }",
    "f:entry { trace(rand()); trace(rand() % 7); @[usym(arg1), umod(arg1), uaddr(arg1)] = count(); }",
    'f:entry { trace(basename(execname)); trace(dirname("/a/b")); trace(rindex(execname, "e")); }',
    "f:entry /arg0 == 2/ { exit(3); }",
    'f:entry { trace(strtok("a b,c", " ")); }'
    + 2 * 'f:entry, g:entry { trace(strtok(NULL, ",") == NULL ? "end" : strtok(NULL, ",")); }',
    "f:entry { printm(8, memref((void *)arg1, 8)); printm(16, memref((void *)arg1, 3)); printm(2, (void *)arg1); }",
    "f:entry { trace(1); printm(8, memref((void *)arg1, 9)); }",
    "f:entry { tracemem(arg1, 16, arg0); trace(progenyof(arg0)); trace(progenyof(pid)); trace(speculation()); }",
    "f:entry { trace(arg7); trace(caller); trace(stackdepth); trace(ucaller); trace(curthread); trace(uregs[0]); }",
]
OPTIONS = [{}, {"bufsize": 256, "bufpolicy": 0}, {"bufsize": 200, "bufpolicy": 1}, {"aggsize": 600}]
FIRINGS = [(0, KERNEL + 64, 3, 4, 5), (1, KERNEL + 64), (2, 17), (0xFFFF_FFFF_FFFF_FFFF, 1 << 63), (2, KERNEL + 200)]


def traced(program, engine, monkeypatch, **options):
    """Fire some probes; return everything that can be seen of what came out."""
    monkeypatch.setenv("TRAPLINE_ENGINE", engine)
    bench = Bench()
    bench.guest.poke(KERNEL + 64, bytes(range(100)))
    bench.guest.stack[:] = [KERNEL + place for place in (16, 32, 48)]
    bench.guest.ustack[:] = [0x40_0000, 0x40_1000]
    bench.provider.values = {7: 77}
    device = bench.open(program + ERRORS, **options)
    for number, args in enumerate(FIRINGS):
        bench.guest.time += 1000 * number
        bench.fire(bench.f, *args)
        bench.fire(bench.g, *args)
    device.stop()
    snapshot = device.aggregation_snapshot(0)
    ran_native = any(ecb.clause.form.native for ecb in bench.dtrace.enablings(bench.dtrace.table.get(bench.f)))
    return bench.records(device), device.status(), snapshot, device.runtime.buffers[0].errors, ran_native


@pytest.mark.parametrize("program", CLAUSES)
@pytest.mark.parametrize("options", OPTIONS)
def test_a_clause_records_the_same_in_machine_code(program, options, monkeypatch):
    *expected, natively = traced(program, "reference", monkeypatch, **options)
    assert not natively
    *found, natively = traced(program, "native", monkeypatch, **options)
    assert found == expected
    assert natively


def test_an_aggregation_that_was_emptied_is_filled_anew(monkeypatch):
    snapshots = {}
    for engine in ("reference", "native"):
        monkeypatch.setenv("TRAPLINE_ENGINE", engine)
        bench = Bench()
        device = bench.open("f:entry, g:entry { @[probefunc, 1] = count(); @all = sum(arg0); }")
        snapshots[engine] = taken = []
        for number in range(4):
            for _ in range(number):
                bench.fire(bench.f, 3)
                bench.fire(bench.g, 4)
            taken.append(device.aggregation_snapshot(0))
    assert snapshots["native"] == snapshots["reference"]
    assert len({str(one) for one in snapshots["native"]}) == 4


def test_what_an_operation_raises_comes_out_of_the_firing(monkeypatch):
    monkeypatch.setenv("TRAPLINE_ENGINE", "native")
    bench = Bench("f:entry { trace(1); trace(execname); }")
    bench.fire(bench.f)
    bench.fire(bench.f)
    monkeypatch.setattr(bench.guest, "thread", lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        bench.fire(bench.f)
    monkeypatch.undo()
    bench.fire(bench.f)
    assert len(bench.records()) == 3


def test_a_probe_fired_by_an_operation_of_another_leaves_that_as_it_was(monkeypatch):
    monkeypatch.setenv("TRAPLINE_ENGINE", "native")
    bench = Bench("f:entry { trace(execname); trace(arg1); trace(probefunc); } g:entry { trace(arg1); }")
    bench.fire(bench.f, 1, 2)
    bench.fire(bench.g, 3, 4)
    plain = bench.guest.thread

    def thread():
        monkeypatch.setattr(bench.guest, "thread", plain)
        bench.fire(bench.g, 5, 6)
        return plain()

    bench.records()
    monkeypatch.setattr(bench.guest, "thread", thread)
    bench.fire(bench.f, 7, 8)
    (record,) = (data for epid, _, data in bench.records() if epid == 1)
    assert record[4:7] == b"sh\0"
    assert record[260:268] == (8).to_bytes(8, "little")
    assert record[268:270] == b"f\0"


@pytest.mark.parametrize(("engine", "first"), [("native", 1), ("reference", 0)])
def test_machine_code_runs_a_probe_when_all_its_enablings_have_it(engine, first, monkeypatch):
    monkeypatch.setenv("TRAPLINE_ENGINE", engine)
    bench = Bench("f:entry { trace(1); }")
    runs = (ctypes.c_uint64 * 2).from_address(bench.dtrace.native_runs(bench.f))
    assert runs[0] == 0
    bench.fire(bench.f)
    assert runs[0] == first
    second = bench.open('f:entry { trace(strtok(execname, "h")); }')
    assert runs[0] == 0
    bench.fire(bench.f)
    assert runs[0] == (3 if first else 0)  # what forgets the last firing's string comes before the two
    second.close()
    assert runs[0] == first
    assert bench.dtrace.native_runs(bench.f) == ctypes.addressof(runs)


def test_a_clause_is_compiled_once_for_all_its_probes(monkeypatch):
    monkeypatch.setenv("TRAPLINE_ENGINE", "native")
    made = []
    plain = ClauseCode.__init__

    def counting(self, *operands, **options):
        made.append(self)
        plain(self, *operands, **options)

    monkeypatch.setattr(ClauseCode, "__init__", counting)
    bench = Bench(":::entry { trace(arg0); }")
    bench.fire(bench.f, 1)
    bench.fire(bench.g, 2)
    assert len(made) == 1
    assert bench.numbers() == [1, 2]
    words = [ctypes.c_uint64.from_address(bench.dtrace.native_runs(probe)).value for probe in (bench.f, bench.g)]
    assert words == [1, 1]


def test_a_clause_becomes_machine_code_when_it_has_fired_often_enough(monkeypatch):
    monkeypatch.delenv("TRAPLINE_ENGINE", raising=False)
    bench = Bench("f:entry { trace(arg0); } BEGIN { trace(1); }", bufsize=1 << 16)
    count = ctypes.c_uint64.from_address(bench.dtrace.native_runs(bench.f))
    for firing in range(bench.dtrace.worth_compiling - 1):
        bench.fire(bench.f, firing)
    assert count.value == 0
    bench.fire(bench.f, 1000)
    assert count.value == 1
    bench.fire(bench.f, 1001)
    assert bench.numbers()[-2:] == [1000, 1001]
