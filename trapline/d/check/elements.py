"""Parts of values: elements of arrays, args[], members of structs and translations.

Source: FreeBSD libdtrace dt_ident.c (dt_idcook_assc(), dt_idcook_args()), dt_parser.c
(dt_cook_op2()).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from emu.support.did_you_mean import counted
from trapline.d.check import typed
from trapline.d.check.assignments import shown
from trapline.d.check.conversions import compatible, incompatible
from trapline.d.check.operators import add
from trapline.d.check.probes import ProbeArgument
from trapline.d.check.references import References
from trapline.d.check.scopes import Globals, Inline
from trapline.d.check.translators import Translators
from trapline.d.check.typed import Variable, address_of, is_writable
from trapline.d.errors import CompileError, did_you_mean
from trapline.d.parse import ast
from trapline.d.types.data_models import INT64
from trapline.d.types.declarators import SCOPES
from trapline.d.types.rules import (
    element_of,
    is_dynamic,
    is_integer,
    is_pointer,
    is_string,
    is_userland,
    is_void,
    size_of,
)
from trapline.d.types.types import CHAR, STRING, Array, Composite, Function, Type, resolve, type_name
from trapline.framework.base.dif import Op, Var
from trapline.framework.base.program import Scope


class Elements:
    """Checks indices and member accesses in one program; `check` checks an expression."""

    def __init__(
        self,
        names: Globals,
        check: Callable[[ast.Expression], typed.Node],
        references: References,
        translators: Translators,
    ) -> None:
        self._names = names
        self._check = check
        self._references = references
        self._translators = translators
        self.arguments: Callable[[int], Sequence[ProbeArgument]] | None = None
        """Types of args[] in the clause that is compiled, for a line to blame; None outside
        clauses."""

    def _array(self, base: ast.Expression) -> Variable | None:
        """Return the associative or built-in array that an expression names."""
        if isinstance(base, ast.Name):
            variable = self._names.variables.get((Scope.GLOBAL, base.name)) or self._names.words.variables.get(
                base.name
            )
        elif isinstance(base, ast.Scoped):
            variable = self._names.variables.get((SCOPES[base.scope], base.name))
        else:
            return None
        return variable if variable is not None and variable.keys is not None else None

    def index(self, node: ast.Index) -> typed.Node:
        """Check `base[keys]`."""
        if isinstance(node.base, ast.Name) and node.base.name in self._names.inlines:
            return self._let(self._names.inlines[node.base.name], node)
        variable = self._array(node.base)
        if variable is not None:
            return self._builtin_element(variable, node) if variable.builtin else self._element(variable, node)
        if isinstance(node.base, ast.Aggregation):
            self.keys_of(node.base.name, node.keys)
            return typed.Aggregate(node.base.name)
        if isinstance(node.base, ast.Index) and isinstance(node.base.base, ast.Aggregation):
            name = node.base.base.name
            raise CompileError("D_AGG_MDIM", f"@{name} has one pair of brackets: write @{name}[a, b]", node.line)
        if isinstance(node.base, ast.Scoped | ast.Name) and not self._references.is_known(node.base):
            name = shown(node.base)
            raise CompileError("D_VAR_UNDEF", f"{name}[ ] has not been declared or assigned", node.line)
        base = self._check(node.base)
        if isinstance(base, typed.Memory) and base.userland and isinstance(resolve(base.type), Array):
            first = element_of(base.type)
            assert first is not None
            base = typed.Relabel(base, self._names.model.pointer_to(first, userland=True))
        if len(node.keys) != 1:
            raise CompileError("D_ARR_BADREF", "several keys, but this is not an associative array", node.line)
        index = self._check(node.keys[0])
        whole = resolve(base.type)
        if isinstance(base, typed.Element) and isinstance(whole, Array) and is_integer(index.type):
            return _bounded(base, whole, index)
        return dereference(add("+", base, index, self._names.model, node.line), node.line)

    def keys_of(self, name: str, nodes: Sequence[ast.Expression]) -> tuple[typed.Node, ...]:
        """Check the keys of an aggregation.  Raises `CompileError` D_KEY_TYPE."""
        keys = []
        for number, node in enumerate(nodes, start=1):
            key = typed.Aggregate(node.name) if isinstance(node, ast.Aggregation) else self._check(node)
            if is_void(key.type) or is_dynamic(key.type):
                what = "a translation or an aggregation" if is_dynamic(key.type) else "void"
                raise CompileError("D_KEY_TYPE", f"@{name}[ ] key #{number} cannot be {what}", node.line)
            keys.append(key)
        return tuple(keys)

    def _keys(
        self, name: str, nodes: Sequence[ast.Expression], wanted: Sequence[Type], line: int
    ) -> tuple[typed.Node, ...]:
        """Check the keys of an element against the types of the array's."""
        if len(nodes) != len(wanted):
            raise CompileError("D_PROTO_LEN", f"{name}[ ] has {counted(len(wanted), 'key')}, not {len(nodes)}", line)
        keys = []
        for number, (node, type_) in enumerate(zip(nodes, wanted, strict=True), start=1):
            key = self._check(node)
            if not compatible(type_, key):
                raise incompatible(f"{name}[ ] key #{number}", type_, key.type, line)
            keys.append(typed.Relabel(key, STRING) if is_string(type_) and not is_string(key.type) else key)
        return tuple(keys)

    def _element(self, variable: Variable, node: ast.Index) -> typed.Element:
        return typed.Element(variable, self._keys(variable.name, node.keys, variable.keys or (), node.line))

    def _builtin_element(self, variable: Variable, node: ast.Index) -> typed.Node:
        (index,) = self._keys(variable.name, node.keys, (INT64,), node.line)
        if variable.id == Var.ARGS:
            return self._argument(variable, index, node.line)
        if variable.id == Var.UREGS and isinstance(index, typed.Constant) and index.signed < 0:
            raise CompileError("D_REGS_IDX", f"uregs[{index.signed}]: the index is negative", node.line)
        return typed.BuiltinElement(variable, index, variable.type)

    def _argument(self, variable: Variable, index: typed.Node, line: int) -> typed.Node:
        """Return an argument of the clause's probes, in its type."""
        if self.arguments is None:
            raise CompileError("D_ARGS_NONE", "args[ ] has no meaning outside a clause", line)
        if not isinstance(index, typed.Constant):
            raise CompileError("D_PROTO_ARG", "the index of args[ ] is not an integer constant", line)
        types = self.arguments(line)
        if not 0 <= index.signed < len(types):
            raise CompileError("D_ARGS_IDX", f"args[{index.signed}]: the probe has {len(types)} arguments", line)
        argument = types[index.signed]
        value = typed.BuiltinElement(variable, typed.Constant(argument.mapping, INT64), argument.native)
        if argument.shown is None:
            return value
        try:
            return self._translators.passed(argument.shown, value, line)
        except CompileError as error:
            raise CompileError("D_ARGS_XLATOR", f"args[{index.signed}]: {error.message}", line) from None

    def _let(self, inline: Inline, node: ast.Index) -> typed.Node:
        if inline.parameters is None:
            return dereference(
                add("+", inline.body, self._check(node.keys[0]), self._names.model, node.line), node.line
            )
        arguments = self._keys(inline.name, node.keys, [parameter.type for parameter in inline.parameters], node.line)
        return typed.Let(inline.parameters, arguments, inline.body)

    def member(self, node: ast.MemberAccess) -> typed.Node:
        """Check `base.name` or `base->name`."""
        if not node.arrow and isinstance(node.base, ast.Prefix) and node.base.operator == "*":
            pointer = self._check(node.base.operand)
            if isinstance(pointer, typed.Translation) and is_pointer(pointer.target):
                return self._translators.member(pointer, node.name, node.line)
        base = self._check(node.base)
        operator = "->" if node.arrow else "."
        # An inline with parameters, such as fds[ ], is its translation with the arguments around it.
        translation = typed.translation(base)
        if translation is not None:
            if node.arrow is not is_pointer(translation.target):
                raise CompileError("D_OP_PTR", f"operator {operator} for {type_name(translation.target)}", node.line)
            found_member = self._translators.member(translation, node.name, node.line)
            return _within(base, found_member)
        type_: Type | None = base.type
        if node.arrow:
            if element_of(base.type) is None:
                raise CompileError("D_OP_PTR", f"operator -> needs a pointer, not {type_name(base.type)}", node.line)
            type_ = element_of(base.type)
            address: typed.Node = base
        else:
            found = address_of(base, INT64)
            address = base if found is None else found
        assert type_ is not None
        composite = resolve(type_)
        if not isinstance(composite, Composite):
            raise CompileError(
                "D_OP_SOU", f"operator {operator} needs a struct or union, not {type_name(type_)}", node.line
            )
        if composite.members is None:
            raise CompileError("D_OP_INCOMPLETE", f"{type_name(composite)} is not defined", node.line)
        member = composite.member(node.name)
        if member is None and node.arrow:
            implied = self._translators.implied(base, node.name, node.line, given=_is_given(base))
            if implied is not None:
                return implied
        if member is None:
            hint = did_you_mean(node.name, composite.names())
            raise CompileError(
                "D_TYPE_MEMBER", f"{node.name} is not a member of {type_name(composite)}{hint}", node.line
            )
        offset = typed.Constant(member.byte_offset, INT64)
        base_address = typed.Relabel(address, INT64)
        where = base_address if not offset.value else typed.Binary(Op.ADD, base_address, offset, INT64)
        bits = member if member.bits else None
        if is_userland(base.type) or (not node.arrow and isinstance(base, typed.Memory) and base.userland):
            return typed.in_process(where, member.type, writable=is_writable(base), member=bits)
        return typed.Memory(where, member.type, is_writable(base), member=bits)


