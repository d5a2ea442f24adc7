"""Inlines: names for expressions, with or without parameters.

Source: FreeBSD libdtrace dt_parser.c (dt_node_inline(), dt_cook_inline()).
"""

from __future__ import annotations

from collections.abc import Sequence

from trapline.d import ast, typed
from trapline.d.definer import Definer
from trapline.d.errors import CompileError
from trapline.d.operators import converted
from trapline.d.scopes import Inline
from trapline.d.type_rules import is_void, same
from trapline.d.types import Array, Type
from trapline.framework.program import Scope


class Inlines(Definer):
    """Defines inlines."""

    def define(self, node: ast.Inline) -> None:
        """Define `inline type name[parameters] = value`."""
        if node.declarator is None:
            raise CompileError("D_DECL_USELESS", "an inline needs a name", node.line)
        specified = self._declarations.specified(node.specifiers)
        if specified.storage or specified.scope is not Scope.GLOBAL:
            storage = specified.storage or specified.scope.name.lower()
            raise CompileError("D_DECL_BADCLASS", f"{storage} has no meaning for an inline", node.line)
        type_, name, keys = self._declarations.declared(specified, node.declarator)
        if self._names.is_defined(name) or self._names.is_type(name):
            raise CompileError("D_DECL_IDRED", f"{name} is defined already", node.line)
        if isinstance(type_, Array):
            raise CompileError("D_DECL_ARRNULL", f"{name}: an inline cannot be an array", node.line)
        if is_void(type_):
            raise CompileError("D_DECL_VOIDOBJ", f"{name} cannot be void", node.line)
        parameters = self._parameters(node.declarator, keys)
        with self._within(parameters or ()):
            body = self._check(node.value)
        if not isinstance(body, typed.Translation) or not same(body.target, type_):
            body = converted(body, type_, name, node.line)
        self._names.inlines[name] = Inline(name, type_, parameters, body)

    @staticmethod
    def _parameters(declarator: ast.Declarator, keys: Sequence[Type] | None) -> tuple[typed.Parameter, ...] | None:
        if keys is None:
            return None
        listed = next(part.keys for part in declarator.parts if isinstance(part, ast.ArrayPart) and part.keys)
        names = [parameter.declarator.name if parameter.declarator else "" for parameter in listed]
        if "" in names:
            raise CompileError("D_DECL_PROTO_NAME", f"{declarator.name}: its parameters need names", declarator.line)
        if len(set(names)) < len(names):
            raise CompileError("D_DECL_PROTO_FORM", f"{declarator.name}: two parameters of one name", declarator.line)
        return tuple(typed.Parameter(name, type_) for name, type_ in zip(names, keys, strict=True))
