"""A test that asserts in a loop fails if the loop has nothing to try.

The loop runs over what is written there (a display, a range of constants), or over `some(...)`
(tests/support/some.py), which asserts that there was an item.  `assert all(...)` is such a loop.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.some import some

TESTS = Path(__file__).parent
# Functions whose result has items if all their arguments have.
KEEPING = {"chain", "enumerate", "iter", "list", "product", "reversed", "set", "sorted", "tuple", "zip"}
VIEWS = {"items", "keys", "values"}
Function = ast.FunctionDef | ast.AsyncFunctionDef


def constants(tree: ast.AST) -> dict[str, ast.expr]:
    """Return the names that a module or a function assigns once, itself, and their values."""
    found: dict[str, ast.expr] = {}
    assigned: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            assigned.append(node.id)
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            found[node.targets[0].id] = node.value
    return {name: value for name, value in found.items() if assigned.count(name) == 1}


def has_items(node: ast.expr, names: dict[str, ast.expr]) -> bool:
    """Return whether an expression has an item for certain."""
    match node:
        case ast.Tuple() | ast.List() | ast.Set():
            return any(not isinstance(one, ast.Starred) or has_items(one.value, names) for one in node.elts)
        case ast.Dict():
            return any(key is not None for key in node.keys)
        case ast.Constant():
            return bool(node.value)
        case ast.Name():
            return node.id in names and has_items(names[node.id], {n: v for n, v in names.items() if n != node.id})
        case ast.BinOp(op=ast.Add() | ast.BitOr()):
            return has_items(node.left, names) or has_items(node.right, names)
        case ast.BinOp(op=ast.Mult(), right=ast.Constant(value=int(times))):
            return times > 0 and has_items(node.left, names)
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
            return all(has_items(one.iter, names) and not one.ifs for one in node.generators)
        case ast.Call(func=ast.Attribute(value=of, attr=attr), args=[]) if attr in VIEWS:
            return has_items(of, names)
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(text)), attr="split"), args=[]):
            return bool(text.split())
        case ast.Call():
            return _returns_items(node, names)
    return False


def _returns_items(call: ast.Call, names: dict[str, ast.expr]) -> bool:
    name = ast.unparse(call.func).rpartition(".")[2]
    if name == "range":
        try:
            return bool(range(*map(ast.literal_eval, call.args)))
        except ValueError:
            return False
    if name == "zip" and any(word.arg == "strict" and ast.literal_eval(word.value) for word in call.keywords):
        return any(has_items(one, names) for one in call.args)  # raises unless all have as many
    return name == "some" or (name in KEEPING and bool(call.args) and all(has_items(one, names) for one in call.args))


def is_assertion(node: ast.AST) -> bool:
    """Return whether a statement asserts: `assert`, or a `with` of `pytest.raises` and its like."""
    if isinstance(node, ast.With):
        return any(ast.unparse(item.context_expr).startswith(("pytest.raises", "pytest.warns")) for item in node.items)
    return isinstance(node, ast.Assert)


def _is_all_of_nothing(node: ast.AST, names: dict[str, ast.expr]) -> bool:
    match node:
        case ast.Assert(test=ast.Call(func=ast.Name(id="all"), args=[items])):
            return not has_items(items, names)
    return False


def assertions(node: ast.AST, names: dict[str, ast.expr], *, runs: bool = True) -> Iterator[bool]:
    """Yield for each assertion below a node whether its loops have items for certain."""
    for child in ast.iter_child_nodes(node):
        if is_assertion(child):
            yield runs and not _is_all_of_nothing(child, names)
        below = runs and (not isinstance(child, ast.For | ast.AsyncFor) or has_items(child.iter, names))
        yield from assertions(child, names, runs=below)


def passes_on_nothing(tree: ast.Module) -> Iterator[Function]:
    """Yield the tests of a module whose every assertion stands in a loop that may have no items."""
    module = constants(ast.Module([one for one in tree.body if isinstance(one, ast.Assign)], []))
    for node in ast.walk(tree):
        if isinstance(node, Function) and node.name.startswith("test"):
            own = constants(node)
            names = {name: value for name, value in module.items() if name not in own} | own
            found = [*assertions(node, names)]
            if found and not any(found):
                yield node


@pytest.mark.parametrize(
    ("body", "passes"),
    [
        ("for x in items(): assert x", True),
        ("for x in some(items()): assert x", False),
        ("for x in (1, 2): assert x", False),
        ("for x in (): assert x", True),
        ("for x in range(3): assert x", False),
        ("for x in range(n): assert x", True),
        ("for x in zip((1, 2), items()): assert x", True),
        ("for x in zip((1, 2), items(), strict=True): assert x", False),
        ("for x in enumerate(sorted({1: 2}.items())): assert x", False),
        ("for x in (1, 2):\n  for y in items(x): assert y", True),
        ("for x in (1, 2):\n  for y in some(items(x)): assert y", False),
        ("assert all(items())", True),
        ("assert all(x for x in some(items()))", False),
        ("assert all(x for x in some(items()) if x)", True),
        ("assert all(x for x in LISTED)", False),
        ("for x in items(): assert x\nassert n", False),
        ("for x in items():\n  with pytest.raises(ValueError): x()", True),
        ("known = (1, 2)\nfor x in known: assert x", False),
        ("known = items()\nfor x in known: assert x", True),
    ],
)
def test_a_loop_that_may_have_no_items_is_found(body, passes):
    text = "LISTED = [1]\ndef test_it(n):\n" + "".join(f"  {line}\n" for line in body.split("\n"))
    assert bool([*passes_on_nothing(ast.parse(text))]) == passes


def test_some_fails_on_nothing():
    assert [*some("ab")] == ["a", "b"]
    with pytest.raises(AssertionError, match="nothing to try"):
        [*some("")]


def test_no_test_passes_on_nothing():
    found = [
        f"{path.relative_to(TESTS.parent)}:{node.lineno}: {node.name}"
        for path in some(TESTS.rglob("test_*.py"))
        for node in passes_on_nothing(ast.parse(path.read_text("utf-8")))
    ]
    assert not found, "wrap what the loop runs over in some() of tests/support/some.py:\n" + "\n".join(found)
