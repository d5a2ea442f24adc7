"""Syntax trees back to text, every operation in parentheses (-x tree).

Parsing what is printed here gives the same tree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from trapline.d.parse import ast

# The words of a literal's type -> the literal's suffix.
_SUFFIXES: Final = {
    "unsigned int": "u",
    "long": "l",
    "unsigned long": "ul",
    "long long": "ll",
    "unsigned long long": "ull",
}
_ESCAPES: Final = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_INDENT: Final = "\t"


def unparse(node: ast.Item) -> str:
    """Return the text of an item, its newline included."""
    return _ITEMS[type(node)](node)


def expression(node: ast.Expression) -> str:
    """Return the text of an expression."""
    return _EXPRESSIONS[type(node)](node)


# -- expressions


def _text(node: ast.Text) -> str:
    data = node.value.encode("utf-8", "surrogateescape")
    shown = "".join(_ESCAPES.get(chr(byte), chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:03o}") for byte in data)
    return f'"{shown}"'


def _list(nodes: Sequence[ast.Expression]) -> str:
    """Join expressions by commas: an expression with the comma operator is in parentheses."""
    return ", ".join(map(expression, nodes))


def _prefix(node: ast.Prefix) -> str:
    gap = " " if node.operator.isalpha() else ""
    return f"({node.operator}{gap}{expression(node.operand)})"


_EXPRESSIONS: Final[dict[type, Callable[[Any], str]]] = {
    ast.Number: lambda node: f"{node.value}{_SUFFIXES.get(node.type, '')}",
    ast.Text: _text,
    ast.Name: lambda node: node.name,
    ast.Scoped: lambda node: f"{node.scope}->{node.name}",
    ast.Aggregation: lambda node: f"@{node.name}",
    ast.Call: lambda node: f"{expression(node.function)}({_list(node.arguments)})",
    ast.Index: lambda node: f"{expression(node.base)}[{_list(node.keys)}]",
    ast.MemberAccess: lambda node: f"{expression(node.base)}{'->' if node.arrow else '.'}{node.name}",
    ast.Prefix: _prefix,
    ast.Step: lambda node: f"({expression(node.operand)}{node.operator})",
    ast.Binary: lambda node: f"({expression(node.left)} {node.operator} {expression(node.right)})",
    ast.Assign: lambda node: f"({expression(node.target)} {node.operator} {expression(node.value)})",
    ast.Conditional: lambda node: f"({expression(node.test)} ? {expression(node.then)} : {expression(node.otherwise)})",
    ast.Comma: lambda node: f"({expression(node.left)}, {expression(node.right)})",
    ast.Cast: lambda node: f"(({_type_name(node.type)}){expression(node.operand)})",
    ast.SizeOfType: lambda node: f"sizeof ({_type_name(node.type)})",
    ast.OffsetOf: lambda node: f"offsetof({_type_name(node.type)}, {node.member})",
    ast.Translate: lambda node: f"xlate <{_type_name(node.type)}> ({expression(node.operand)})",
}

# -- declarations


def _specifiers(node: ast.Specifiers) -> str:
    return " ".join(_SPECIFIERS[type(word)](word) for word in node.words)


def _composite(node: ast.CompositeSpecifier) -> str:
    head = f"{node.keyword} {node.tag}".rstrip()
    if node.members is None:
        return head
    members = "".join(
        f"{_INDENT}{_specifiers(member.specifiers)} {', '.join(map(_field, member.fields))};\n"
        for member in node.members
    )
    return f"{head} {{\n{members}}}"


def _field(node: ast.Field) -> str:
    bits = f" : {expression(node.bits)}" if node.bits is not None else ""
    return (_declarator(node.declarator) if node.declarator is not None else "") + bits


def _enum(node: ast.EnumSpecifier) -> str:
    head = f"enum {node.tag}".rstrip()
    if node.enumerators is None:
        return head
    return f"{head} {{ {', '.join(map(_enumerator, node.enumerators))} }}"


def _enumerator(node: ast.Enumerator) -> str:
    return node.name if node.value is None else f"{node.name} = {expression(node.value)}"


_SPECIFIERS: Final[dict[type, Callable[[Any], str]]] = {
    ast.Word: lambda node: node.word,
    ast.NamedType: lambda node: node.name,
    ast.CompositeSpecifier: _composite,
    ast.EnumSpecifier: _enum,
}


def _declarator(node: ast.Declarator | None) -> str:
    """Build a declarator from its name outwards."""
    if node is None:
        return ""
    text, pointed = node.name, False
    for part in node.parts:
        if isinstance(part, ast.PointerPart):
            text = f"*{''.join(word + ' ' for word in part.qualifiers)}{text}"
            pointed = True
            continue
        if pointed:
            text, pointed = f"({text})", False
        text += _suffix(part)
    return text


def _suffix(part: ast.ArrayPart | ast.FunctionPart) -> str:
    if isinstance(part, ast.FunctionPart):
        return f"({_parameters(part.parameters, varargs=part.varargs)})"
    if part.keys is not None:
        return f"[{_parameters(part.keys, varargs=part.varargs)}]"
    return f"[{expression(part.size) if part.size is not None else ''}]"


def _parameters(nodes: Sequence[ast.Parameter], *, varargs: bool) -> str:
    return ", ".join([*map(_type_name, nodes), *(["..."] if varargs else [])])


def _type_name(node: ast.TypeName | ast.Parameter) -> str:
    return f"{_specifiers(node.specifiers)} {_declarator(node.declarator)}".rstrip()


# -- items


def _statements(nodes: Sequence[ast.Statement], depth: int) -> str:
    return "".join(_statement(node, depth) for node in nodes)


def _statement(node: ast.Statement, depth: int) -> str:
    lead = _INDENT * depth
    if not isinstance(node, ast.If):
        return f"{lead}{expression(node)};\n"
    text = f"{lead}if ({expression(node.test)}) {{\n{_statements(node.then, depth + 1)}{lead}}}"
    if node.otherwise:
        text += f" else {{\n{_statements(node.otherwise, depth + 1)}{lead}}}"
    return text + "\n"


def _clause(node: ast.Clause) -> str:
    text = ",\n".join(probe.text for probe in node.probes) + "\n"
    if node.predicate is not None:
        text += f"/{expression(node.predicate)}/\n"
    if node.body is not None:
        text += f"{{\n{_statements(node.body, 1)}}}\n"
    return text


def _declaration(node: ast.Declaration) -> str:
    return f"{_specifiers(node.specifiers)} {', '.join(map(_declarator, node.declarators))}".rstrip() + ";\n"


def _inline(node: ast.Inline) -> str:
    return f"inline {_specifiers(node.specifiers)} {_declarator(node.declarator)} = {expression(node.value)};\n"


def _translator(node: ast.Translator) -> str:
    members = "".join(f"{_INDENT}{member.name} = {expression(member.value)};\n" for member in node.members)
    input_ = f"{_specifiers(node.specifiers)} {_declarator(node.declarator)}"
    return f"translator {_type_name(node.output)} < {input_} > {{\n{members}}};\n"


def _provider(node: ast.Provider) -> str:
    probes = "".join(
        f"{_INDENT}probe {probe.name}{_suffix(probe.parameters)}"
        f"{' : ' + _suffix(probe.translated) if probe.translated is not None else ''};\n"
        for probe in node.probes
    )
    return f"provider {node.name} {{\n{probes}}};\n"


_ITEMS: Final[dict[type, Callable[[Any], str]]] = {
    ast.Clause: _clause,
    ast.Declaration: _declaration,
    ast.Inline: _inline,
    ast.Translator: _translator,
    ast.Provider: _provider,
}
