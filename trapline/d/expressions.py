"""Expressions understood: names resolved, variables defined, types checked (operators.py has the operators').

Source: FreeBSD libdtrace dt_parser.c (dt_node_op2(), the "cook" functions) and dt_ident.c.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from trapline.d import ast, typed
from trapline.d.arguments import ProbeArgument
from trapline.d.assignments import Assignments, shown
from trapline.d.declarations import Declarations
from trapline.d.errors import CompileError, did_you_mean
from trapline.d.inlines import Inlines
from trapline.d.operators import (
    COMPARISONS,
    add,
    compare,
    cut,
    is_null,
    operate,
)
from trapline.d.prototypes import argument_fits, check_count, incompatible
from trapline.d.scopes import SCOPES, Globals, Inline
from trapline.d.translators import Translators
from trapline.d.typed import MASK, Variable, address_of, is_writable
from trapline.d.types import (
    INT64,
    STRING,
    Array,
    Composite,
    Enumeration,
    Float,
    Function,
    Type,
    element_of,
    integer_of,
    is_arithmetic,
    is_dynamic,
    is_integer,
    is_pointer,
    is_reference,
    is_scalar,
    is_signed,
    is_string,
    is_text,
    is_userland,
    is_void,
    pointers_compatible,
    promote,
    resolve,
    same,
    size_of,
    type_name,
)
from trapline.framework.dif import Op, Var
from trapline.framework.program import Scope


class Expressions:
    """Checks expressions; assignments to unknown names define variables."""

    def __init__(self, names: Globals, strsize: int = 256) -> None:
        self._names = names
        self._strsize = strsize
        self._parameters: dict[str, typed.Parameter] = {}
        self.arguments: Callable[[int], Sequence[ProbeArgument]] | None = None
        """Types of args[] in the clause that is compiled, for a line to blame; None outside clauses."""
        self.declarations = Declarations(names, self.constant)
        self.translators = Translators(names, self.declarations, self.check, self._within)
        self.inlines = Inlines(names, self.declarations, self.check, self._within)
        self._assignments = Assignments(names, self.check, self._is_known, self.translators.whole)
        self._table: dict[type, Callable[..., typed.Node]] = {
            ast.Number: lambda node: typed.Constant(node.value & MASK, node.type),
            ast.Text: lambda node: typed.Text(node.value),
            ast.Name: self._name,
            ast.Scoped: self._scoped,
            ast.Aggregation: self._aggregation,
            ast.Call: self._call,
            ast.Index: self._index,
            ast.MemberAccess: self._member,
            ast.Prefix: self._prefix,
            ast.Step: lambda node: self._assignments.step(node.operator, node.operand, node.line, after=True),
            ast.Binary: self._binary,
            ast.Assign: self._assignments.assign,
            ast.Conditional: self._conditional,
            ast.Comma: self._comma,
            ast.Cast: self._cast,
            ast.SizeOfType: lambda node: self._size_of(self.declarations.type_name(node.type), node.line),
            ast.OffsetOf: self._offset_of,
            ast.Translate: self._translate,
        }

    @property
    def _size_type(self) -> Type:
        return self._names.model.typedefs["size_t"]

    def check(self, node: ast.Expression) -> typed.Node:
        """Understand an expression.  Raises `CompileError`."""
        return self._table[type(node)](node)

    def constant(self, node: ast.Expression) -> int | None:
        """Return the signed value of a constant integer expression, None if it is none.  Raises `CompileError`."""
        found = self.check(node)
        if not isinstance(found, typed.Constant):
            return None
        return found.signed if is_signed(found.type) else found.value

    @contextmanager
    def _within(self, parameters: tuple[typed.Parameter, ...]) -> Iterator[None]:
        """Have names mean parameters for a while."""
        outer = self._parameters
        self._parameters = {parameter.name: parameter for parameter in parameters}
        try:
            yield
        finally:
            self._parameters = outer

    # -- names

    def _name(self, node: ast.Name) -> typed.Node:
        name, names = node.name, self._names
        if name in self._parameters:
            return self._parameters[name]
        if name in names.inlines:
            inline = names.inlines[name]
            if inline.parameters is not None:
                raise CompileError("D_IDENT_BADREF", f"{name} needs arguments in brackets", node.line)
            return inline.body
        variable = names.variables.get((Scope.GLOBAL, name)) or self._names.words.variables.get(name)
        if variable is not None:
            found = self._scalar(variable, node.line)
            thread = names.foreign_tag("struct", "thread") if variable.id == Var.CURTHREAD else None
            return typed.Relabel(found, names.model.pointer_to(thread)) if thread is not None else found
        if name in names.enumerators:
            value, enumeration = names.enumerators[name]
            return typed.Constant(value & MASK, enumeration)
        if name in names.words.constants:
            return typed.Constant(*names.words.constants[name])
        if "`" in name:
            return self._symbol(name, node.line)
        if names.words.is_function(name):
            raise CompileError("D_IDENT_BADREF", f"{name} is a function: call it as {name}(...)", node.line)
        hint = did_you_mean(name, names.variable_names(Scope.GLOBAL))
        raise CompileError("D_IDENT_UNDEF", f"failed to resolve {name}: unknown variable name{hint}", node.line)

    def _symbol(self, name: str, line: int) -> typed.Node:
        """Return a symbol of the traced system."""
        if "``" in name:
            if self._names.foreign.symbol(name.replace("``", "`").removeprefix("`")) is not None:
                raise CompileError("D_SYM_BADREF", f"{name} is a kernel symbol: name it with one back-quote", line)
            raise CompileError("D_IDENT_UNDEF", f"failed to resolve {name}: no such symbol of a process", line)
        symbol = self._names.foreign_symbol(name.removeprefix("`"))
        if symbol is None:
            raise CompileError("D_IDENT_UNDEF", f"failed to resolve {name}: no such symbol", line)
        if symbol.type is None:
            raise CompileError("D_SYM_NOTYPES", f"{name}: no type information for this symbol", line)
        return typed.Memory(typed.Constant(symbol.address, INT64), symbol.type)

    def _scalar(self, variable: Variable, line: int) -> typed.Node:
        if variable.keys is not None:
            raise CompileError(
                "D_IDENT_BADREF", f"{variable.name} is an array: name an element, {variable.name}[...]", line
            )
        return typed.Scalar(variable)

    def _scoped(self, node: ast.Scoped) -> typed.Node:
        scope = SCOPES[node.scope]
        variable = self._names.variables.get((scope, node.name))
        if variable is None:
            hint = did_you_mean(node.name, self._names.variable_names(scope))
            raise CompileError(
                "D_VAR_UNDEF", f"{node.scope}->{node.name} has not been declared or assigned{hint}", node.line
            )
        return self._scalar(variable, node.line)

    def _aggregation(self, node: ast.Aggregation) -> typed.Node:
        raise CompileError(
            "D_IDENT_BADREF", f"@{node.name} is an aggregation: printa() shows it, nothing reads it", node.line
        )

    def _call(self, node: ast.Call) -> typed.Node:
        if not isinstance(node.function, ast.Name):
            raise CompileError("D_FUNC_IDENT", "only a name can be called", node.line)
        name = node.function.name
        subroutine = self._names.words.subroutines.get(name)
        if subroutine is None:
            raise self._not_a_subroutine(name, node.line)
        signature = subroutine.signature
        arguments = tuple(map(self.check, node.arguments))
        check_count(name, len(arguments), signature, node.line)
        checked = []
        for place, (argument, parameter) in enumerate(zip(arguments, signature.parameters, strict=False), start=1):
            assert parameter is not None
            if not argument_fits(argument, parameter):
                raise incompatible(f"{name}( ) argument #{place}", parameter, argument.type, node.line)
            checked.append(argument)
        parameters = tuple(parameter for parameter in signature.parameters if parameter is not None)
        return typed.Call(subroutine.number, tuple(checked), parameters[: len(checked)], signature.returns)

    def _not_a_subroutine(self, name: str, line: int) -> CompileError:
        words = self._names.words
        if words.is_action(name):
            return CompileError("D_CG_EXPR", f"{name}( ) gives no value: it can only be a statement of its own", line)
        if self._names.is_defined(name):
            return CompileError("D_FUNC_IDKIND", f"{name} is no function", line)
        known = [*words.subroutines, *words.actions, *words.aggregating]
        return CompileError("D_FUNC_UNDEF", f"undefined function name: {name}{did_you_mean(name, known)}", line)

    # -- elements and members

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

    def _index(self, node: ast.Index) -> typed.Node:
        if isinstance(node.base, ast.Name) and node.base.name in self._names.inlines:
            return self._let(self._names.inlines[node.base.name], node)
        variable = self._array(node.base)
        if variable is not None:
            return self._builtin_element(variable, node) if variable.builtin else self._element(variable, node)
        if isinstance(node.base, ast.Aggregation):
            return self._aggregation(node.base)
        if isinstance(node.base, ast.Scoped | ast.Name) and not self._is_known(node.base):
            name = shown(node.base)
            raise CompileError("D_VAR_UNDEF", f"{name}[ ] has not been declared or assigned", node.line)
        base = self.check(node.base)
        if len(node.keys) != 1:
            raise CompileError("D_ARR_BADREF", "several keys, but this is no associative array", node.line)
        return self._dereference(add("+", base, self.check(node.keys[0]), self._names.model, node.line), node.line)

    def _is_known(self, node: ast.Scoped | ast.Name) -> bool:
        if isinstance(node, ast.Scoped):
            return (SCOPES[node.scope], node.name) in self._names.variables
        return "`" in node.name or node.name in self._parameters or self._names.is_defined(node.name)

    def _keys(
        self, name: str, nodes: Sequence[ast.Expression], wanted: Sequence[Type], line: int
    ) -> tuple[typed.Node, ...]:
        """Check the keys of an element against the types of the array's."""
        if len(nodes) != len(wanted):
            raise CompileError(
                "D_PROTO_LEN", f"{name}[ ] has {len(wanted)} key{'s' * (len(wanted) != 1)}, not {len(nodes)}", line
            )
        keys = []
        for place, (node, type_) in enumerate(zip(nodes, wanted, strict=True), start=1):
            key = self.check(node)
            if not argument_fits(key, type_):
                raise incompatible(f"{name}[ ] key #{place}", type_, key.type, line)
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
            return self.translators.translate(argument.shown, value, line)
        except CompileError as error:
            raise CompileError("D_ARGS_XLATOR", f"args[{index.signed}]: {error.message}", line) from None

    def _let(self, inline: Inline, node: ast.Index) -> typed.Node:
        if inline.parameters is None:
            return self._dereference(
                add("+", inline.body, self.check(node.keys[0]), self._names.model, node.line), node.line
            )
        arguments = self._keys(inline.name, node.keys, [parameter.type for parameter in inline.parameters], node.line)
        return typed.Let(inline.parameters, arguments, inline.body)

    def _member(self, node: ast.MemberAccess) -> typed.Node:
        base = self.check(node.base)
        operator = "->" if node.arrow else "."
        # An inline with parameters, such as fds[ ], is its translation with the arguments around it.
        translation = base.body if isinstance(base, typed.Let) else base
        if isinstance(translation, typed.Translation):
            if node.arrow is not is_pointer(translation.target):
                raise CompileError("D_OP_PTR", f"operator {operator} for {type_name(translation.target)}", node.line)
            found_member = self.translators.member(translation, node.name, node.line)
            if isinstance(base, typed.Let):
                return typed.Let(base.parameters, base.arguments, found_member)
            return found_member
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
        if member is None:
            hint = did_you_mean(node.name, composite.names())
            raise CompileError(
                "D_TYPE_MEMBER", f"{node.name} is not a member of {type_name(composite)}{hint}", node.line
            )
        offset = typed.Constant(member.place, INT64)
        place = typed.Relabel(address, INT64)
        return typed.Memory(
            place if not offset.value else typed.Binary(Op.ADD, place, offset, INT64),
            member.type,
            is_writable(base),
            is_userland(base.type),
            member if member.bits else None,
        )

    # -- operators with one operand

    def _prefix(self, node: ast.Prefix) -> typed.Node:
        operator, line = node.operator, node.line
        if operator in {"++", "--"}:
            return self._assignments.step(operator, node.operand, line, after=False)
        if operator == "sizeof":
            return self._size_of_operand(node)
        if operator == "&":
            return self._address(node)
        operand = self.check(node.operand)
        match operator:
            case "*":
                return self._dereference(operand, line)
            case "!":
                if not is_scalar(operand.type):
                    raise CompileError("D_OP_SCALAR", f"operator ! needs a scalar, not {type_name(operand.type)}", line)
                if isinstance(operand, typed.Constant):
                    return typed.Constant(int(not operand.value))
                return typed.Not(operand)
            case "stringof":
                if not (is_scalar(operand.type) or is_text(operand.type)):
                    raise CompileError("D_STRINGOF_TYPE", f"{type_name(operand.type)} cannot be made a string", line)
                return typed.Relabel(operand, STRING)
            case "~":
                if not is_integer(operand.type):
                    raise CompileError("D_OP_INT", f"operator ~ needs an integer, not {type_name(operand.type)}", line)
                if isinstance(operand, typed.Constant):
                    return typed.Constant(~operand.value & MASK, integer_of(operand.type))
                return typed.Unary(Op.NOT, operand, integer_of(operand.type))
        if not is_arithmetic(operand.type):
            raise CompileError(
                "D_OP_ARITH", f"operator {operator} needs an arithmetic operand, not {type_name(operand.type)}", line
            )
        if operator == "+":
            return typed.Convert(operand, operand.type) if not isinstance(operand, typed.Constant) else operand
        if isinstance(operand, typed.Constant):
            return typed.Constant(-operand.value & MASK, integer_of(operand.type))
        return typed.Unary(Op.SUB, operand, integer_of(operand.type))

    def _size_of_operand(self, node: ast.Prefix) -> typed.Node:
        operand = self.check(node.operand)
        if isinstance(operand, typed.Text):
            return typed.Constant(len(operand.value.encode("utf-8", "surrogateescape")) + 1, self._size_type)
        if isinstance(operand, typed.Memory) and operand.member is not None:
            raise CompileError("D_SIZEOF_BITFIELD", "a bit-field has no size in bytes", node.line)
        return self._size_of(operand.type, node.line)

    def _size_of(self, type_: Type, line: int) -> typed.Node:
        size = self._strsize if is_string(type_) else size_of(type_)
        if not size or is_dynamic(type_):
            raise CompileError("D_SIZEOF_TYPE", f"{type_name(type_)} has no size", line)
        return typed.Constant(size, self._size_type)

    def _offset_of(self, node: ast.OffsetOf) -> typed.Node:
        type_ = resolve(self.declarations.type_name(node.type))
        if not isinstance(type_, Composite) or type_.members is None:
            raise CompileError("D_OFFSETOF_TYPE", f"{type_name(type_)} has no members", node.line)
        member = type_.member(node.member)
        if member is None:
            hint = did_you_mean(node.member, type_.names())
            raise CompileError("D_UNKNOWN", f"{node.member} is not a member of {type_name(type_)}{hint}", node.line)
        if member.bits:
            raise CompileError("D_OFFSETOF_BITFIELD", f"{node.member} is a bit-field", node.line)
        return typed.Constant(member.offset // 8, self._size_type)

    def _dereference(self, operand: typed.Node, line: int) -> typed.Node:
        target = element_of(operand.type)
        if target is None:
            raise CompileError("D_DEREF_NONPTR", f"operator * needs a pointer, not {type_name(operand.type)}", line)
        if is_void(target):
            raise CompileError("D_DEREF_VOID", "a void pointer points at nothing that can be read: cast it", line)
        if isinstance(resolve(target), Function):
            raise CompileError("D_DEREF_FUNC", "a function cannot be read", line)
        return typed.Memory(operand, target, is_writable(operand), is_userland(operand.type))

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
                return typed.Constant(value & MASK, enumeration)
        return self.check(node)

    # -- the rest

    def _conditional(self, node: ast.Conditional) -> typed.Node:
        for part in (node.then, node.otherwise):
            self._refuse_action(part, "?:")
        test, then, otherwise = map(self.check, (node.test, node.then, node.otherwise))
        line = node.line
        if not is_scalar(test.type):
            raise CompileError("D_OP_SCALAR", f"operator ?: needs a scalar before ?, not {type_name(test.type)}", line)
        a, b = then.type, otherwise.type
        if is_dynamic(a) or is_dynamic(b):
            raise CompileError("D_OP_DYN", "operator ?: cannot choose between things that are no values", line)
        if is_integer(a) and is_integer(b):
            type_: Type = promote(a, b)
        elif is_text(a) and is_text(b):
            type_ = a if same(a, b) and not isinstance(resolve(a), Array) else STRING
        elif same(a, b) or is_null(then, otherwise) or is_null(otherwise, then):
            type_ = b if isinstance(then, typed.Constant) and not is_integer(b) else a
        elif pointers_compatible(a, b):
            type_ = a
        else:
            raise CompileError("D_OP_INCOMPAT", f"operator ?: between {type_name(a)} and {type_name(b)}", line)
        if isinstance(test, typed.Constant):
            return typed.Relabel(then if test.value else otherwise, type_)
        return typed.Choice(test, then, otherwise, type_)

    def _comma(self, node: ast.Comma) -> typed.Node:
        for part in (node.left, node.right):
            self._refuse_action(part, ",")
        left, right = self.check(node.left), self.check(node.right)
        if is_dynamic(left.type) or is_dynamic(right.type):
            raise CompileError("D_OP_DYN", "operator , cannot take what is no value", node.line)
        return typed.Sequence(left, right)

    def _cast(self, node: ast.Cast) -> typed.Node:
        type_ = self.declarations.type_name(node.type)
        operand = self.check(node.operand)
        if is_void(type_):
            return typed.Relabel(operand, type_)
        if is_string(type_) and (is_scalar(operand.type) or is_text(operand.type)):
            return typed.Relabel(operand, STRING)
        if is_scalar(type_) and is_scalar(operand.type):
            if isinstance(operand, typed.Constant):
                return typed.Constant(cut(operand.value, type_), type_)
            return typed.Convert(operand, type_)
        whole = isinstance(resolve(operand.type), Composite | Float) or (is_string(operand.type) and is_integer(type_))
        if is_scalar(type_) and is_reference(operand.type) and not whole:
            return typed.Relabel(operand, type_)
        if same(type_, operand.type):
            return operand
        raise CompileError("D_CAST_INVAL", f"{type_name(operand.type)} cannot be cast to {type_name(type_)}", node.line)

    def _refuse_action(self, node: ast.Expression, operator: str) -> None:
        match node:
            case ast.Call(function=ast.Name(name=name)) if name in self._names.words.actions:
                raise CompileError("D_OP_ACT", f"{name}( ) is an action: operator {operator} needs values", node.line)

    def _translate(self, node: ast.Translate) -> typed.Node:
        type_ = self.declarations.type_name(node.type)
        return self.translators.translate(type_, self.check(node.operand), node.line)
