"""`trapline.bench`: the cost of a probe, by mechanism, or in a program."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from emu.guest.base import GuestError
from emu.isa import DEFAULT_ISA, ISAS
from trapline.api import TraplineError
from trapline.consumer.errors import ConsumerError
from trapline.cost import mechanisms
from trapline.cost.models import CostModel, ModelError, chosen, of_isa
from trapline.cost.program import Hits, profile
from trapline.cost.rows import Row
from trapline.d.errors import CompileError
from trapline.lab.displace.bench import DisplaceError, isa_of
from trapline.lab.html_table import Cell, html_table
from trapline.lab.html_table import code as cell
from trapline.machine.linux_machine import LinuxOptions
from trapline.support.own_files import TargetError, own_program


@dataclass(frozen=True, slots=True)
class Costs:
    """The cost of one hit of each mechanism."""

    rows: tuple[Row, ...]
    models: tuple[CostModel, ...]

    def nanoseconds(self, row: Row) -> Mapping[str, float]:
        """Return the price of a hit on the real machines of the row's ISA, by the model's name."""
        return {model.name: model.nanoseconds(row.events) for model in of_isa(self.models, row.isa)}

    def _repr_html_(self) -> str:
        rows = [
            [
                Cell((row.isa,)),
                Cell((row.mechanism, row.what)),
                Cell((f"{row.instructions:g}",)),
                Cell((f"{row.exceptions:g}",)),
                Cell(tuple(f"{price:.0f} ns {name}" for name, price in self.nanoseconds(row).items() if price)),
            ]
            for row in self.rows
        ]
        return html_table(("ISA", "probe", "instructions", "exceptions", "on real machines"), rows)


@dataclass(frozen=True, slots=True)
class ProgramCost:
    """The cost of probes for a program."""

    isa: str
    instructions: int
    """The program's own."""
    hits: tuple[Hits, ...]
    """The most frequent probe first."""
    models: tuple[CostModel, ...]
    """The machines of the program's ISA."""

    def nanoseconds(self) -> Mapping[str, float]:
        """Return the price of all hits on real machines, by the model's name."""
        return {model.name: sum(one.hits * model.nanoseconds(one.events) for one in self.hits) for model in self.models}

    def _repr_html_(self) -> str:
        rows = [[cell(one.probe), Cell((f"{one.hits:,}",)), Cell((one.how,))] for one in self.hits]
        prices = ", ".join(f"{price / 1e6:.3g} ms on {name}" for name, price in self.nanoseconds().items())
        return html_table(("probe", "hits", "displaced"), rows, prices)


def bench(
    *mechanism: str,
    isa: str | None = None,
    program: str | None = None,
    probes: Sequence[str] = ("pid$target:::entry",),
    root: str | Path | None = None,
    models: Sequence[str] = (),
) -> Costs | ProgramCost:
    """Return the cost of a hit, counted, and priced by models of real machines.

        >>> {row.mechanism for row in trapline.bench("uprobe", isa="riscv64").rows}
        {'uprobe'}
        >>> probes = ["pid$target:a.out:fib:entry"]
        >>> cost = trapline.bench(program="testbins:zoo recursion", probes=probes)
        >>> [one.hits for one in cost.hits]
        [177]

    Each `mechanism` is one of `trapline bench --mechanism`; none: all.  `isa`: None for all, or for
    the program's.  With `program` the result is a `ProgramCost`: what `probes` would cost it.
    `models`: none for all (`trapline bench --models`).  Raises `TraplineError`.
    """
    try:
        machine = None if isa is None else isa_of(isa)
        known = tuple(chosen(models))
        if program is not None:
            words = own_program(tuple(shlex.split(program)), machine or DEFAULT_ISA)
            options = LinuxOptions(words, isa=machine, root=Path(root) if root else None)
            found = profile(options, probes)
            usable = tuple(of_isa(known, found.isa))
            return ProgramCost(found.isa, found.instructions, found.hits, usable)
    except (ModelError, TargetError, DisplaceError, GuestError, CompileError, ConsumerError, ValueError) as error:
        raise TraplineError(str(error)) from None
    unknown = [name for name in mechanism if name not in mechanisms.MECHANISMS]
    if unknown:
        raise TraplineError(f"'{unknown[0]}' is not a mechanism: there are {', '.join(mechanisms.MECHANISMS)}")
    rows = mechanisms.measure(list(ISAS.values()) if machine is None else [machine], mechanism or mechanisms.MECHANISMS)
    return Costs(tuple(row for row in rows if row is not None), known)
