"""`Engine.running.watch` calls a function before each instruction, and tells of each access to memory."""

import pytest

from emu.engine.engine import Engine
from emu.engine.memory.access import Access
from emu.engine.memory.pages import PAGE, PageMap
from emu.isa import ISAS

CODE = 0x10000
DATA = 0x20000
# Two instructions that do nothing, a store of a register to where another points, and nops.
PROGRAMS = {
    "x86_64": ("9090488938", {"rax": DATA, "rdi": 0x1234}, 3, 8),
    "i386": ("90908938", {"eax": DATA, "edi": 0x1234}, 3, 4),
    "aarch64": ("1f2003d51f2003d5010000f9", {"x0": DATA, "x1": 0x1234}, 3, 8),
    "riscv64": ("010001000ce1", {"a0": DATA, "a1": 0x1234}, 3, 8),
}


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("accelerated", [False, None])
def test_every_instruction_and_every_access_is_told(isa, accelerated):
    code, registers, count, size = PROGRAMS[isa]
    pages = PageMap()
    pages.map(CODE, PAGE, Access.READ | Access.EXECUTE)
    pages.map(DATA, PAGE, Access.READ | Access.WRITE)
    engine = Engine(ISAS[isa], 16 * PAGE, pages=pages, on_system_call=lambda: None, accelerated=accelerated)
    data = bytes.fromhex(code)
    engine.memory.write(CODE, data)
    for name, value in registers.items():
        engine.write_register(name, value)
    engine.pc = CODE
    pcs, told = [], []

    def watcher():
        pcs.append(engine.pc)
        if len(pcs) <= count:
            return True
        engine.stop()
        return False

    engine.running.watch(watcher, lambda *access: told.append(access))
    assert engine.watched
    assert engine.run() is False
    assert not engine.watched
    assert len(pcs) == count + 1
    assert pcs[0] == CODE
    assert pcs[-1] == CODE + len(data)
    assert engine.instructions == count
    assert told == [(True, pages.frames[DATA // PAGE], size, 0x1234)]
