"""What a firing costs: a tight loop around a small probed function, with three D programs.

Measured against, in the same run, what Unicorn's binding offers instead: an empty Python callback
for a trap (UC_HOOK_INTR), and one before an instruction (UC_HOOK_CODE).
"""

from __future__ import annotations

from collections.abc import Callable

import unicorn

from benchmarks.code import ENTRY, LOOP, SITE, TRAPS
from benchmarks.figures import Cell, Figures, interleaved
from emu.elf import Binding, Symbol, SymbolType
from emu.guest.function import CODE, FunctionGuest
from emu.guest.modules import Module
from emu.isa import ISAS, Isa
from providers.fbt import FBT
from trapline.consumer.tracer import Tracer
from trapline.framework.dtrace import DTrace

ROUNDS = 50_000
PROGRAMS = {
    "fbt::f:entry { }": "fbt::f:entry { }",
    "with a predicate": "fbt::f:entry /arg0 != 0/ { }",
    "with an aggregation": "fbt::f:entry { @ = count(); }",
}
_PAGE = 0x1000
_STACK = 0x7000_0000


def bare(isa: Isa, code: bytes, hook: int | None, at: int | None = None) -> Callable[[], None]:
    """Return a run of some code on bare Unicorn, with an empty Python callback."""
    uc = unicorn.Uc(isa.unicorn.architecture, isa.unicorn.mode)
    uc.ctl_set_tlb_mode(unicorn.UC_TLB_VIRTUAL)
    uc.mem_map(CODE, _PAGE)
    uc.mem_map(_STACK, _PAGE)

    def fill(_uc: object, address: int, _access: int, entry: object, _data: object) -> bool:
        entry.paddr = address & -_PAGE  # type: ignore[attr-defined]
        entry.perms = 5 if address < _STACK else 3  # type: ignore[attr-defined]
        return True

    uc.hook_add(unicorn.UC_HOOK_TLB_FILL, fill)
    uc.mem_write(CODE, code)
    landing = CODE + _PAGE - 16
    ids = {register.name: register.unicorn for register in isa.registers.registers}
    sp = _STACK + _PAGE - 256
    if isa.registers.link is None:
        uc.mem_write(sp, landing.to_bytes(8, "little"))
    if hook == unicorn.UC_HOOK_INTR:
        uc.hook_add(hook, lambda _uc, _number, _data: None)
    elif hook == unicorn.UC_HOOK_CODE:
        place = CODE + (at or 0)
        uc.hook_add(hook, lambda _uc, _address, _size, _data: None, begin=place, end=place)

    def run() -> None:
        uc.reg_write(ids[isa.registers.sp], sp)
        if isa.registers.link is not None:
            uc.reg_write(ids[isa.registers.link], landing)
        uc.reg_write(ids[isa.calling.arguments[0]], ROUNDS)
        uc.emu_start(CODE, landing)

    return run


def probed(isa: Isa, program: str) -> Callable[[], None]:
    """Return a run of the loop with a D program enabled."""
    code, entry = LOOP[isa.name], ENTRY[isa.name]
    guest = FunctionGuest(isa, code)
    dtrace = DTrace(guest, guest.traps.core)
    FBT(dtrace, guest.patcher, guest.traps, isa)
    symbol = Symbol("f", CODE + entry, len(code) - entry, SymbolType.FUNC, Binding.GLOBAL, 1)
    dtrace.load_module(Module("kernel", (symbol,), guest.patcher.original))
    tracer = Tracer(guest, dtrace, {"bufsize": "64m"})
    tracer.enable(program)
    tracer.session.go()
    device = tracer.session.device

    def run() -> None:
        guest.call(ROUNDS)
        device.buffer_snapshot(0)  # so that the buffer is never full
        device.aggregation_snapshot(0)

    return run


def measure() -> Figures:
    """Measure on every ISA."""
    return Figures(
        "What a firing costs",
        ("ISA", "what", "ns", "firings/s", "x an empty trap callback"),
        [row for isa in ISAS.values() for row in _rows(isa)],
        "Nanoseconds beyond the same loop without probe or hook; least of 5 interleaved runs of "
        f"{ROUNDS:,} rounds.  The goal for an empty action is 5 times an empty trap callback.",
    )


def _rows(isa: Isa) -> list[list[Cell]]:
    loop, traps = LOOP[isa.name], TRAPS[isa.name]
    actions = {
        "the loop": bare(isa, loop, None),
        "empty UC_HOOK_INTR callback": bare(isa, traps, unicorn.UC_HOOK_INTR),
        "empty UC_HOOK_CODE callback": bare(isa, loop, unicorn.UC_HOOK_CODE, SITE[isa.name]),
        **{name: probed(isa, program) for name, program in PROGRAMS.items()},
    }
    for action in actions.values():
        action()
    times = {name: 1e9 * time / ROUNDS for name, time in interleaved(actions).items()}
    base = times.pop("the loop")
    trap = times["empty UC_HOOK_INTR callback"] - base
    return [
        [isa.title, name, round(time - base), round(1e9 / (time - base)), (time - base) / trap]
        for name, time in times.items()
    ]
