"""Rules that the tests hand to `trapline check --rules`: wrong ones, and one that kills its process."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from emu.displaced.decision import DisplacedTable, Emulated
from emu.displaced.plans import Plan, Set
from emu.isa import ISAS
from emu.probe.patcher import Patcher
from providers import fasttrap, uprobes
from providers.fasttrap.port import Port


def _shifted(plan: Plan, pc: str) -> Plan:
    """Return a plan that ends one byte, or one instruction, too far."""
    operations: list[Any] = [
        one._replace(offset=one.offset + 4) if isinstance(one, Set) and one.target == pc and one.source == pc else one
        for one in plan.operations
    ]
    return Plan(tuple(operations))


def _wrong(name: str) -> Port:
    right = fasttrap.PORTS[name]
    pc = ISAS[name].registers.pc

    def treat(*arguments: Any) -> Any:
        found = right.treat(*arguments)
        return replace(found, plan=_shifted(found.plan, pc)) if isinstance(found, Emulated) else found

    return replace(right, treat=treat)


# Fasttrap on each ISA, but that emulated instructions that go straight on go too far.
WRONG = {name: _wrong(name) for name in fasttrap.PORTS}
x86_64, aarch64, riscv64, i386 = (WRONG[name] for name in ("x86_64", "aarch64", "riscv64", "i386"))


def _wrong_table(name: str) -> DisplacedTable:
    table, pc = ISAS[name].stub, ISAS[name].registers.pc

    def shifted(row: Any) -> Any:
        if not callable(row.what):
            return row
        return replace(row, what=lambda displaced: _shifted(row.what(displaced), pc))

    return replace(table, rows=tuple(map(shifted, table.rows)))


# What FBT's displaced instructions do, wrong in the same way.
TABLES = {name: _wrong_table(name) for name in ISAS if name in fasttrap.PORTS}

UPROBES = {
    name: replace(port, treat=lambda code, fidelity, port=port, name=name: _slipped(port.treat(code, fidelity), name))
    for name, port in uprobes.PORTS.items()
}


def _slipped(found: Any, name: str) -> Any:
    if isinstance(found, Emulated):
        return replace(found, plan=_shifted(found.plan, ISAS[name].registers.pc))
    return found


def _relative(name: str, wrong: Callable[[int, int], int]) -> Port:
    """Return a port whose emulated instructions end at an address that `wrong` makes of it."""
    right, pc = fasttrap.PORTS[name], ISAS[name].registers.pc

    def treat(code: Any, *others: Any) -> Any:
        found = right.treat(code, *others)
        if not isinstance(found, Emulated):
            return found
        end = code.address + found.length
        return replace(found, plan=Plan((Set(pc, pc, found.length + wrong(code.address, end) - end),)))

    return replace(right, treat=treat)


# Mistakes in the address of the next instruction, each of which is invisible at most addresses: the carry into the next
# page, into bit 16 and into bit 32 is lost, bit 31 is taken for a sign, the page's start for the address.
MISTAKES: dict[str, Callable[[int, int], int]] = {
    "page": lambda address, end: address & ~0xFFF | end & 0xFFF,
    "half": lambda address, end: address & ~0xFFFF | end & 0xFFFF,
    "carry": lambda address, end: address & ~0xFFFFFFFF | end & 0xFFFFFFFF,
    "short": lambda _address, end: end & 0xFFFFFFFF,
    "sign": lambda _address, end: end - ((end & 0x80000000) << 1),
    "high": lambda _address, end: end ^ 0x100 if 0x80000000 <= end < 1 << 32 else end,
    "start": lambda address, end: (address & ~0xFFF) + end - address,
    "across": lambda address, end: end ^ 0x10 if address >> 12 != (end - 1) >> 12 else end,
}
RELATIVE = SimpleNamespace(
    **{f"{name}_{mistake}": _relative(name, wrong) for name in fasttrap.PORTS for mistake, wrong in MISTAKES.items()}
)


def _deadly() -> Port:
    right = fasttrap.PORTS["riscv64"]

    def treat(code: Any, fidelity: Any) -> Any:
        if code.data[:2] == b"\x82\x80":  # c.jr ra: the process does not survive it
            os.kill(os.getpid(), signal.SIGKILL)
        return right.treat(code, fidelity)

    return replace(right, treat=treat)


DEADLY = _deadly()


class Forgetful(Patcher):
    """A patcher that writes nothing: probes never fire, and everything is the same."""

    def install(self, tracepoint: Any) -> None:
        """Do nothing."""


def _raise(*_arguments: Any) -> Any:
    raise ZeroDivisionError


# Fasttrap on x86-64, with a table that fails at every instruction.
RAISES = replace(fasttrap.PORTS["x86_64"], treat=_raise)
