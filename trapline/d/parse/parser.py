"""Tokens to syntax tree: lark's LALR parser on d.lark, and the actions that build `ast` nodes."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Iterator
from functools import cache, reduce
from importlib import resources
from typing import Any, Final, cast

import lark
from lark import Lark
from lark.exceptions import UnexpectedToken
from lark.lexer import Lexer as LarkLexer
from lark.lexer import PatternStr

from emu.support.disk_cache import cached
from emu.support.one_line import one_line
from trapline.d.errors import CompileError, Region
from trapline.d.parse import ast
from trapline.d.parse.lexer import QUALIFIERS, TYPE_WORDS, Lexer, Token

# The precedence of each binary operator; all associate to the left.
LEVELS: Final[dict[str, int]] = {
    operator: level
    for level, operators in enumerate(
        ("||", "^^", "&&", "|", "^", "&", "== !=", "< <= > >=", "<< >>", "+ -", "* / %"),
    )
    for operator in operators.split()
}


class _Fed(LarkLexer):
    """Lark asks for a lexer; tokens are fed to the parser one by one instead."""

    def __init__(self, _configuration: Any) -> None:
        pass

    def lex(self, _state: Any, _parser: Any) -> Iterator[Any]:
        """Yield nothing."""
        return iter(())


@cache
def _grammar() -> Lark:
    """Return the parser; its tables take lark a tenth of a second, so they are cached."""
    text = resources.files("trapline.d.parse").joinpath("d.lark").read_text("utf-8")
    # The tables name the builder's methods by its module.
    made_from = f"{lark.__version__} {sys.version} {_Builder.__module__} {text}".encode()
    return Lark.load(io.BytesIO(cached("d-grammar", made_from, lambda: _tables(text))))


def _tables(text: str) -> bytes:
    parser = Lark(
        text,
        parser="lalr",
        lexer=_Fed,
        start=["clause", "external"],
        transformer=_Builder(),
        maybe_placeholders=True,
    )
    tables = io.BytesIO()
    parser.save(tables)
    return tables.getvalue()


@cache
def literals() -> dict[str, str]:
    """Return the words and punctuation the grammar spells out: text to terminal."""
    return {
        terminal.pattern.value: terminal.name
        for terminal in _grammar().terminals
        if isinstance(terminal.pattern, PatternStr)
    }


def parse_items(lexer: Lexer) -> Iterator[ast.Item]:
    """Parse a program item by item; act on each before the next, which may name its types.

    Raises `CompileError`.
    """
    while (start := lexer.item()) is not None:
        try:
            yield _parse(lexer.tokens(start), start, lexer)
        except CompileError as error:
            error.region = error.region or lexer.region
            raise


def _parse(tokens: Iterable[Token], start: str, lexer: Lexer) -> Any:
    parser = _grammar().parse_interactive(None, start)
    tokens = iter(tokens)
    previous, based = Token("", "", 0), False
    try:
        for token in tokens:
            # Lark reads only a token's type; its own class can contain nothing but text.
            parser.feed_token(cast("Any", token))
            previous = token
            based = token.text not in {";", "{", "("} and (based or _is_type_word(token))
        return parser.feed_token(cast("Any", Token("$END", "", lexer.line)))
    except UnexpectedToken as error:
        token, expected = cast("Token", error.token), set(error.accepts or error.expected)
        if start == "external" and token.type == "IDENT" and based:
            first, second = (previous, token) if previous.type == "IDENT" else (token, next(tokens, previous))
            if second.type == "IDENT":
                message = f"{first} {second}: two names in one declaration (is {first} a type?)"
                raise CompileError("D_DECL_IDENT", message, token.line) from None
        if previous.text in {".", "->"} and previous.type in {"DOT", "ARROW"}:
            raise CompileError("D_OP_IDENT", f"operator {previous} must be followed by a name", token.line) from None
        raise _syntax_error(token, expected, lexer.region) from None


def _is_type_word(token: Token) -> bool:
    """Return whether a token names a type, or begins a struct, union or enum."""
    return token.type == "TYPE" or token.text in TYPE_WORDS or token.text in {"struct", "union", "enum"}


def _syntax_error(token: Token, expected: set[str], region: Region | None) -> CompileError:
    """Return the error of an unexpected token, with a hint for common errors of C programmers."""
    where = "near end of input" if token.type == "$END" else f'near "{one_line(token.text)}"'
    hint = ""
    if token.type == "UNUSED":
        hint = f" ('{token.text}' is not supported: D has no loops)"
    elif region is Region.PREDICATE and token.text == "{":
        hint = " (is the / after the predicate missing before it?)"
    elif "SEMICOLON" in expected and token.type not in {"$END", "RBRACE"}:
        hint = " (is a ';' missing before it?)"
    elif token.text == "/":
        hint = " (D's comments are /* */)"
    return CompileError("D_SYNTAX", f"syntax error{hint} {where}", token.line)


def _operation(operands: list[ast.Expression], operators: list[Token]) -> ast.Expression:
    """Arrange a flat list of operands and operators by precedence."""
    pending: list[Token] = []
    values = operands[:1]

    def apply() -> None:
        operator, right, left = pending.pop(), values.pop(), values.pop()
        values.append(ast.Binary(operator.line, operator.text, left, right))

    for operator, operand in zip(operators, operands[1:], strict=True):
        while pending and LEVELS[pending[-1].text] >= LEVELS[operator.text]:
            apply()
        pending.append(operator)
        values.append(operand)
    while pending:
        apply()
    return values[0]


def _tag(children: list[Any]) -> str:
    """Return the tag after `struct`, `union` or `enum`; empty if there is none."""
    return children[1].text if len(children) > 1 and isinstance(children[1], Token) else ""


class _Builder:
    """One method per rule (or alias) of the grammar: its children to a node."""

    # -- clauses

    def clause(self, children: list[Any]) -> ast.Clause:
        *descriptions, predicate, body = children
        probes = tuple(ast.ProbeText(token.line, token.text) for token in descriptions)
        return ast.Clause(probes[0].line, probes, predicate, body)

    def predicate(self, children: list[Any]) -> ast.Expression:
        return cast("ast.Expression", children[0])

    def block(self, children: list[Any]) -> tuple[ast.Statement, ...]:
        return tuple(child for child in children if child is not None)

    single = block

    def if_statement(self, children: list[Any]) -> ast.If:
        test, then, *otherwise = children
        return ast.If(test.line, test, then, otherwise[0] if otherwise and otherwise[0] else ())

    # -- declarations

    def declaration(self, children: list[Any]) -> ast.Declaration:
        return ast.Declaration(children[0].line, children[0], tuple(children[1:]))

    def inline(self, children: list[Any]) -> ast.Inline:
        specifiers, declarator, _, value = children
        return ast.Inline(specifiers.line, specifiers, declarator, value)

    def translator(self, children: list[Any]) -> ast.Translator:
        output, specifiers, declarator, *members = children
        return ast.Translator(output.line, output, specifiers, declarator, tuple(members))

    def assign_member(self, children: list[Any]) -> ast.TranslatorMember:
        name, _, value = children
        return ast.TranslatorMember(name.line, name.text, value)

    def provider(self, children: list[Any]) -> ast.Provider:
        return ast.Provider(children[0].line, children[0].text, tuple(children[1:]))

    def probe_declaration(self, children: list[Any]) -> ast.ProbeDeclaration:
        name, parameters, translated = children
        return ast.ProbeDeclaration(name.line, name.text, parameters, translated)

    def specifiers(self, children: list[Any]) -> ast.Specifiers:
        words = tuple(
            ast.NamedType(child.line, child.text)
            if isinstance(child, Token) and child.type == "TYPE"
            else ast.Word(child.line, child.text)
            if isinstance(child, Token)
            else child
            for child in children
        )
        return ast.Specifiers(words[0].line, words)

    def composite(self, children: list[Any]) -> ast.CompositeSpecifier:
        members = tuple(child for child in children if isinstance(child, ast.MemberDeclaration))
        return ast.CompositeSpecifier(children[0].line, children[0].text, _tag(children), members or None)

    def member(self, children: list[Any]) -> ast.MemberDeclaration:
        return ast.MemberDeclaration(children[0].line, children[0], tuple(children[1:]))

    def member_declarator(self, children: list[Any]) -> ast.Field:
        declarator, bits = children
        return ast.Field(declarator.line, declarator, bits)

    def unnamed_field(self, children: list[Any]) -> ast.Field:
        return ast.Field(children[0].line, None, children[0])

    def enumeration(self, children: list[Any]) -> ast.EnumSpecifier:
        enumerators = tuple(child for child in children if isinstance(child, ast.Enumerator))
        return ast.EnumSpecifier(children[0].line, _tag(children), enumerators)

    def enumeration_reference(self, children: list[Any]) -> ast.EnumSpecifier:
        return ast.EnumSpecifier(children[0].line, _tag(children), None)

    def enumerator(self, children: list[Any]) -> ast.Enumerator:
        return ast.Enumerator(children[0].line, children[0].text, children[-1])

    def declarator(self, children: list[Any]) -> ast.Declarator:
        """Order the parts from the name outwards: in parentheses, suffixes, pointers."""
        pointers = tuple(child for child in children if isinstance(child, ast.PointerPart))
        suffixes = tuple(child for child in children if isinstance(child, ast.ArrayPart | ast.FunctionPart))
        for child in children:
            if isinstance(child, Token):
                return ast.Declarator(child.line, child.text, suffixes + pointers)
            if isinstance(child, ast.Declarator):
                return ast.Declarator(child.line, child.name, child.parts + suffixes + pointers)
        return ast.Declarator(0, "", suffixes + pointers)

    abstract = declarator

    def pointer(self, children: list[Any]) -> ast.PointerPart:
        for word in children:
            if word.text not in QUALIFIERS:
                raise CompileError("D_SYNTAX", f'syntax error near "{word.text}"', word.line)
        return ast.PointerPart(0, tuple(word.text for word in children))

    def array(self, children: list[Any]) -> ast.ArrayPart:
        (inside,) = children
        if isinstance(inside, ast.FunctionPart):
            return ast.ArrayPart(inside.line, None, inside.parameters, inside.varargs)
        return ast.ArrayPart(inside.line if inside else 0, inside, None)

    def function(self, children: list[Any]) -> ast.FunctionPart:
        return children[0] or ast.FunctionPart(0, (), varargs=False)

    def parameters(self, children: list[Any]) -> ast.FunctionPart:
        varargs = isinstance(children[-1], Token)
        parameters = tuple(children[:-1] if varargs else children)
        return ast.FunctionPart(children[0].line, parameters, varargs)

    def parameter(self, children: list[Any]) -> ast.Parameter:
        return ast.Parameter(children[0].line, *children)

    def type_name(self, children: list[Any]) -> ast.TypeName:
        return ast.TypeName(children[0].line, *children)

    # -- expressions

    def expression(self, children: list[Any]) -> ast.Expression:
        return reduce(lambda left, right: ast.Comma(right.line, left, right), children)

    def assign(self, children: list[Any]) -> ast.Assign:
        target, operator, value = children
        return ast.Assign(operator.line, operator.text, target, value)

    def ternary(self, children: list[Any]) -> ast.Conditional:
        return ast.Conditional(children[0].line, *children)

    def operation(self, children: list[Any]) -> ast.Expression:
        return _operation(children[::2], children[1::2])

    def prefix(self, children: list[Any]) -> ast.Prefix:
        operator, operand = children
        return ast.Prefix(operator.line, operator.text, operand)

    def step(self, children: list[Any]) -> ast.Step:
        operand, operator = children
        return ast.Step(operator.line, operator.text, operand)

    def conversion(self, children: list[Any]) -> ast.Cast:
        return ast.Cast(children[0].line, *children)

    def size_of_type(self, children: list[Any]) -> ast.SizeOfType:
        return ast.SizeOfType(children[0].line, children[1])

    def index(self, children: list[Any]) -> ast.Index:
        return ast.Index(children[0].line, *children)

    def call(self, children: list[Any]) -> ast.Call:
        function, arguments = children
        if not isinstance(function, ast.Name):
            raise CompileError("D_FUNC_IDENT", "only a name can be called", function.line)
        return ast.Call(function.line, function, arguments or ())

    def arguments(self, children: list[Any]) -> tuple[ast.Expression, ...]:
        return tuple(children)

    def member_access(self, children: list[Any]) -> ast.MemberAccess:
        base, operator, name = children
        return ast.MemberAccess(operator.line, base, name.text, operator.text == "->")

    def offset_of(self, children: list[Any]) -> ast.OffsetOf:
        keyword, type_, member = children
        return ast.OffsetOf(keyword.line, type_, member.text)

    def translate(self, children: list[Any]) -> ast.Translate:
        keyword, type_, operand = children
        return ast.Translate(keyword.line, type_, operand)

    def name(self, children: list[Any]) -> ast.Name:
        return ast.Name(children[0].line, children[0].text)

    def scoped(self, children: list[Any]) -> ast.Scoped:
        scope, _, name = children
        return ast.Scoped(scope.line, scope.text, name.text)

    def aggregation(self, children: list[Any]) -> ast.Aggregation:
        return ast.Aggregation(children[0].line, children[0].text)

    def number(self, children: list[Any]) -> ast.Number:
        (token,) = children
        return ast.Number(token.line, *token.number)

    def text(self, children: list[Any]) -> ast.Text:
        return ast.Text(children[0].line, children[0].text)
