"""The code of a clause where there are several CPUs: each has a function of its own.

The functions are the same machine code, linked with the addresses of a CPU's own buffer,
aggregations, clause-local variables and random numbers.  An enabling has a block of words for each
CPU, one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from emu.native.builder import Module
from emu.native.link import Linked
from trapline.framework.base.blocks import EcbWord
from trapline.framework.native.firing_words import Firing


def ecb_size(aggregations: int) -> int:
    """Return the number of an enabling's words for one CPU."""
    return EcbWord.AGGREGATIONS + 3 * aggregations


def by_cpu(clauses: Sequence[Linked], size: int, symbols: Mapping[str, int]) -> Linked:
    """Return `run(ecb, args, machine)`, which calls the function of the CPU that runs.

    `size`: the bytes of an enabling's words for one CPU.
    """
    module = Module()
    f = module.function("run", 3)
    ecb, arguments, machine = f.parameters
    cpu = f.call(module.external("cpu", 0))
    f.store(module.symbol("firing"), cpu, Firing.offset("cpu"))
    own = f.add(ecb, f.mul(cpu, module.symbol("ecb_size")))
    with f.cases(cpu) as case:
        for number in range(len(clauses)):
            with case(number):
                f.call(module.external(f"run{number}", 3), own, arguments, machine)
                f.ret()
    f.ret()
    runs = {f"run{number}": linked.address("run") for number, linked in enumerate(clauses)}
    return Linked(module.compiled("by_cpu"), {**symbols, **runs, "ecb_size": size})