def _within(inline: typed.Node, node: typed.Node) -> typed.Node:
    """Put a node in place of the innermost body of an inline."""
    if not isinstance(inline, typed.Let):
        return node
    return typed.Let(inline.parameters, inline.arguments, _within(inline.body, node))


def _is_given(node: typed.Node) -> bool:
    """Return whether a node is args[ ] or curthread, cast or not: illumos has other types for them."""
    inner = node
    while isinstance(inner, typed.Relabel | typed.Convert):
        inner = inner.operand
    if isinstance(inner, typed.BuiltinElement):
        return inner.variable.id == Var.ARGS
    return isinstance(inner, typed.Scalar) and inner.variable.id == Var.CURTHREAD


def _bounded(base: typed.Element, array: Array, index: typed.Node) -> typed.Memory:
    """Return one of the values of an element that is an array.

    An index beyond its end reads and writes as if there were no element: at the address NULL, which
    is a fault.  The data after an element belong to another one.
    """
    parameter = typed.Parameter("index", INT64)
    inside = typed.Compare(Op.CMP, Op.BLU, parameter, typed.Constant(array.count or 0, INT64))
    start = typed.Choice(inside, typed.Relabel(base, INT64), typed.Constant(0, INT64), INT64)
    offset = typed.Binary(Op.MUL, parameter, typed.Constant(size_of(array.element), INT64), INT64)
    address = typed.Let((parameter,), (index,), typed.Binary(Op.ADD, start, offset, INT64))
    return typed.Memory(address, array.element, writable=True)


def dereference(operand: typed.Node, line: int) -> typed.Node:
    """Check `*operand`.  Raises `CompileError`."""
    target = CHAR if is_string(operand.type) else element_of(operand.type)
    if target is None:
        raise CompileError("D_DEREF_NONPTR", f"operator * needs a pointer, not {type_name(operand.type)}", line)
    if is_void(target):
        raise CompileError("D_DEREF_VOID", "a void pointer cannot be dereferenced: cast it", line)
    if isinstance(resolve(target), Function):
        raise CompileError("D_DEREF_FUNC", "a function cannot be read", line)
    if is_userland(operand.type) or (isinstance(operand, typed.Memory) and operand.userland):
        return typed.in_process(operand, target, writable=is_writable(operand))
    return typed.Memory(operand, target, is_writable(operand))
