"""Assignments, and the variables that come into being by them.

Source: FreeBSD libdtrace dt_parser.c (dt_cook_op2), dt_ident.c (dt_idcook_assc).
"""

from __future__ import annotations

from collections.abc import Callable

from trapline.d import ast, typed
from trapline.d.errors import CompileError
from trapline.d.operators import converted, operate, scale
from trapline.d.scopes import SCOPES, Globals
from trapline.d.typed import is_writable
from trapline.d.types import (
    INT64,
    STRING,
    Array,
    Function,
    Type,
    element_of,
    is_dynamic,
    is_pointer,
    is_scalar,
    is_text,
    is_void,
    resolve,
    type_name,
)
from trapline.framework.dif import Op
from trapline.framework.program import Scope


class Assignments:
    """Checks what changes variables and memory.

    `check` understands an expression, `is_known` tells whether a name means something already,
    `whole` makes a struct of a translation.
    """

    def __init__(
        self,
        names: Globals,
        check: Callable[[ast.Expression], typed.Node],
        is_known: Callable[[ast.Scoped | ast.Name], bool],
        whole: Callable[[typed.Translation], typed.Node],
    ) -> None:
        self._names = names
        self._check = check
        self._is_known = is_known
        self._whole = whole

    def step(self, operator: str, target: ast.Expression, line: int, *, after: bool) -> typed.Node:
        """Check `++` or `--`."""
        self._define_target(target, INT64)
        node = self._target(target, operator, line)
        if not is_scalar(node.type):
            raise CompileError("D_OP_SCALAR", f"operator {operator} needs a scalar, not {type_name(node.type)}", line)
        inner = element_of(node.type)
        amount = 1 if inner is None else scale(inner, line)
        return typed.Step(Op.ADD if operator == "++" else Op.SUB, node, amount, after)

    def _define_target(self, target: ast.Expression, type_: Type) -> None:
        """Define the variable that an assignment names, unless it is known."""
        keys: tuple[Type, ...] | None = None
        base = target
        if isinstance(target, ast.Index) and isinstance(target.base, ast.Name | ast.Scoped):
            base = target.base
            if self._is_known(base):
                return
            keys = tuple(self._key_type(self._check(key), target.line) for key in target.keys)
        if not isinstance(base, ast.Name | ast.Scoped) or self._is_known(base):
            return
        scope = SCOPES[base.scope] if isinstance(base, ast.Scoped) else Scope.GLOBAL
        if keys is not None and scope is Scope.LOCAL:
            raise CompileError("D_ARR_LOCAL", f"this->{base.name} cannot be an associative array", target.line)
        self._names.declare(scope, base.name, type_, keys)

    @staticmethod
    def _key_type(key: typed.Node, line: int) -> Type:
        if is_void(key.type) or is_dynamic(key.type):
            raise CompileError("D_KEY_TYPE", f"a key cannot be {type_name(key.type)}", line)
        return STRING if is_text(key.type) and not is_pointer(key.type) else key.type

    def _target(self, node: ast.Expression, operator: str, line: int) -> typed.Target:
        """Check the left side of an assignment."""
        found = self._check(node)
        if not isinstance(found, typed.Scalar | typed.Element | typed.Memory):
            raise CompileError("D_OP_LVAL", f"operator {operator} needs a variable on its left", line)
        if not is_writable(found):
            name = found.variable.name if isinstance(found, typed.Scalar | typed.Element) else "kernel memory"
            raise CompileError("D_OP_WRITE", f"operator {operator}: {name} cannot be written", line)
        if isinstance(resolve(found.type), Array | Function):
            raise CompileError("D_OP_ARRFUN", f"operator {operator}: a whole array cannot be assigned", line)
        return found

    def assign(self, node: ast.Assign) -> typed.Node:
        """Check an assignment; a name that is not known yet becomes a variable of the value's type."""
        operator, line = node.operator, node.line
        if isinstance(node.target, ast.Aggregation) or (
            isinstance(node.target, ast.Index) and isinstance(node.target.base, ast.Aggregation)
        ):
            raise CompileError("D_CG_EXPR", "an aggregation is a statement of its own", line)
        value = self._check(node.value)
        if operator == "=":
            if isinstance(value, typed.Translation) and not is_pointer(value.target):
                value = self._whole(value)
            if is_void(value.type) or is_dynamic(value.type):
                raise CompileError("D_OP_INCOMPAT", f"a value of type {type_name(value.type)} cannot be assigned", line)
            self._define_target(node.target, self._variable_type(value))
            target = self._target(node.target, operator, line)
            return typed.Store(target, converted(value, target.type, shown(node.target), line))
        self._define_target(node.target, INT64)
        target = self._target(node.target, operator, line)
        result = operate(operator[:-1], target, value, self._names.model, line)
        return typed.Store(target, converted(result, target.type, shown(node.target), line))

    def _variable_type(self, value: typed.Node) -> Type:
        """Return the type a variable gets from its first value."""
        type_ = value.type
        resolved = resolve(type_)
        if isinstance(resolved, Array):
            return STRING if is_text(type_) else self._names.model.pointer_to(resolved.element)
        return type_


def shown(node: ast.Expression) -> str:
    """Write what is assigned or indexed, for a message."""
    match node:
        case ast.Name(name=name):
            return name
        case ast.Scoped(scope=scope, name=name):
            return f"{scope}->{name}"
        case ast.Index(base=base):
            return f"{shown(base)}[ ]"
    return "the left side"
