"""Walks over syntax trees without recursion: the depth of a tree, and the names in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any, Final

from trapline.d import ast
from trapline.d.errors import CompileError

# The largest depth of a program, so that the later passes, which recurse, can handle it.  The parser of libdtrace has
# such a limit too, the depth of its stack.
DEPTH_MAX: Final = 1000
# The depth of a node, if it is not 1: types recurse through more functions than expressions.
_STEPS: Final[dict[type, int]] = {ast.CompositeSpecifier: 8, ast.FunctionPart: 8}
_PART_STEPS: Final = 4


_fields: dict[type[ast.Node], tuple[str, ...]] = {}


def _field_names(node: type[ast.Node]) -> tuple[str, ...]:
    if node not in _fields:
        _fields[node] = tuple(field.name for field in fields(node))
    return _fields[node]


def children(node: ast.Node) -> Iterator[ast.Node]:
    """Yield the nodes directly below a node."""
    for name in _field_names(type(node)):
        value: Any = getattr(node, name)
        if isinstance(value, ast.Node):
            yield value
        elif isinstance(value, tuple):
            yield from (one for one in value if isinstance(one, ast.Node))


def check_depth(root: ast.Node) -> None:
    """Refuse a tree that is nested too deeply.  Raises `CompileError` D_SYNTAX."""
    pending = [(root, 1)]
    while pending:
        node, depth = pending.pop()
        depth += _STEPS.get(type(node), 1)
        if isinstance(node, ast.Declarator):
            depth += _PART_STEPS * len(node.parts)
        if depth > DEPTH_MAX:
            raise CompileError(
                "D_SYNTAX", f"this is nested too deeply: at most {DEPTH_MAX} levels are possible", node.line
            )
        pending += ((child, depth) for child in children(node))


def names_in(root: ast.Node) -> frozenset[str]:
    """Return the plain names in a tree."""
    found = set()
    pending = [root]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Name):
            found.add(node.name)
        pending += children(node)
    return frozenset(found)
