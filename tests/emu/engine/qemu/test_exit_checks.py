"""The tests behind accesses to memory: left out, but for hooked instructions and while each instruction is counted."""

import ctypes

import pytest
import unicorn

from emu.engine.engine import Engine
from emu.engine.memory.access import Access
from emu.engine.memory.pages import PAGE, PageMap
from emu.engine.qemu import exit_checks
from emu.engine.qemu.cpu import Cpu
from emu.isa import ISAS
from emu.unicorn_layout import library

pytestmark = pytest.mark.skipif(not library.this().is_known, reason="the tests are left out of the known library only")

isas = pytest.mark.parametrize("isa", ISAS)
CODE = 0x10000
# Stores to the address in a register, then adds 1 to it twice; each ISA's own wait follows.
STORE = {
    "x86_64": ("rcx", "488909", "48ffc1"),
    "i386": ("ecx", "8909", "83c101"),
    "aarch64": ("x1", "210000f9", "21040091"),
    "riscv64": ("a1", "8ce1", "8505"),
}
_ON_ACCESS = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint64, ctypes.c_int, ctypes.c_int64, ctypes.c_void_p
)


def ended(isa, *, accelerated=True, hooked=False):
    """Return how many of the two additions are done when a store has asked for the end of the run."""
    space = PageMap()
    space.map(CODE, 4 * PAGE, Access.READ | Access.WRITE | Access.EXECUTE)
    engine = Engine(ISAS[isa], 8 * PAGE, pages=space, accelerated=accelerated)
    register, store, add = STORE[isa]
    engine.write_code(CODE, bytes.fromhex(store + add + add) + engine.isa.traps.wait)
    data = CODE + PAGE
    engine.write_register(register, data)
    engine.pc = CODE
    engine._hooks.add(unicorn.UC_HOOK_MEM_WRITE, _ON_ACCESS(lambda *_: engine.running.leave()))
    if hooked:
        engine.code.on_code(CODE, lambda: None)
    engine.run()
    return engine.read_register(register) - data


@isas
@pytest.mark.parametrize("accelerated", [True, False])
def test_an_access_does_not_end_its_block(isa, accelerated):
    assert ended(isa, accelerated=accelerated) == 2


@isas
def test_with_the_tests_it_does(isa, monkeypatch):
    monkeypatch.setattr(exit_checks, "mark", lambda _cpu: None)
    assert ended(isa) == 0


@isas
@pytest.mark.parametrize("accelerated", [True, False])
def test_a_hooked_instruction_has_them(isa, accelerated):
    assert ended(isa, accelerated=accelerated, hooked=True) == 0


@isas
def test_where_other_instructions_make_the_tests_they_stay(isa, monkeypatch):
    cpu = Cpu(ISAS[isa])
    assert exit_checks.mark(cpu).value == 0
    other = cpu.function("helper_lookup_tb_ptr")
    monkeypatch.setattr(cpu, "function", lambda _name: other)
    assert exit_checks.mark(cpu) is None


@isas
def test_a_mark_that_is_set_is_not_the_mark(isa):
    cpu = Cpu(ISAS[isa])
    exit_checks.mark(cpu).value = 1
    assert exit_checks.mark(cpu) is None
