"""Declarations of names: variables, typedefs and inlines.

Source: FreeBSD libdtrace dt_grammar.y and dt_decl.c (dt_decl_*), dt_parser.c (dt_node_decl(),
dt_node_inline(), dt_cook_inline()).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Final, TypeAlias

from emu.support.immutable import immutable
from trapline.d.check import typed
from trapline.d.check.conversions import converted
from trapline.d.check.scopes import Globals, Inline
from trapline.d.errors import CompileError
from trapline.d.parse import ast
from trapline.d.types.declarators import Declarators, Specified, is_complete
from trapline.d.types.rules import is_scalar, is_void, same
from trapline.d.types.types import Array, Function, Type, Typedef, resolve, type_name
from trapline.framework.base.program import Scope

_RESERVED: Final = frozenset({"auto", "register", "static"})

# Checks an expression.
Check: TypeAlias = Callable[[ast.Expression], typed.Node]
# Makes names mean parameters while the result is entered.
Within: TypeAlias = Callable[[tuple[typed.Parameter, ...]], AbstractContextManager[None]]


@immutable
class Declarations:
    """Defines the names that declarations introduce."""

    _names: Globals
    _declarators: Declarators
    _check: Check
    _within: Within

    def declare(self, node: ast.Declaration) -> None:
        """Process a top-level declaration."""
        specified = self._declarators.specified(node.specifiers)
        if specified.storage in _RESERVED:
            raise CompileError("D_DECL_BADCLASS", f"{specified.storage} has no meaning for D variables", node.line)
        defines = any(isinstance(word, ast.CompositeSpecifier | ast.EnumSpecifier) for word in node.specifiers.words)
        if not node.declarators and not defines:
            raise CompileError("D_DECL_USELESS", "this declares nothing", node.line)
        for declarator in node.declarators:
            type_, name, keys = self._declarators.declared(specified, declarator)
            if "`" in name:
                raise CompileError("D_DECL_SCOPE", f"{name}: kernel symbols cannot be declared", declarator.line)
            if specified.storage == "typedef":
                self._typedef(name, type_, declarator.line)
            else:
                self._variable(specified, name, type_, keys, declarator.line)

    def _typedef(self, name: str, type_: Type, line: int) -> None:
        if self._names.is_defined(name):
            raise CompileError("D_DECL_IDRED", f"{name} is defined already, and not as a type", line)
        known = self._names.typedefs.get(name)
        if known is not None and not same(known, type_):
            raise CompileError("D_DECL_IDRED", f"{name} is {type_name(resolve(known))} already", line)
        self._names.typedefs[name] = Typedef(name, type_)

    def _variable(self, specified: Specified, name: str, type_: Type, keys: tuple[Type, ...] | None, line: int) -> None:
        scope, storage = specified.scope, specified.storage
        if is_void(type_):
            raise CompileError("D_DECL_VOIDOBJ", f"{name} cannot be void", line)
        if isinstance(resolve(type_), Function):
            return  # a prototype: D programs have nothing to link with
        if storage == "extern" and isinstance(type_, Array) and not type_.count:
            return  # its size is declared elsewhere
        if not is_complete(type_):
            raise CompileError("D_DECL_INCOMPLETE", f"{name}: {type_name(type_)} is not defined", line)
        if keys is not None and scope is Scope.LOCAL:
            raise CompileError("D_DECL_LOCASSC", f"this->{name} cannot be an associative array", line)
        if isinstance(type_, Array) and not type_.count:
            raise CompileError("D_DECL_ARRNULL", f"{name} needs a size or keys in its brackets", line)
        known = self._names.variables.get((scope, name))
        if known is not None:
            if known.keys is not None or keys is not None or not same(known.type, type_):
                if known.keys == keys and same(known.type, type_):
                    return
                raise CompileError("D_DECL_IDRED", f"{name} is {type_name(known.type)} already", line)
            return
        if scope is Scope.GLOBAL and (self._names.is_defined(name) or self._names.is_type(name)):
            what = "built in" if name in self._names.words.variables else "defined"
            raise CompileError("D_DECL_IDRED", f"{name} is {what} already", line)
        self._names.declare(scope, name, type_, keys)

    def define_inline(self, node: ast.Inline) -> None:
        """Define `inline type name[parameters] = value`."""
        if node.declarator is None:
            raise CompileError("D_DECL_USELESS", "an inline needs a name", node.line)
        specified = self._declarators.specified(node.specifiers)
        if specified.storage or specified.scope is not Scope.GLOBAL:
            storage = specified.storage or specified.scope.name.lower()
            raise CompileError("D_DECL_BADCLASS", f"{storage} has no meaning for an inline", node.line)
        type_, name, keys = self._declarators.declared(specified, node.declarator)
        if self._names.is_defined(name) or self._names.is_type(name):
            raise CompileError("D_DECL_IDRED", f"{name} is defined already", node.line)
        if isinstance(type_, Array):
            raise CompileError("D_DECL_ARRNULL", f"{name}: an inline cannot be an array", node.line)
        if is_void(type_):
            raise CompileError("D_DECL_VOIDOBJ", f"{name} cannot be void", node.line)
        parameters = self._inline_parameters(node.declarator, keys)
        with self._within(parameters or ()):
            body = self._check(node.value)
        if not isinstance(body, typed.Translation) or not same(body.target, type_):
            body = _inlined(converted(body, type_, name, node.line), type_)
        self._names.inlines[name] = Inline(name, type_, parameters, body)

    @staticmethod
    def _inline_parameters(
        declarator: ast.Declarator, keys: Sequence[Type] | None
    ) -> tuple[typed.Parameter, ...] | None:
        if keys is None:
            return None
        listed = next(part.keys for part in declarator.parts if isinstance(part, ast.ArrayPart) and part.keys)
        names = [parameter.declarator.name if parameter.declarator else "" for parameter in listed]
        if "" in names:
            raise CompileError("D_DECL_PROTO_NAME", f"{declarator.name}: its parameters need names", declarator.line)
        if len(set(names)) < len(names):
            raise CompileError("D_DECL_PROTO_FORM", f"{declarator.name}: two parameters of one name", declarator.line)
        return tuple(typed.Parameter(name, type_) for name, type_ in zip(names, keys, strict=True))


def _inlined(body: typed.Node, type_: Type) -> typed.Node:
    """Give the body of an inline its type.

    A constant keeps its own, as the parser puts it in for the name (dt_node_ident), and so does a
    variable of that type, which can be assigned to.
    """
    if isinstance(body, typed.Constant) or (isinstance(body, typed.Scalar) and same(body.type, type_)):
        return body
    return typed.Convert(body, type_) if is_scalar(type_) and is_scalar(body.type) else typed.Relabel(body, type_)
