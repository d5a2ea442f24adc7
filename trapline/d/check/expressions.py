"""The check of expressions: each node of the syntax tree becomes one of the typed tree.

Operators are checked here, names in `references`, parts in `elements`.

Source: FreeBSD libdtrace dt_parser.c (dt_node_op2(), the "cook" functions) and dt_ident.c.
"""

from __future__ import annotations

from collections.abc import Callable

from emu.support.words import WORD_MASK
from trapline.d.check import typed
from trapline.d.check.assignments import Assignments
from trapline.d.check.conversions import is_null
from trapline.d.check.declarations import Declarations
from trapline.d.check.elements import Elements, dereference
from trapline.d.check.operators import COMPARISONS, compare, operate, resized
from trapline.d.check.references import References
from trapline.d.check.scopes import Globals
from trapline.d.check.translators import Translators
from trapline.d.errors import CompileError, did_you_mean
from trapline.d.parse import ast
from trapline.d.types.data_models import INT64, base_type
from trapline.d.types.declarators import Declarators
from trapline.d.types.rules import (
    element_of,
    is_address,
    is_arithmetic,
    is_dynamic,
    is_integer,
    is_pointer,
    is_scalar,
    is_signed,
    is_string,
    is_text,
    is_void,
    pointers_compatible,
    promote,
    same,
    size_of,
)
from trapline.d.types.types import STRING, Array, Composite, Enumeration, Function, Type, resolve, type_name
from trapline.framework.base.dif import Op
from trapline.framework.base.program import Scope


