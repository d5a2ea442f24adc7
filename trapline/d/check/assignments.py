"""Assignments, and the variables that they define.

Source: FreeBSD libdtrace dt_parser.c (dt_cook_op2), dt_ident.c (dt_idcook_assc).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from trapline.d.check import typed
from trapline.d.check.conversions import converted
from trapline.d.check.operators import operate, resized, scale
from trapline.d.check.scopes import Globals
from trapline.d.check.typed import is_writable
from trapline.d.errors import CompileError
from trapline.d.parse import ast
from trapline.d.types.data_models import INT64
from trapline.d.types.declarators import SCOPES
from trapline.d.types.rules import (
    element_of,
    is_dynamic,
    is_integer,
    is_pointer,
    is_scalar,
    is_string,
    is_text,
    is_void,
)
from trapline.d.types.types import STRING, Array, Function, Type, resolve, type_name
from trapline.framework.base.dif import Op
from trapline.framework.base.program import Scope


class Assignments:
    """Checks assignments and steps, which change variables and memory.

    `check` checks an expression, `is_known` tells whether a name means something already,
    `whole` makes a struct of a translation.
    """

    def __init__(
        self,
        names: Globals,
        check: Callable[[ast.Expression], typed.Node],
        is_known: Callable[[ast.Scoped | ast.Name], bool],
        whole: Callable[[typed.Node], typed.Node],
    ) -> None:
        self._names = names
        self._check = check
        self._is_known = is_known
        self._whole = whole

    def step(self, operator: str, target: ast.Expression, line: int, *, after: bool) -> typed.Node:
        """Check `++` or `--`."""
        self.define(target, INT64)
        node = self._check(target)
        if not is_scalar(node.type):
            raise CompileError("D_OP_SCALAR", f"operator {operator} needs a scalar, not {type_name(node.type)}", line)
        inner = element_of(node.type)
        amount = 1 if inner is None else scale(inner, line)
        written = self._written(node, operator, line)
        return typed.Step(Op.ADD if operator == "++" else Op.SUB, written, amount, after)

    def define(self, target: ast.Expression, type_: Type) -> None:
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

    def _is_new(self, target: ast.Expression) -> bool:
        """Return whether an assignment would define its target."""
        base = target.base if isinstance(target, ast.Index) else target
        return isinstance(base, ast.Name | ast.Scoped) and not self._is_known(base)

    @staticmethod
    def _key_type(key: typed.Node, line: int) -> Type:
        if is_void(key.type) or is_dynamic(key.type):
            raise CompileError("D_KEY_TYPE", f"a key cannot be {type_name(key.type)}", line)
        return STRING if is_text(key.type) and not is_pointer(key.type) else key.type

    @staticmethod
    def _written(found: typed.Node, operator: str, line: int) -> typed.Target:
        """Return what an operator changes.  Raises `CompileError` D_OP_LVAL, D_OP_WRITE."""
        if isinstance(found, typed.BuiltinElement):
            raise CompileError("D_OP_WRITE", f"operator {operator}: {found.variable.name}[ ] cannot be written", line)
        if not isinstance(found, typed.Scalar | typed.Element | typed.Memory):
            raise CompileError("D_OP_LVAL", f"operator {operator} needs a variable on its left", line)
        if not is_writable(found):
            name = found.variable.name if isinstance(found, typed.Scalar | typed.Element) else "kernel memory"
            raise CompileError("D_OP_WRITE", f"operator {operator}: {name} cannot be written", line)
        return found

    def assign(self, node: ast.Assign) -> typed.Node:
        """Check an assignment.

        A name that is not known yet becomes a variable of the value's type.
        """
        operator, line = node.operator, node.line
        if isinstance(node.target, ast.Aggregation) or (
            isinstance(node.target, ast.Index) and isinstance(node.target.base, ast.Aggregation)
        ):
            raise CompileError("D_CG_EXPR", "an assignment to an aggregation must be a statement of its own", line)
        if _is_aggregating(node.target):
            raise CompileError("D_OP_LVAL", f"operator {operator}: an assignment to an aggregation has no value", line)
        if isinstance(node.target, ast.Index) and isinstance(node.target.base, ast.Index):
            self._check(node.target)
        if operator != "=":
            return self._change(node)
        value = self._check(node.value)
        translation = typed.translation(value)
        if translation is not None and not is_pointer(translation.target):
            value = self._whole(value)
        if is_void(value.type) or is_dynamic(value.type):
            raise CompileError("D_OP_INCOMPAT", f"{_described(value)} cannot be assigned", line)
        self.define(node.target, self._variable_type(value))
        found = self._check(node.target)
        if isinstance(resolve(found.type), Array | Function):
            raise CompileError("D_OP_ARRFUN", f"operator {operator}: a whole array cannot be assigned", line)
        stored = _narrowed(converted(value, found.type, shown(node.target), line), found.type)
        return typed.Store(self._written(found, operator, line), stored)

    def _change(self, node: ast.Assign) -> typed.Node:
        """Check a compound assignment, which reads its target first: it must be defined."""
        operator, line = node.operator, node.line
        if self._is_new(node.target):
            raise CompileError("D_VAR_UNDEF", f"{shown(node.target)} has not been declared or assigned", line)
        found = self._check(node.target)
        value = self._check(node.value)
        if operator in {"+=", "-="}:
            self._check_sum(operator, found, value, line)
        if is_integer(found.type) and is_integer(value.type):
            # The type of the target decides whether the operation is signed (dt_cg_node).
            value = _narrowed(value, found.type)
            value = (
                replace(value, type=found.type)
                if isinstance(value, typed.Constant)
                else typed.Relabel(value, found.type)
            )
        result = operate(operator[:-1], found, value, self._names.model, line)
        stored = converted(result, found.type, shown(node.target), line)
        return typed.Store(self._written(found, operator, line), stored)

    @staticmethod
    def _check_sum(operator: str, target: typed.Node, value: typed.Node, line: int) -> None:
        """Refuse what += and -= cannot take.  Raises `CompileError` D_OP_INCOMPAT, D_OP_VFPTR."""
        if is_string(target.type) or is_string(value.type):
            what = f"{type_name(target.type)} and {type_name(value.type)}"
            raise CompileError("D_OP_INCOMPAT", f"operator {operator} cannot take {what}", line)
        inner = element_of(target.type) if is_pointer(target.type) else None
        known = inner is not None and not is_void(inner) and not isinstance(resolve(inner), Function)
        if not (is_integer(target.type) and is_integer(value.type)) and not known:
            what = f"a number or a pointer of a known type on its left, not {type_name(target.type)}"
            raise CompileError("D_OP_VFPTR", f"operator {operator} needs {what}", line)

    def _variable_type(self, value: typed.Node) -> Type:
        """Return the type a variable gets from its first value."""
        type_ = value.type
        resolved = resolve(type_)
        if isinstance(resolved, Array):
            return STRING if is_text(type_) else self._names.model.pointer_to(resolved.element)
        return type_


def _narrowed(value: typed.Node, type_: Type) -> typed.Node:
    """Cut a constant to the type that it is assigned to; other values keep 64 bits."""
    if isinstance(value, typed.Constant):
        return typed.Constant(resized(value, type_), value.type)
    return value


def _is_aggregating(node: ast.Expression) -> bool:
    """Return whether a node is `@a = function()`."""
    if not isinstance(node, ast.Assign):
        return False
    base = node.target.base if isinstance(node.target, ast.Index) else node.target
    return isinstance(base, ast.Aggregation)


def _described(value: typed.Node) -> str:
    """Describe an operand that is not a value."""
    if isinstance(value, typed.Aggregate):
        return f"aggregation @{value.name}: printa() prints it, but it has no value, so it"
    return "void" if is_void(value.type) else "a translation"


def shown(node: ast.Expression) -> str:
    """Return the text of an assigned or indexed expression, for a message."""
    match node:
        case ast.Name(name=name):
            return name
        case ast.Scoped(scope=scope, name=name):
            return f"{scope}->{name}"
        case ast.Index(base=base):
            return f"{shown(base)}[ ]"
    return "the left side"
