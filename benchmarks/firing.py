"""What a firing costs: a tight loop around a small probed function, with three D programs.

Measured against, in the same run, what Unicorn's binding offers instead: an empty Python callback
for a trap (UC_HOOK_INTR), and one before an instruction (UC_HOOK_CODE).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import unicorn

from benchmarks.code import ENTRY, LOOP, SITE, TRAPS
from benchmarks.figures import Cell, Figures, Scale, interleaved
from emu.elf_symbols import Binding, Symbol, SymbolType
from emu.guest.function import CODE, FunctionGuest
from emu.guest.modules import Module
from emu.isa import Isa
from providers.fbt import FBT
from trapline import dof
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


def bare(isa: Isa, code: bytes, rounds: int, hook: int | None, at: int | None = None) -> Callable[[], None]:
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
    sp = _STACK + _PAGE - 256
    if hook == unicorn.UC_HOOK_INTR:
        uc.hook_add(hook, lambda _uc, _number, _data: None)
    elif hook == unicorn.UC_HOOK_CODE:
        place = CODE + (at or 0)
        uc.hook_add(hook, lambda _uc, _address, _size, _data: None, begin=place, end=place)

    def run() -> None:
        enter(uc, isa, sp, landing, rounds)
        uc.emu_start(CODE, landing)

    return run


def enter(uc: unicorn.Uc, isa: Isa, sp: int, landing: int, argument: int, memory: int | None = None) -> None:
    """Set registers and stack as a call with one argument does.

    `memory`: physical address of `sp`.
    """
    ids = {register.name: register.unicorn for register in isa.registers.registers}
    at = sp if memory is None else memory
    uc.reg_write(ids[isa.registers.sp], sp)
    if isa.registers.link is not None:
        uc.reg_write(ids[isa.registers.link], landing)
    else:
        uc.mem_write(at, landing.to_bytes(isa.word, "little"))
    if isa.calling.arguments:
        uc.reg_write(ids[isa.calling.arguments[0]], argument)
    else:
        uc.mem_write(at + isa.word, argument.to_bytes(isa.word, "little"))


def probed(isa: Isa, program: str, rounds: int) -> Callable[[], None]:
    """Return a run of the loop with a D program enabled."""
    code, entry = LOOP[isa.name], ENTRY[isa.name]
    guest = FunctionGuest(isa, code)
    dtrace = DTrace(guest, guest.traps.core, dof)
    FBT(dtrace, guest.patcher, guest.traps, isa)
    symbol = Symbol("f", CODE + entry, len(code) - entry, SymbolType.FUNC, Binding.GLOBAL, 1)
    dtrace.load_module(Module("kernel", (symbol,), guest.patcher.original))
    tracer = Tracer(guest, dtrace, {"bufsize": "64m"})
    tracer.enable(program)
    tracer.session.go()
    device = tracer.session.device

    def run() -> None:
        guest.call(rounds)
        device.buffer_snapshot(0)  # so that the buffer is never full
        device.aggregation_snapshot(0)

    return run


def measure(isas: Sequence[Isa], scale: Scale) -> Figures:
    """Measure on some ISAs."""
    rounds = scale.rounds(ROUNDS)
    return Figures(
        "What a firing costs",
        ("ISA", "what", "ns", "firings/s", "x an empty trap callback"),
        [row for isa in isas for row in _rows(isa, rounds, scale)],
        "Nanoseconds beyond the same loop without probe or hook; least of 5 interleaved runs of "
        f"{rounds:,} rounds.  The goal for an empty action is 5 times an empty trap callback.",
    )


def _rows(isa: Isa, rounds: int, scale: Scale) -> list[list[Cell]]:
    loop, traps = LOOP[isa.name], TRAPS[isa.name]
    actions = {
        "the loop": bare(isa, loop, rounds, None),
        "empty UC_HOOK_INTR callback": bare(isa, traps, rounds, unicorn.UC_HOOK_INTR),
        "empty UC_HOOK_CODE callback": bare(isa, loop, rounds, unicorn.UC_HOOK_CODE, SITE[isa.name]),
        **{name: probed(isa, program, rounds) for name, program in PROGRAMS.items()},
    }
    for action in actions.values():
        action()
    times = {name: 1e9 * time / rounds for name, time in interleaved(actions, scale.turns(5)).items()}
    base = times.pop("the loop")
    trap = times["empty UC_HOOK_INTR callback"] - base
    return [
        [isa.title, name, round(time - base), round(1e9 / (time - base)), (time - base) / trap]
        for name, time in times.items()
    ]
