"""The needs of a DIF object before it runs."""

from __future__ import annotations

from typing import Final

from trapline.framework.base import dif
from trapline.framework.base.dif import Op, Subr, Var

_SCRATCH_OPS: Final = frozenset({Op.CALL, Op.ALLOCS, Op.COPYS, Op.STB, Op.STH, Op.STW, Op.STX})
_DYNAMIC: Final = frozenset({Op.LDTS, Op.STTS, Op.LDGAA, Op.STGAA, Op.LDTAA, Op.STTAA})


def needs_scratch(code: int) -> bool:
    """Return whether an instruction may take scratch space."""
    op = dif.opcode(code)
    return op in _SCRATCH_OPS or (op == Op.LDGS and dif.index(code) == Var.EXECARGS)


def goes_stale(code: int) -> bool:
    """Return whether an instruction makes work for the cleaner, or waits for it."""
    op = dif.opcode(code)
    return op in _DYNAMIC or (op == Op.CALL and dif.index(code) == Subr.SPECULATION)
