"""if and else: a clause with branches becomes clauses without, one after the other.

    probe /p/ { a; if (t) b; else c; d; }

    probe                    { this->%go = 0; this->%1 = 0; this->%1else = 0; }
    probe                    { %go = p; }
    probe /%go/              { %go = 0; a; %go = 1; }
    probe /%go/              { %go = 0; %1 = t; %1else = !%1; %go = 1; }
    probe /%go && %1/        { %go = 0; b; %go = 1; }
    probe /%go && %1else/    { %go = 0; c; %go = 1; }
    probe /%go/              { %go = 0; d; %go = 1; }

The names cannot be written in D.  `%go` stays 0 when a part faults, so that the parts after it do
not run.

Source: libdtrace dt_sugar.c, which uses similar names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from typing import cast

from trapline.d.parse import ast
from trapline.d.parse.literals import INT

_GO = "%go"
_SIDES = ("", "else")


def branch_free(clause: ast.Clause) -> tuple[ast.Clause, ...]:
    """Return clauses without `if` that are equivalent to a clause."""
    if not any(isinstance(statement, ast.If) for statement in clause.body or ()):
        return (clause,)
    return tuple(_Splitter(clause).clauses())


class _Splitter:
    def __init__(self, clause: ast.Clause) -> None:
        self._clause = clause
        self._count = 0

    def clauses(self) -> Iterator[ast.Clause]:
        clause = self._clause
        parts = list(self._statements(clause.body or (), ()))
        conditions = (f"%{number}{side}" for number in range(1, self._count + 1) for side in _SIDES)
        yield self._part(None, *(_set(clause.line, name, _number(clause.line, 0)) for name in (_GO, *conditions)))
        wanted = _number(clause.line, 1) if clause.predicate is None else _truth(clause.predicate)
        yield self._part(None, _set(clause.line, _GO, wanted))
        yield from parts

    def _part(self, predicate: ast.Expression | None, *body: ast.Statement) -> ast.Clause:
        return replace(self._clause, predicate=predicate, body=body)

    def _guarded(self, condition: tuple[str, ...], *body: ast.Statement) -> ast.Clause:
        """Make a part that runs under a condition; the next ones run unless it faults."""
        line = body[0].line
        names = [_name(line, name) for name in (_GO, *condition)]
        predicate = reduce(lambda left, right: ast.Binary(line, "&&", left, right), cast("list[ast.Expression]", names))
        stop, go = (_set(line, _GO, _number(line, value)) for value in (0, 1))
        return self._part(predicate, stop, *body, go)

    def _statements(self, body: tuple[ast.Statement, ...], condition: tuple[str, ...]) -> Iterator[ast.Clause]:
        plain: list[ast.Statement] = []
        for statement in body:
            if not isinstance(statement, ast.If):
                plain.append(statement)
                continue
            if plain:
                yield self._guarded(condition, *plain)
                plain = []
            yield from self._branches(statement, condition)
        if plain:
            yield self._guarded(condition, *plain)

    def _branches(self, node: ast.If, condition: tuple[str, ...]) -> Iterator[ast.Clause]:
        self._count += 1
        line = node.line
        then, otherwise = (f"%{self._count}{side}" for side in _SIDES)
        decided = _set(line, then, _truth(node.test))
        yield self._guarded(condition, decided, _set(line, otherwise, ast.Prefix(line, "!", _name(line, then))))
        yield from self._statements(node.then, (then,))
        yield from self._statements(node.otherwise, (otherwise,))


def _name(line: int, name: str) -> ast.Scoped:
    return ast.Scoped(line, "this", name)


def _number(line: int, value: int) -> ast.Number:
    return ast.Number(line, value, INT)


def _set(line: int, name: str, value: ast.Expression) -> ast.Assign:
    return ast.Assign(line, "=", _name(line, name), value)


def _truth(node: ast.Expression) -> ast.Expression:
    """Make 0 or 1 of a scalar."""
    return ast.Prefix(node.line, "!", ast.Prefix(node.line, "!", node))
