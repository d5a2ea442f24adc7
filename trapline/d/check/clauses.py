"""The check of a clause: the types of its statements and of its predicate.

Source: FreeBSD libdtrace dt_cc.c (dt_compile_one_clause()), dt_parser.c (dt_node_clause(),
dt_cook_clause()).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from trapline.d.check.aggregations import check_aggregation, is_aggregation
from trapline.d.check.expressions import Expressions
from trapline.d.check.scopes import Globals
from trapline.d.errors import CompileError, Region, within
from trapline.d.parse import ast
from trapline.d.types.rules import is_scalar
from trapline.d.types.types import type_name

# Errors of an action list whose cause may be that the predicate, which defines the name, was not yet checked.
_RETRIED: Final = frozenset({"D_IDENT_UNDEF", "D_VAR_UNDEF"})


def check_clause(clause: ast.Clause, expressions: Expressions, names: Globals) -> None:
    """Check a clause without `if`: first its actions, unless the predicate defines a name they use.

    Raises `CompileError`.
    """
    body, predicate = clause.body or (), clause.predicate
    try:
        _check_actions(body, expressions, names)
    except CompileError as error:
        if predicate is None or error.tag not in _RETRIED:
            raise
        _check_predicate(predicate, expressions)
        _check_actions(body, expressions, names)
    if predicate is not None:
        _check_predicate(predicate, expressions)


def _check_actions(body: Sequence[ast.Statement], expressions: Expressions, names: Globals) -> None:
    with within(Region.ACTIONS):
        for statement in body:
            assert not isinstance(statement, ast.If), "branch_free() has made clauses of it"
            chosen = expressions.chosen(statement)
            if is_aggregation(chosen):
                check_aggregation(chosen, expressions, names)
            else:
                expressions.check(chosen)


def _check_predicate(node: ast.Expression, expressions: Expressions) -> None:
    with within(Region.PREDICATE):
        checked = expressions.check(node)
        if not is_scalar(checked.type):
            raise CompileError("D_PRED_SCALAR", f"the predicate is {type_name(checked.type)}, not a scalar", node.line)
