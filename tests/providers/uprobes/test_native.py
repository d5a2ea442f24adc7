"""Uprobes in machine code: the same hits in the same order as Python's, and the same program."""

import contextlib

import pytest

from emu.guest.kernel.boot import images
from emu.isa import ISAS
from emu.native import available
from providers import fasttrap
from providers.uprobes import Consumer, UprobeError, Uprobes
from tests.emu.guest.linux.support import expected, start
from tests.support.native import LoggingFramework
from trapline.machine.linux_machine import EvalTime

pytestmark = [
    pytest.mark.exhaustive,
    pytest.mark.skipif(not available(), reason="llvmlite is not installed"),
]


class Watcher:
    """Registers consumers that log, in machine code or in Python."""

    def __init__(self, isa, case, *, native):
        machine, self.output = start(isa, [images.linux(ISAS[isa], "zoo"), case], evaltime=EvalTime.EXEC)
        self.guest = machine.guest
        self.framework = LoggingFramework(native=native)
        self.uprobes = Uprobes(self.guest.kernel)
        self.loaded = self.guest.objects.of(self.guest.kernel.first)[0]
        self.results = [self.guest.isa.registers.slots[name] for name in self.guest.isa.calling.results]

    def watch(self, address, *, returns):
        framework, words = self.framework, self.guest.engine.words
        number = framework.probe_create(address)
        runs = framework.native_runs(number)
        if returns:
            consumer = Consumer(
                ret_handler=lambda function, _frame: framework.probe(
                    number, function, *(words[one] for one in self.results)
                ),
                ret_runs=runs,
            )
        else:
            consumer = Consumer(handler=lambda _frame: framework.probe(number), runs=runs)
        with contextlib.suppress(UprobeError):
            self.uprobes.register(self.loaded.file, self.loaded.image.offset_of(address), consumer)

    def functions(self, names):
        return [symbol for symbol in self.loaded.functions() if symbol.name.startswith(names)]

    def finish(self, isa, case):
        self.guest.run(None)
        assert self.output.decode() + f"exit {self.guest.exit_status}\n" == expected(case, isa)
        engine = self.guest.engine
        return self.framework.log(), engine.instructions, self.guest.now(), self.guest.kernel.first.ran


def equal(isa, case, watch):
    """Run with Python's handlers and with machine code's; return the hits and how many were Python's."""
    runs = []
    for native in (False, True):
        watcher = Watcher(isa, case, native=native)
        watch(watcher)
        runs.append((watcher.finish(isa, case), watcher.framework))
    (python, _), (machine, framework) = runs
    assert machine[0] == python[0]
    assert machine == python
    return len(python[0]), framework.by_python


OWN = ("asm_", "fib", "is_", "arg", "greet", "case_", "factorial", "say", "descend", "thread_", "in_child", "forks")


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("case", ["asm", "args", "setjmp", "threads", "processes", "signals"])
def test_every_instruction_is_hit_as_in_python(isa, case):
    def watch(watcher):
        for symbol in watcher.functions(OWN):
            for offset in fasttrap.PORTS[isa].boundaries(watcher.loaded.image.code(symbol)):
                watcher.watch(symbol.value + offset, returns=False)

    hits, by_python = equal(isa, case, watch)
    assert hits > 50
    assert by_python < hits


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("case", ["recursion", "tailcalls", "setjmp", "threads", "processes"])
def test_every_return_is_seen_as_in_python(isa, case):
    def watch(watcher):
        for symbol in watcher.functions(""):
            # As in test_uprobes: these read their own return address, or have none.
            strange = "jmp" in symbol.name or "get_pc_thunk" in symbol.name
            if not strange and symbol.name not in {"_start", "__clone", "clone", "__clone3"}:
                watcher.watch(symbol.value, returns=False)
                watcher.watch(symbol.value, returns=True)

    hits, by_python = equal(isa, case, watch)
    assert hits > 100
    assert by_python < hits
