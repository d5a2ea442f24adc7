"""The cost of a firing: a tight loop around a small probed function, and whole runs of a kernel.

It is compared, in the same run, with Unicorn's own means: an empty callback for a trap
(UC_HOOK_INTR) in machine code, the same in Python, and one before an instruction (UC_HOOK_CODE).

In the kernel a program makes the same system calls again and again, and a firing's cost is the
process's time beyond a machine with nothing enabled, which runs in turn with it.  What happens
once, as compiling the clauses, comes before the first turn.

An enabled probe may also make the kernel execute instructions of its own, such as the calls that
lead to a system call's probe.  They take time that is the guest's: so the table has the cost with
them and without them, at the speed of the run with nothing enabled.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Final

import unicorn
from unicorn.unicorn_py3.unicorn import uclib

from benchmarks.code import ENTRY, LOOP, SITE, TRAPS
from benchmarks.differences import TURNS, Spread, apart, beyond, firing
from benchmarks.figures import Cell, Figures, Scale
from emu.elf.symbols import Binding, Symbol, SymbolType
from emu.guest.function import CODE, FunctionGuest
from emu.guest.modules import Module
from emu.isa import Isa
from emu.native import available
from emu.native.builder import Module as NativeModule
from emu.native.link import Linked
from providers.fbt import FBT
from trapline import dof
from trapline.consumer.tracer import Tracer
from trapline.framework.device.dtrace import DTrace
from trapline.machine.kernel_machine import KernelMachine, KernelOptions, boot, kernel_guest

ROUNDS = 50_000
# Rounds of one of the turns.
_ROUNDS: Final = 100_000
PROGRAMS = {
    "fbt::f:entry { }": "fbt::f:entry { }",
    "with a predicate": "fbt::f:entry /arg0 != 0/ { }",
    "with an aggregation": "fbt::f:entry { @ = count(); }",
    "with both": "fbt::f:entry /arg0 != 0/ { @ = count(); }",
}
# Commands of the kernel guest; none of them ends before its measurement.
_SPIN: Final = "spin -y 100000000"
_ASK: Final = "getpid 100000000"
_COPY: Final = "dd if=/dev/zero of=/dev/null bs=1 count=100000000"
# The probes that fire meanwhile.  A system call's probe is measured where a call does the least, and the kernel's own
# probes where a call meets eight of them: then a firing is a large part of the run.
KERNEL_PROGRAMS: Final = (
    (_SPIN, "fbt:::entry { @[probefunc] = count(); }"),
    (_SPIN, "fbt:::entry { @[execname, probefunc] = count(); }"),
    (_SPIN, "fbt:::entry { @[stack()] = count(); }"),
    (_ASK, "syscall:::entry { @[probefunc] = count(); }"),
    (_COPY, "vfs:::, lockstat::: { @ = count(); }"),
)
_NATIVE: Final = "empty native UC_HOOK_INTR callback"
_TRAP: Final = "empty UC_HOOK_INTR callback"
_PAGE = 0x1000
_STACK = 0x7000_0000


def bare(isa: Isa, code: bytes, rounds: int, hook: int | None, at: int | None = None) -> Callable[[], None]:
    """Return a run of some code on bare Unicorn, with an empty Python callback."""
    uc, run = _bare(isa, code, rounds)
    if hook == unicorn.UC_HOOK_INTR:
        uc.hook_add(hook, lambda _uc, _number, _data: None)
    elif hook == unicorn.UC_HOOK_CODE:
        place = CODE + (at or 0)
        uc.hook_add(hook, lambda _uc, _address, _size, _data: None, begin=place, end=place)
    return run


def _bare(isa: Isa, code: bytes, rounds: int) -> tuple[unicorn.Uc, Callable[[], None]]:
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

    def run() -> None:
        enter(uc, isa, sp, landing, rounds)
        uc.emu_start(CODE, landing)

    return uc, run


@cache
def _nothing() -> Linked:
    """Return a callback in machine code that does nothing."""
    module = NativeModule()
    module.function("nothing", 3).ret()
    return Linked(module.compiled("benchmark"))


def bare_native(isa: Isa, code: bytes, rounds: int) -> Callable[[], None]:
    """Return a run of some code on bare Unicorn, with an empty callback for traps in machine code."""
    uc, run = _bare(isa, code, rounds)
    hook = ctypes.c_size_t()
    at = ctypes.c_void_p(_nothing().address("nothing"))
    first, last = ctypes.c_uint64(1), ctypes.c_uint64(0)
    handle = uc._uch  # noqa: SLF001  there is no public way to the handle
    uclib.uc_hook_add(handle, ctypes.byref(hook), unicorn.UC_HOOK_INTR, at, None, first, last)
    return run


def enter(uc: unicorn.Uc, isa: Isa, sp: int, landing: int, argument: int, memory: int | None = None) -> None:
    """Set registers and stack as a call with one argument does.

    `memory`: physical address of `sp`.
    """
    ids = isa.unicorn.ids
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


def kernel_machine(isa: Isa, command: str) -> KernelMachine:
    """Return a booted kernel guest that will execute a command."""
    return boot(kernel_guest(KernelOptions(isa=isa, command=command)))


def measure(isas: Sequence[Isa], scale: Scale) -> Figures:
    """Measure on some ISAs."""
    return Figures(
        "What a firing costs",
        (
            "ISA",
            "what",
            "ns",
            "quartiles",
            "guest instructions",
            "ns without them",
            "firings/s",
            "x an empty trap callback",
            "x an empty native one",
            "x the run",
        ),
        apart(_all_rows, isas, scale),
        "Nanoseconds of this process's CPU time beyond the same loop without probe or hook, or beyond a kernel with "
        f"nothing enabled: with and without take turns, and the figure is the median of {TURNS} differences; a row "
        "whose quartiles are further apart than its median is from zero is not measured.  "
        f"A turn of the loop has {_ROUNDS:,} rounds.  "
        "Guest instructions are those that the guest executes more for a firing, and cost what they do with nothing "
        "enabled.  The time of the whole run is a multiple of that with nothing enabled.  "
        "The goals: an empty action 3 times an empty native callback, all of a kernel's functions 1.3 times the run.",
    )


def _all_rows(isa: Isa, scale: Scale) -> list[list[Cell]]:
    return [*_rows(isa, scale), *_kernel_rows(isa, scale)]


def _rows(isa: Isa, scale: Scale) -> list[list[Cell]]:
    loop, traps, rounds = LOOP[isa.name], TRAPS[isa.name], scale.rounds(_ROUNDS)
    native = {_NATIVE: bare_native(isa, traps, rounds)} if available() else {}
    base = bare(isa, loop, rounds, None)
    actions = {
        **native,
        _TRAP: bare(isa, traps, rounds, unicorn.UC_HOOK_INTR),
        "empty UC_HOOK_CODE callback": bare(isa, loop, rounds, unicorn.UC_HOOK_CODE, SITE[isa.name]),
        **{name: probed(isa, program, rounds) for name, program in scale.some(PROGRAMS.items())},
    }
    for action in (base, *actions.values()):
        action()
    found = {
        name: Spread(*(value / rounds for value in spread))
        for name, spread in beyond(base, actions, scale.turns(TURNS)).items()
    }
    trap, least = found[_TRAP], found.get(_NATIVE)
    return [
        [isa.title, name, spread.cell(), spread.quartiles(), "", "", _rate(spread), spread.over(trap),
         "" if least is None else spread.over(least), ""]
        for name, spread in found.items()
    ]  # fmt: skip


def _rate(spread: Spread) -> Cell:
    """Return how often something happens in a second, given its nanoseconds."""
    return "" if spread.noise else round(1e9 / spread.median)


def _kernel_rows(isa: Isa, scale: Scale) -> list[list[Cell]]:
    rows: list[list[Cell]] = []
    for command, program in scale.some(KERNEL_PROGRAMS):
        found = firing(partial(kernel_machine, isa, command), "", program, scale)
        spread = found.nanoseconds
        rows.append([
            isa.title,
            f"kernel, {program}",
            spread.cell(),
            spread.quartiles(),
            round(found.instructions),
            found.without.cell(),
            _rate(spread),
            "",
            "",
            "" if spread.noise else found.share,
        ])  # fmt: skip
    return rows
