"""Parser and printer: what is printed is parsed as the same tree."""

import re
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.command import run_trapline
from trapline.consumer.program.library import HOME
from trapline.d.parse import ast
from trapline.d.parse.lexer import Lexer
from trapline.d.parse.macros import Macros
from trapline.d.parse.parser import LEVELS, literals, parse_items
from trapline.d.parse.unparse import expression, unparse
from trapline.d.types.data_models import LP64

TYPES = {"int64_t", "uint8_t", "t"}
NAMES = st.sampled_from(["x", "y", "execname", "`proc0", "arg1"])


class Names:
    """What the lexer asks."""

    long_size = 8

    def is_type(self, name):
        return name in TYPES

    def is_defined(self, name):
        return not self.is_type(name)

    def is_complete(self, keyword, tag):
        return False


def ignore(text, line):
    """Take a control line, which is not part of the tree."""


def parsed(text):
    macros = Macros(("dtrace",), {}, missing_allowed=True)
    return [bare(item) for item in parse_items(Lexer(text, Names(), ignore, macros, literals(), pspec=False))]


def bare(node):
    """Return a tree without its line numbers."""
    if isinstance(node, tuple):
        return tuple(map(bare, node))
    if isinstance(node, ast.Node):
        values = {field.name: bare(getattr(node, field.name)) for field in fields(node)}
        return replace(node, **{**values, "line": 0})
    return node


WORD = st.sampled_from(["int", "char", "long", "unsigned", "const", "string"])
SPECIFIERS = st.lists(WORD, min_size=1, max_size=2).map(
    lambda words: ast.Specifiers(0, tuple(ast.Word(0, word) for word in words))
) | st.sampled_from(sorted(TYPES)).map(lambda name: ast.Specifiers(0, (ast.NamedType(0, name),)))
POINTERS = st.lists(st.just(ast.PointerPart(0, ())), min_size=1, max_size=2).map(tuple)
TYPE_NAMES = st.builds(
    ast.TypeName, st.just(0), SPECIFIERS, st.none() | POINTERS.map(lambda parts: ast.Declarator(0, "", parts))
)


def number(value):
    """A decimal literal without a suffix has the first type that holds it."""
    kind = "int" if value < 1 << 31 else "long"
    return ast.Number(0, value, kind)


LEAVES = (
    st.integers(0, (1 << 63) - 1).map(number)
    | st.text(st.characters(max_codepoint=0x2FF, exclude_characters="\0", exclude_categories=["Cs"])).map(
        lambda text: ast.Text(0, text)
    )
    | NAMES.map(lambda name: ast.Name(0, name))
    | st.builds(ast.Scoped, st.just(0), st.sampled_from(["self", "this"]), st.sampled_from(["a", "b"]))
    | st.sampled_from(["", "q"]).map(lambda name: ast.Aggregation(0, name or "_"))
)


NAME_NODES = NAMES.map(lambda name: ast.Name(0, name))


def larger(inner):
    zero = st.just(0)
    return (
        st.builds(ast.Binary, zero, st.sampled_from(sorted(LEVELS)), inner, inner)
        | st.builds(ast.Assign, zero, st.sampled_from(["=", "+=", "<<=", "^="]), NAME_NODES, inner)
        | st.builds(ast.Conditional, zero, inner, inner, inner)
        | st.builds(ast.Comma, zero, inner, inner)
        | st.builds(ast.Prefix, zero, st.sampled_from(["-", "!", "~", "*", "&", "++", "sizeof", "stringof"]), inner)
        | st.builds(ast.Step, zero, st.sampled_from(["++", "--"]), NAME_NODES)
        | st.builds(ast.Cast, zero, TYPE_NAMES, inner)
        | st.builds(ast.SizeOfType, zero, TYPE_NAMES)
        | st.builds(ast.OffsetOf, zero, TYPE_NAMES, st.sampled_from(["m", "n"]))
        | st.builds(ast.Translate, zero, TYPE_NAMES, inner)
        | st.builds(ast.Call, zero, NAME_NODES, st.lists(inner, max_size=3).map(tuple))
        | st.builds(ast.Index, zero, NAME_NODES, st.lists(inner, min_size=1, max_size=2).map(tuple))
        | st.builds(ast.MemberAccess, zero, NAME_NODES, st.sampled_from(["m", "n"]), st.booleans())
    )


EXPRESSIONS = st.recursive(LEAVES, larger, max_leaves=12)
STATEMENTS = st.recursive(
    EXPRESSIONS,
    lambda inner: st.builds(
        ast.If, st.just(0), EXPRESSIONS, st.lists(inner, max_size=2).map(tuple), st.lists(inner, max_size=2).map(tuple)
    ),
    max_leaves=4,
)


@given(EXPRESSIONS)
def test_an_expression_is_parsed_as_it_was_printed(tree):
    (clause,) = parsed(f"BEGIN {{ {expression(tree)}; }}")
    assert clause.body == (tree,)


@given(st.lists(STATEMENTS, max_size=3), st.none() | EXPRESSIONS)
def test_a_clause_is_parsed_as_it_was_printed(body, predicate):
    tree = ast.Clause(0, (ast.ProbeText(0, "fbt::f*:entry"), ast.ProbeText(0, "END")), predicate, tuple(body))
    assert parsed(unparse(tree)) == [tree]


PROGRAM = """
struct s { int a, *b; char c[3]; unsigned d : 3, : 2, e : 1; struct { long f; }; int (*g)(char, ...); };
union u { int a; };
enum e { A, B = 3, C };
typedef struct s *sp, sa[4][2];
int x; self int y; this string z; int v[int, string]; t *w[10]; extern int f(int a, char *);
inline int TWO = 1 + 1;
inline int plus[int a, int b] = a + b;
translator struct s < int64_t X > { a = X; b = 0; };
provider p { probe a(); probe b__c(int n, char *s) : (char *s, int n); };
BEGIN, fbt:::entry /x && y/ { if (x) { y = 1; } else if (z) x++; else trace(@a[1]); @b = count(); }
END
{ }
"""


def test_a_program_of_everything_is_parsed_as_it_was_printed():
    items = parsed(PROGRAM)
    assert len(items) == 16
    assert parsed("".join(map(unparse, items))) == items


@pytest.mark.parametrize("path", sorted(HOME.glob("*/*.d")), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_the_library_is_parsed_as_it_is_printed(path):
    TYPES.update("psinfo_t lwpsinfo_t cpuinfo_t pid_t id_t uid_t gid_t uint_t uintptr_t processorid_t psetid_t".split())
    TYPES.update("chipid_t lgrp_id_t dev_t timestruc_t taskid_t projid_t poolid_t zoneid_t".split())
    TYPES.update(LP64.typedefs)
    TYPES.update(re.findall(r"(?:\btypedef\b[^;{]*?|\}\s*)(\w+_t)\s*;", path.read_text()))
    items = parsed(path.read_text())
    assert parsed("".join(map(unparse, items))) == items


def test_option_tree_shows_how_a_program_was_understood():
    run = run_trapline(["dtrace", "-e", "-x", "tree=1", "-n", "BEGIN /pid/ { trace(1 + 2 * 3); x = y = 4 }"])
    assert run.returncode == 0
    assert run.stderr == "BEGIN\n/pid/\n{\n\ttrace((1 + (2 * 3)));\n\t(x = (y = 4));\n}\n"
