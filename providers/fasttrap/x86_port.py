"""The common part of fasttrap on x86-64 and on i386.

Source: FreeBSD sys/cddl/contrib/opensolaris/uts/intel/dtrace/fasttrap_isa.c.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from emu.displaced.decision import Code, OutOfLine, Treatment
from emu.isa.x86.instruction import Mode
from providers.fasttrap.port import Port
from providers.fasttrap.x86_functions import boundaries, has_jump_table, returns
from providers.fidelity import Fidelity
from providers.x86 import Table

_INT3: Final = b"\xcc"
# Number of the exception that ends a copy (FreeBSD sys/x86/include/trap.h).
_T_DTRACE_RET: Final = 32
RETURN_TRAP: Final = bytes((0xCD, _T_DTRACE_RET))


def port(
    mode: Mode,
    tables: Mapping[Fidelity, Table],
    *,
    arguments: tuple[str, ...],
    late_arguments: tuple[str, ...],
    results: tuple[str, ...],
    chunk: Callable[[OutOfLine, int, int], bytes],
    second_copy: Callable[[OutOfLine], int],
    saved_offset: Callable[[OutOfLine], int] = lambda _move: 0,
) -> Port:
    """Return fasttrap in a mode, by its tables, registers and scratch code (`Port`)."""

    def treat(code: Code, fidelity: Fidelity) -> Treatment:
        """Decide about an instruction (fasttrap_tracepoint_init)."""
        return tables[fidelity].decide(code)

    return Port(
        breakpoint=lambda _length: _INT3,
        longest=15,
        treat=treat,
        returns=partial(returns, mode=mode),
        boundaries=partial(boundaries, mode=mode),
        has_jump_table=partial(has_jump_table, mode=mode),
        arguments=arguments,
        late_arguments=late_arguments,
        stack_skip=1,
        results=results,
        chunk=chunk,
        copies=1,
        second_copy=second_copy,
        saved_offset=saved_offset,
        trap_offset=lambda move: second_copy(move) + len(move.code),
        always_steps=False,
        return_trap=_T_DTRACE_RET,
        return_trap_length=len(RETURN_TRAP),
    )