class Expressions:
    """Checks expressions; assignments to unknown names define variables."""

    def __init__(self, names: Globals, strsize: int = 256) -> None:
        self._names = names
        self.strsize = strsize
        """Bytes of a string variable: option strsize."""
        references = References(names, self.check)
        self.argument = references.argument
        self._known: dict[int, tuple[ast.Expression, typed.Node]] = {}
        self.declarators = Declarators(names, self.constant)
        self.declarations = Declarations(names, self.declarators, self.check, references.within)
        self.translators = Translators(names, self.declarators, self.check, references.within)
        self.elements = Elements(names, self.check, references, self.translators)
        self._assignments = Assignments(names, self.check, references.is_known, self.translators.whole)
        self._table: dict[type, Callable[..., typed.Node]] = {
            ast.Number: self._number,
            ast.Text: lambda node: typed.Text(node.value),
            ast.Name: references.name,
            ast.Scoped: references.scoped,
            ast.Aggregation: references.aggregation,
            ast.Call: references.call,
            ast.Index: self.elements.index,
            ast.MemberAccess: self.elements.member,
            ast.Prefix: self._prefix,
            ast.Step: lambda node: self._assignments.step(node.operator, node.operand, node.line, after=True),
            ast.Binary: self._binary,
            ast.Assign: self._assignments.assign,
            ast.Conditional: self._conditional,
            ast.Comma: self._comma,
            ast.Cast: self._cast,
            ast.SizeOfType: lambda node: self._size_of(self.declarators.type_name(node.type), node.line),
            ast.OffsetOf: self._offset_of,
            ast.Translate: self._translate,
        }

    @property
    def _size_type(self) -> Type:
        return self._names.model.typedefs["size_t"]

    def check(self, node: ast.Expression) -> typed.Node:
        """Check an expression, once until `forget`.  Raises `CompileError`."""
        known = self._known.get(id(node))
        if known is None:
            known = self._known[id(node)] = node, self._table[type(node)](node)
        return known[1]

    def forget(self) -> None:
        """Check expressions again: those of another clause, or of another probe's arguments."""
        self._known.clear()

    def chosen(self, node: ast.Expression) -> ast.Expression:
        """Return the branch that a constant `?:` takes: the other one is never checked."""
        while isinstance(node, ast.Conditional):
            test = self.check(node.test)
            if not isinstance(test, typed.Constant):
                break
            node = node.then if test.value else node.otherwise
        return node

    def constant(self, node: ast.Expression) -> int | None:
        """Return the signed value of a constant integer expression, None if it is none.

        Raises `CompileError`.
        """
        found = self.check(node)
        if not isinstance(found, typed.Constant):
            return None
        return found.signed if is_signed(found.type) else found.value

    def _number(self, node: ast.Number) -> typed.Node:
        type_ = base_type(node.type.split(), self._names.model)
        assert type_ is not None
        return typed.Constant(node.value & WORD_MASK, type_)

    # -- operators with one operand

    def _prefix(self, node: ast.Prefix) -> typed.Node:
        operator, line = node.operator, node.line
        if operator in {"++", "--"}:
            return self._assignments.step(operator, node.operand, line, after=False)
        if operator == "sizeof":
            return self._size_of_operand(node)
        if operator == "&":
            return self._address(node)
        if isinstance(node.operand, ast.Index | ast.Scoped):
            self._assignments.define(node.operand, INT64)
        operand = self.check(node.operand)
        match operator:
            case "*":
                translation = typed.translation(operand)
                if translation is not None and is_pointer(translation.target):
                    return self.translators.whole(operand)
                return dereference(operand, line)
            case "!":
                if not is_scalar(operand.type):
                    raise CompileError("D_OP_SCALAR", f"operator ! needs a scalar, not {type_name(operand.type)}", line)
                if isinstance(operand, typed.Constant):
                    return typed.Constant(int(not operand.value), operand.type)
                return typed.Not(operand)
            case "stringof":
                if not (is_scalar(operand.type) or is_address(operand.type) or is_text(operand.type)):
                    raise CompileError("D_STRINGOF_TYPE", f"{type_name(operand.type)} cannot be made a string", line)
                return typed.Relabel(operand, STRING)
            case "~":
                if not is_integer(operand.type):
                    raise CompileError("D_OP_INT", f"operator ~ needs an integer, not {type_name(operand.type)}", line)
                if isinstance(operand, typed.Constant):
                    return typed.Constant(~operand.value & WORD_MASK, operand.type)
                return typed.Unary(Op.NOT, operand, operand.type)
        if not is_arithmetic(operand.type):
            raise CompileError(
                "D_OP_ARITH", f"operator {operator} needs an arithmetic operand, not {type_name(operand.type)}", line
            )
        if operator == "+":
            return typed.Relabel(operand, operand.type) if not isinstance(operand, typed.Constant) else operand
        if isinstance(operand, typed.Constant):
            bits = 64 if is_signed(operand.type) else 8 * size_of(operand.type)
            return typed.Constant(-operand.value & ((1 << bits) - 1), operand.type)
        return typed.Unary(Op.SUB, operand, operand.type)

    def _size_of_operand(self, node: ast.Prefix) -> typed.Node:
        if isinstance(node.operand, ast.Index | ast.Scoped):
            self._assignments.define(node.operand, INT64)
        operand = self.check(node.operand)
        if isinstance(operand, typed.Text):
            return typed.Constant(len(operand.value.encode("utf-8", "surrogateescape")) + 1, self._size_type)
        if isinstance(operand, typed.Memory) and operand.member is not None:
            raise CompileError("D_SIZEOF_BITFIELD", "a bit-field has no size in bytes", node.line)
        # Only the sizes of types and of string literals are constants for libdtrace's parser.
        return typed.Relabel(self._size_of(operand.type, node.line), self._size_type)

    def _size_of(self, type_: Type, line: int) -> typed.Node:
        size = self.strsize if is_string(type_) else size_of(type_)
        if not size or is_dynamic(type_):
            raise CompileError("D_SIZEOF_TYPE", f"{type_name(type_)} has no size", line)
        return typed.Constant(size, self._size_type)

    def _offset_of(self, node: ast.OffsetOf) -> typed.Node:
        type_ = resolve(self.declarators.type_name(node.type))
        if not isinstance(type_, Composite) or type_.members is None:
            raise CompileError("D_OFFSETOF_TYPE", f"{type_name(type_)} has no members", node.line)
        member = type_.member(node.member)
        if member is None:
            hint = did_you_mean(node.member, type_.names())
            raise CompileError("D_UNKNOWN", f"{node.member} is not a member of {type_name(type_)}{hint}", node.line)
        if member.bits:
            raise CompileError("D_OFFSETOF_BITFIELD", f"{node.member} is a bit-field", node.line)
        return typed.Constant(member.offset // 8, self._size_type)

    def _address(self, node: ast.Prefix) -> typed.Node:
        if isinstance(node.operand, ast.Aggregation):
            raise CompileError("D_ADDROF_VAR", f"@{node.operand.name} has no address", node.line)
        operand = self.check(node.operand)
        if isinstance(operand, typed.Memory):
            if operand.member is not None:
                raise CompileError("D_ADDROF_BITFIELD", "a bit-field has no address", node.line)
            return typed.Relabel(operand.address, self._names.model.pointer_to(operand.type, userland=operand.userland))
        if isinstance(operand, typed.Scalar | typed.Element):
            raise CompileError("D_ADDROF_VAR", f"{operand.variable.name} is a D variable: it has no address", node.line)
        raise CompileError("D_ADDROF_LVAL", "operator & needs something that has an address", node.line)

    # -- operators with two operands

    def _binary(self, node: ast.Binary) -> typed.Node:
        operator, line = node.operator, node.line
        left = self.check(node.left)
        if operator in COMPARISONS:
            return compare(operator, left, self._enumerated(left, node.right), line)
        right = self.check(node.right)
        return operate(operator, left, right, self._names.model, line)

    def _enumerated(self, left: typed.Node, node: ast.Expression) -> typed.Node:
        """Check the right side of a comparison; beside an enum its own names count first."""
        enumeration = resolve(left.type)
        if isinstance(enumeration, Enumeration) and isinstance(node, ast.Name):
            value = (enumeration.enumerators or {}).get(node.name)
            if value is not None and (Scope.GLOBAL, node.name) in self._names.variables:
                raise CompileError(
                    "D_IDENT_AMBIG", f"{node.name} is one of {type_name(enumeration)} and a variable too", node.line
                )
            if value is not None:
                return typed.Constant(value & WORD_MASK, enumeration)
        return self.check(node)

    # -- the rest

    def _conditional(self, node: ast.Conditional) -> typed.Node:
        chosen = self.chosen(node)
        if chosen is not node:
            return self.check(chosen)
        test, then, otherwise = map(self.check, (node.test, node.then, node.otherwise))
        line = node.line
        if not is_scalar(test.type):
            raise CompileError("D_OP_SCALAR", f"operator ?: needs a scalar before ?, not {type_name(test.type)}", line)
        a, b = then.type, otherwise.type
        if is_dynamic(a) or is_dynamic(b):
            raise CompileError("D_OP_DYN", "operator ?: chooses between values, and one of these is not a value", line)
        self._refuse_action("?:", (then, otherwise), line)
        if is_integer(a) and is_integer(b):
            type_: Type = promote(a, b)
        elif is_text(a) and is_text(b) and (is_string(a) or is_string(b)):
            type_ = STRING
        elif same(a, b) or is_null(then, otherwise):
            type_ = a
        elif is_null(otherwise, then):
            type_ = b
        elif pointers_compatible(a, b):
            type_ = a if is_void(element_of(b) or b) else b
        else:
            raise CompileError("D_OP_INCOMPAT", f"operator ?: between {type_name(a)} and {type_name(b)}", line)
        return typed.Choice(test, then, otherwise, type_)

    def _comma(self, node: ast.Comma) -> typed.Node:
        left, right = self.check(node.left), self.check(node.right)
        if is_dynamic(left.type) or is_dynamic(right.type):
            raise CompileError("D_OP_DYN", "operator , needs values, and one of these is not a value", node.line)
        self._refuse_action(",", (left, right), node.line)
        return typed.Sequence(left, right)

    def _cast(self, node: ast.Cast) -> typed.Node:
        type_ = self.declarators.type_name(node.type)
        operand = self.check(node.operand)
        if is_void(type_):
            return typed.Relabel(operand, type_)
        if is_string(type_) and (is_scalar(operand.type) or is_address(operand.type) or is_text(operand.type)):
            return typed.Relabel(operand, STRING)
        if is_scalar(type_) and is_scalar(operand.type):
            if isinstance(operand, typed.Constant) and is_integer(type_):
                return typed.Constant(resized(operand, type_), type_)
            return typed.Convert(operand, type_)
        resolved = resolve(operand.type)
        if isinstance(resolved, Array) and is_pointer(type_):
            return typed.Relabel(operand, type_)
        if isinstance(resolved, Function) and is_scalar(type_) and isinstance(operand, typed.Memory):
            return typed.Relabel(operand.address, type_)
        if same(type_, operand.type):
            return operand
        raise CompileError("D_CAST_INVAL", f"{type_name(operand.type)} cannot be cast to {type_name(type_)}", node.line)

    def _refuse_action(self, operator: str, operands: tuple[typed.Node, ...], line: int) -> None:
        for operand in operands:
            if isinstance(operand, typed.Action) and operand.name in self._names.words.actions:
                raise CompileError(
                    "D_OP_ACT", f"{operand.name}( ) is an action: operator {operator} needs values", line
                )

    def _translate(self, node: ast.Translate) -> typed.Node:
        type_ = self.declarators.type_name(node.type)
        return self.translators.translate(type_, self.check(node.operand), node.line)
