"""The cost of a firing: a tight loop around a small probed function, and whole runs of a kernel.

It is compared, in the same run, with Unicorn's own means: an empty callback for a trap
(UC_HOOK_INTR) in machine code, the same in Python, and one before an instruction (UC_HOOK_CODE).

In the kernel a program makes the same system calls again and again, and a firing's cost is the
process's time beyond the same run with nothing enabled.  What happens once, as compiling the
clauses, is taken off by the difference between a long run and a short one.

An enabled probe may also make the kernel execute instructions of its own, such as the calls that
lead to a system call's probe.  They take time that is the guest's: so the table has the cost with
them and without them, at the speed of the run with nothing enabled.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import Final, NamedTuple

import unicorn
from unicorn.unicorn_py3.unicorn import uclib

from benchmarks.code import ENTRY, LOOP, SITE, TRAPS
from benchmarks.figures import Cell, Figures, Scale, interleaved
from emu.elf_symbols import Binding, Symbol, SymbolType
from emu.guest.function import CODE, FunctionGuest
from emu.guest.modules import Module
from emu.isa import Isa
from emu.native import available
from emu.native.builder import Module as NativeModule
from emu.native.linking import Linked
from providers.fbt import FBT
from trapline import dof
from trapline.consumer.tracer import Tracer
from trapline.framework.dtrace import DTrace
from trapline.machine.kernel_machine import KernelOptions, boot, kernel_guest

ROUNDS = 50_000
PROGRAMS = {
    "fbt::f:entry { }": "fbt::f:entry { }",
    "with a predicate": "fbt::f:entry /arg0 != 0/ { }",
    "with an aggregation": "fbt::f:entry { @ = count(); }",
    "with both": "fbt::f:entry /arg0 != 0/ { @ = count(); }",
}
# Programs of the kernel guest, and how often each does what it does in the shorter of two runs.
_SPIN: Final = "spin -y {}"
_ASK: Final = "getpid {}"
_COPY: Final = "dd if=/dev/zero of=/dev/null bs=1 count={}"
COMMANDS: Final = {_SPIN: 20_000, _ASK: 80_000, _COPY: 16_000}
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


class _KernelRun(NamedTuple):
    seconds: float
    """Seconds of this process on its CPU."""
    firings: int
    instructions: int
    """Instructions that the guest executed."""

    def beyond(self, other: _KernelRun) -> _KernelRun:
        """Return what this run has more than another one."""
        return _KernelRun(*(mine - theirs for mine, theirs in zip(self, other, strict=True)))


def kernel_run(isa: Isa, command: str, program: str) -> _KernelRun:
    """Run a command in the kernel guest, with a D program enabled ("": none)."""
    machine = boot(kernel_guest(KernelOptions(isa=isa, command=command)))
    with Tracer(machine.guest, machine.dtrace, {"bufsize": "16m", "aggsize": "16m"}) as tracer:
        if program:
            tracer.enable(program)
        engine = machine.guest.engine
        first, start = engine.instructions, time.process_time()
        if program:
            tracer.run()
        else:
            machine.guest.run(None)
        seconds = time.process_time() - start
        firings = sum(element.value for element in tracer.aggregations() if isinstance(element.value, int))
    return _KernelRun(seconds, firings, engine.instructions - first)


def measure(isas: Sequence[Isa], scale: Scale) -> Figures:
    """Measure on some ISAs."""
    rounds = scale.rounds(ROUNDS)
    return Figures(
        "What a firing costs",
        (
            "ISA",
            "what",
            "ns",
            "guest instructions",
            "ns without them",
            "firings/s",
            "x an empty trap callback",
            "x an empty native one",
            "x the run",
        ),
        [row for isa in isas for row in (*_rows(isa, rounds, scale), *_kernel_rows(isa, scale))],
        "Nanoseconds beyond the same loop without probe or hook; least of 5 interleaved runs of "
        f"{rounds:,} rounds.  In the kernel: process time beyond the same run with nothing enabled, and that run's "
        "time multiplied by what; a firing, from the difference between a long run and a short one, each the fastest "
        "of 3.  Guest instructions are those that the guest executes more for a firing, and cost what they do in the "
        "run with nothing enabled.  "
        "The goals: an empty action 3 times an empty native callback, all of a kernel's functions 1.3 times the run.",
    )


def _rows(isa: Isa, rounds: int, scale: Scale) -> list[list[Cell]]:
    loop, traps = LOOP[isa.name], TRAPS[isa.name]
    native = {_NATIVE: bare_native(isa, traps, rounds)} if available() else {}
    actions = {
        "the loop": bare(isa, loop, rounds, None),
        **native,
        _TRAP: bare(isa, traps, rounds, unicorn.UC_HOOK_INTR),
        "empty UC_HOOK_CODE callback": bare(isa, loop, rounds, unicorn.UC_HOOK_CODE, SITE[isa.name]),
        **{name: probed(isa, program, rounds) for name, program in scale.some(PROGRAMS.items())},
    }
    for action in actions.values():
        action()
    times = {name: 1e9 * found / rounds for name, found in interleaved(actions, scale.turns(5)).items()}
    base = times.pop("the loop")
    trap, least = times[_TRAP] - base, times.get(_NATIVE, base) - base
    return [
        [
            isa.title,
            name,
            round(found - base),
            "",
            "",
            round(1e9 / (found - base)),
            (found - base) / trap,
            (found - base) / least if least > 0 else "",
            "",
        ]
        for name, found in times.items()
    ]


def _kernel_rows(isa: Isa, scale: Scale) -> list[list[Cell]]:
    programs = scale.some(KERNEL_PROGRAMS)
    plain = {command: _difference(isa, command, "", scale) for command in dict(programs)}
    rows: list[list[Cell]] = []
    for command, program in programs:
        traced = _difference(isa, command, program, scale)
        seconds, firings, instructions = traced.beyond(plain[command])
        guest = instructions * plain[command].seconds / plain[command].instructions
        rows.append([
            isa.title,
            f"kernel, {program}",
            round(1e9 * seconds / max(1, firings)),
            round(instructions / max(1, firings)),
            round(1e9 * (seconds - guest) / max(1, firings)),
            round(firings / seconds) if seconds > 0 else "",
            "",
            "",
            traced.seconds / plain[command].seconds,
        ])  # fmt: skip
    return rows


def _difference(isa: Isa, command: str, program: str, scale: Scale) -> _KernelRun:
    """Return what a long run has more than a short one, each the fastest of a few."""
    few = scale.rounds(COMMANDS[command])
    short, long = (
        min(kernel_run(isa, command.format(times), program) for _ in range(scale.turns(3))) for times in (few, 5 * few)
    )
    return long.beyond(short)
