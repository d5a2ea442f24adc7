"""Typed expressions to DIF: a few instructions for each kind of node.

The sequences are those of libdtrace (FreeBSD dt_cg.c), so that the DIF offsets of faults agree with
those of published sessions.  A scalar keeps all 64 bits of its register in a variable, whatever its
type: it is cut when it is recorded, and when it is stored in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from emu.support.words import WORD_MASK
from trapline.d.check import typed
from trapline.d.check.typed import Connective
from trapline.d.codegen.assembler import Assembler, Label
from trapline.d.codegen.widths import LOADS, STORES, cast, cut, extract, insert
from trapline.d.errors import CompileError
from trapline.d.types.rules import diftype, is_reference, is_scalar, is_signed, is_string, size_of
from trapline.d.types.types import Member, Type, type_name
from trapline.framework.base.dif import (
    INTEGER_REGISTERS,
    TUPLE_REGISTERS,
    Op,
    encode_index,
    encode_registers,
)
from trapline.framework.base.program import (
    MODIFIED,
    REFERENCED,
    Difo,
    DifType,
    Scope,
)

# Distance of a load to its form for memory of the traced process.
_USER: Final = Op.ULDSB - Op.LDSB

_LOAD_SCALAR: Final = {Scope.GLOBAL: Op.LDGS, Scope.THREAD: Op.LDTS, Scope.LOCAL: Op.LDLS}
_STORE_SCALAR: Final = {Scope.GLOBAL: Op.STGS, Scope.THREAD: Op.STTS, Scope.LOCAL: Op.STLS}
_LOAD_ELEMENT: Final = {Scope.GLOBAL: Op.LDGAA, Scope.THREAD: Op.LDTAA}
_STORE_ELEMENT: Final = {Scope.GLOBAL: Op.STGAA, Scope.THREAD: Op.STTAA}


def generate(
    node: typed.Node, *, registers: int = INTEGER_REGISTERS, strsize: int = 256, returns: DifType | None = None
) -> Difo:
    """Generate the DIF object that computes a node.

    `returns` overrides its declared return type.  Arguments of inlines and translators are computed
    once, and held in registers.  If there are too few of those, small arguments are computed at
    each use, as libdtrace computes all of them.  Raises `CompileError` D_NOREG when `registers`
    (%r0 included) are too few for that, too.
    """
    try:
        return _Generator(registers, strsize).object(node, returns)
    except CompileError as error:
        if error.tag != "D_NOREG":
            raise
        return _Generator(registers, strsize, again=True).object(node, returns)


def constant(value: int, *, returns: DifType) -> Difo:
    """Make the DIF object that returns a constant."""
    return Difo((encode_index(Op.SETX, 0, 1), encode_registers(Op.RET, 0, 0, 1)), (value & WORD_MASK,), returns=returns)


# The meaning of parameters: a register, or an argument that is computed at each use, with the parameters in it.
_Bound: TypeAlias = "dict[typed.Parameter, int | tuple[typed.Node, _Bound]]"


class _Generator:
    def __init__(self, registers: int, strsize: int, *, again: bool = False) -> None:
        self._strsize = strsize
        self._out = Assembler(registers, strsize)
        self._again = again
        """Whether small arguments are computed at each use."""
        self._parameters: _Bound = {}
        self._table: dict[type, Callable[..., int]] = {
            typed.Constant: self._constant,
            typed.Text: self._text,
            typed.Scalar: self._scalar,
            typed.Element: self._element,
            typed.BuiltinElement: self._builtin_element,
            typed.Memory: self._memory,
            typed.Unary: self._unary,
            typed.Binary: self._binary,
            typed.Compare: self._compare,
            typed.Not: self._negate,
            typed.Logical: self._logical,
            typed.Choice: self._choose,
            typed.Sequence: self._sequence,
            typed.Convert: self._convert,
            typed.Relabel: self._relabel,
            typed.Store: self._store,
            typed.Step: self._step,
            typed.Call: self._call,
            typed.Parameter: self._parameter,
            typed.Let: self._let,
            typed.Build: self._build,
            typed.Translation: self._translation,
            typed.Action: self._action,
            typed.Aggregate: self._aggregate,
        }

    def object(self, node: typed.Node, returns: DifType | None) -> Difo:
        register = self._node(node)
        return self._out.object(register, returns or diftype(node.type))

    # -- nodes -------------------------------------------------------------------------------------------------------

    def _node(self, node: typed.Node) -> int:
        """Generate a node's value; return the register it is in, which the caller must release."""
        return self._table[type(node)](node)

    def _constant(self, node: typed.Constant) -> int:
        register = self._out.allocate()
        self._out.set(register, node.value)
        return register

    def _text(self, node: typed.Text) -> int:
        register = self._out.allocate()
        self._out.emit_index(Op.SETS, self._out.string(node.value), register)
        return register

    def _scalar(self, node: typed.Scalar) -> int:
        register = self._out.allocate()
        variable = node.variable
        self._out.emit_index(_LOAD_SCALAR[variable.scope], self._out.uses(variable, REFERENCED), register)
        return register

    def _element(self, node: typed.Element) -> int:
        variable = node.variable
        self._push(node.keys, variable.keys or ())
        register = self._out.allocate()
        load = _LOAD_ELEMENT[variable.scope]
        self._out.emit_index(load, self._out.uses(variable, REFERENCED), register)
        if is_reference(node.type):
            # An element that does not exist has no address yet: store zeroes in it, and load it again.
            exists = Label()
            self._out.emit(Op.TST, register)
            self._out.branch(Op.BNE, exists)
            self._out.set(register, self._size(node.type))
            self._out.emit(Op.ALLOCS, register, rd=register)
            self._out.emit_index(_STORE_ELEMENT[variable.scope], self._out.uses(variable, MODIFIED), register)
            self._out.emit_index(load, variable.id, register)
            self._out.bind(exists)
        return register

    def _builtin_element(self, node: typed.BuiltinElement) -> int:
        register = self._node(node.index)
        variable = self._out.uses(node.variable, REFERENCED)
        self._out.emit(Op.LDGA, variable, register, register)
        if is_scalar(node.type):
            # An argument from the stack may have arbitrary bits above those of its type.
            cut(self._out, register, node.type)
        return register

    def _memory(self, node: typed.Memory) -> int:
        register = self._node(node.address)
        if is_reference(node.type):
            return register
        if not size_of(node.type):
            raise CompileError("D_UNKNOWN", f"{type_name(node.type)} is not a value that can be read")
        size = node.member.unit[1] if node.member and node.member.bits else 0
        signed = is_signed(node.type) and not size
        op = LOADS[size or size_of(node.type), signed]
        self._out.emit(Op(op + _USER) if node.userland else op, register, rd=register)
        if node.member and node.member.bits:
            extract(self._out, register, node.member, signed=is_signed(node.type))
        return register

    def _unary(self, node: typed.Unary) -> int:
        register = self._node(node.operand)
        if node.op is Op.NOT:
            self._out.emit(Op.NOT, register, rd=register)
        else:
            self._out.emit(node.op, 0, register, register)
        return register

    def _binary(self, node: typed.Binary) -> int:
        left = self._node(node.left)
        right = self._node(node.right)
        self._out.emit(node.op, left, right, left)
        self._out.release(right)
        return left

    def _sequence(self, node: typed.Sequence) -> int:
        self._out.release(self._node(node.left))
        return self._node(node.right)

    def _convert(self, node: typed.Convert) -> int:
        register = self._node(node.operand)
        cast(self._out, register, node.operand.type, node.type)
        return register

    def _relabel(self, node: typed.Relabel) -> int:
        return self._node(node.operand)

    def _store(self, node: typed.Store) -> int:
        register = self._node(node.value)
        self._assign(node.target, register)
        return register

    def _step(self, node: typed.Step) -> int:
        register = self._node(node.target)
        stored = self._out.allocate() if node.after else register
        if node.after:
            self._out.set(stored, node.amount)
            self._out.emit(node.op, register, stored, stored)
        else:
            with self._out.scratch(node.amount) as amount:
                self._out.emit(node.op, register, amount, register)
        self._assign(node.target, stored)
        if node.after:
            self._out.release(stored)
        return register

    def _call(self, node: typed.Call) -> int:
        self._push(node.arguments, node.parameters)
        register = self._out.allocate()
        self._out.emit_index(Op.CALL, node.subroutine, register)
        return register

    def _parameter(self, node: typed.Parameter) -> int:
        bound = self._parameters[node]
        if isinstance(bound, tuple):
            argument, outer = bound
            inner, self._parameters = self._parameters, outer
            register = self._node(argument)
            self._parameters = inner
            cast(self._out, register, argument.type, node.type)
            return register
        register = self._out.allocate()
        self._out.emit(Op.MOV, bound, rd=register)
        return register

    def _let(self, node: typed.Let) -> int:
        """Compute arguments, and the body with them.

        A body uses only its own parameters: if an inline is used only for another one, the
        registers of the first are released; and a parameter that is passed on unchanged needs no
        register of its own.  A variable is loaded where it is used, which takes no longer than a
        copy and occupies no register.
        """
        outer, held = self._parameters, set[int]()
        body: typed.Node = node
        while isinstance(body, typed.Let):
            bound: _Bound = {}
            for parameter, argument in zip(body.parameters, body.arguments, strict=True):
                if isinstance(argument, typed.Parameter) and argument.type == parameter.type:
                    bound[parameter] = self._parameters[argument]
                    continue
                as_wide = size_of(argument.type) == size_of(parameter.type)
                if (as_wide and _is_variable(argument)) or (self._again and _is_small(argument)):
                    bound[parameter] = argument, self._parameters
                    continue
                register = self._node(argument)
                cast(self._out, register, argument.type, parameter.type)
                bound[parameter] = register
                held.add(register)
            for register in held - _registers(bound):
                self._out.release(register)
                held.remove(register)
            self._parameters = bound
            body = body.body
        result = self._node(body)
        for register in held:
            self._out.release(register)
        self._parameters = outer
        return result

    @staticmethod
    def _translation(node: typed.Translation) -> int:
        what = type_name(node.target)
        raise CompileError("D_CG_DYN", f"a translation to {what} is not a value: name one of its members")

    @staticmethod
    def _action(node: typed.Action) -> int:
        raise CompileError("D_CG_EXPR", f"{node.name}( ) gives no value: it can only be a statement of its own")

    @staticmethod
    def _aggregate(node: typed.Aggregate) -> int:
        raise CompileError("D_CG_EXPR", f"@{node.name} is an aggregation: printa() prints it, but it has no value")

    def _build(self, node: typed.Build) -> int:
        """Allocate a struct, filled with zeroes, and store its members one after another."""
        register = self._out.allocate()
        self._out.set(register, size_of(node.type))
        self._out.emit(Op.ALLOCS, register, rd=register)
        for member, value in node.fields:
            content = self._node(value)  # before the address, which would occupy a register meanwhile
            where = self._out.allocate()
            self._out.set(where, member.byte_offset)
            self._out.emit(Op.ADD, register, where, where)
            self._write(member.type, member, where, content)
            self._out.release(content)
            self._out.release(where)
        return register

    # -- branches ----------------------------------------------------------------------------------------------------

    def _compare(self, node: typed.Compare) -> int:
        """Generate a comparison: 0 or 1."""
        holds, end = Label(), Label()
        left = self._node(node.left)
        right = self._node(node.right)
        self._out.emit(node.op, left, right)
        self._out.release(right)
        self._out.branch(node.branch, holds)
        self._out.emit(Op.MOV, 0, rd=left)
        self._out.branch(Op.BA, end)
        self._out.bind(holds)
        self._out.set(left, 1)
        self._out.bind(end)
        return left

    def _negate(self, node: typed.Not) -> int:
        """Generate a logical negation: 0 or 1."""
        zero, end = Label(), Label()
        register = self._node(node.operand)
        self._out.emit(Op.TST, register)
        self._out.branch(Op.BE, zero)
        self._out.emit(Op.MOV, 0, rd=register)
        self._out.branch(Op.BA, end)
        self._out.bind(zero)
        self._out.set(register, 1)
        self._out.bind(end)
        return register

    def _logical(self, node: typed.Logical) -> int:
        """Generate && or ||, whose right side may be left out, or ^^, which needs both."""
        if node.connective is Connective.XOR:
            return self._exclusive_or(node)
        true, false, end = Label(), Label(), Label()
        left = self._node(node.left)
        self._out.emit(Op.TST, left)
        self._out.release(left)
        if node.connective is Connective.AND:
            self._out.branch(Op.BE, false)
        else:
            self._out.branch(Op.BNE, true)
        register = self._node(node.right)
        self._out.emit(Op.TST, register)
        self._out.branch(Op.BE, false)
        self._out.bind(true)
        self._out.set(register, 1)
        self._out.branch(Op.BA, end)
        self._out.bind(false)
        self._out.emit(Op.MOV, 0, rd=register)
        self._out.bind(end)
        return register

    def _exclusive_or(self, node: typed.Logical) -> int:
        left = self._truth(node.left)
        right = self._truth(node.right)
        self._out.emit(Op.XOR, left, right, left)
        self._out.release(right)
        return left

    def _truth(self, node: typed.Node) -> int:
        """Generate a node's value as 0 or 1."""
        zero = Label()
        register = self._node(node)
        self._out.emit(Op.TST, register)
        self._out.branch(Op.BE, zero)
        self._out.set(register, 1)
        self._out.bind(zero)
        return register

    def _choose(self, node: typed.Choice) -> int:
        """Generate ?:, of which only one branch is executed."""
        otherwise, end = Label(), Label()
        test = self._node(node.test)
        self._out.emit(Op.TST, test)
        self._out.release(test)
        self._out.branch(Op.BE, otherwise)
        then = self._node(node.then)
        self._out.release(then)
        move = self._out.next
        self._out.emit(Op.NOP)
        self._out.branch(Op.BA, end)
        self._out.bind(otherwise)
        register = self._node(node.otherwise)
        # Only now is the register known in which the other branch leaves its value.
        self._out.put(move, encode_registers(Op.MOV, then, 0, register))
        self._out.bind(end)
        return register

    # -- parts -------------------------------------------------------------------------------------------------------

    def _size(self, type_: Type) -> int:
        return self._strsize if is_string(type_) else size_of(type_)

    def _push(self, arguments: Sequence[typed.Node], parameters: Sequence[Type]) -> None:
        """Compute a tuple and push it.

        All values are computed first, because a call in one of them uses the same tuple stack.
        """
        if len(arguments) > TUPLE_REGISTERS:
            raise CompileError("D_NOREG", f"a tuple holds {TUPLE_REGISTERS} values, not {len(arguments)}")
        registers = [self._node(argument) for argument in arguments]
        self._out.emit(Op.FLUSHTS)
        for argument, parameter, register in zip(arguments, parameters, registers, strict=False):
            cast(self._out, register, argument.type, parameter)
            described = diftype(argument.type)
            if described.flags and described.size:
                with self._out.scratch(described.size) as size:
                    self._out.emit(Op.PUSHTR, described.kind, size, register)
            else:
                self._out.emit(Op.PUSHTR if described.flags else Op.PUSHTV, described.kind, 0, register)
            self._out.release(register)

    def _assign(self, target: typed.Target, register: int) -> None:
        """Store a register in a target; the register keeps the value."""
        match target:
            case typed.Scalar(variable=variable):
                self._out.emit_index(_STORE_SCALAR[variable.scope], self._out.uses(variable, MODIFIED), register)
            case typed.Element(variable=variable, keys=keys):
                self._push(keys, variable.keys or ())
                self._out.emit_index(_STORE_ELEMENT[variable.scope], self._out.uses(variable, MODIFIED), register)
            case typed.Memory(address=address):
                where = self._node(address)
                self._write(target.type, target.member, where, register)
                self._out.release(where)

    def _write(self, type_: Type, member: Member | None, where: int, register: int) -> None:
        """Store a register, or the data that it points to, in memory."""
        if is_reference(type_):
            with self._out.scratch(min(self._size(type_), size_of(type_))) as size:
                self._out.emit(Op.COPYS, register, size, where)
        elif member and member.bits:
            insert(self._out, member, where, register)
        else:
            self._out.emit(STORES[size_of(type_)], register, rd=where)


def _is_variable(node: typed.Node) -> bool:
    """Return whether a node is a clause-local or global variable of the program, cast or not."""
    inner = node
    while isinstance(inner, typed.Relabel | typed.Convert):
        inner = inner.operand
    return isinstance(inner, typed.Scalar) and not inner.variable.builtin and inner.variable.scope is not Scope.THREAD


# The largest number of nodes of an argument that is computed at each use.
_SMALL: Final = 8


def _is_small(node: typed.Node) -> bool:
    """Return whether a node takes few instructions, each of which may be executed again."""
    pending, count = [node], 0
    while pending:
        count += 1
        match pending.pop():
            case typed.Relabel(operand=operand) | typed.Convert(operand=operand):
                pending.append(operand)
            case typed.Memory(address=address):
                pending.append(address)
            case typed.Binary(left=left, right=right):
                pending += (left, right)
            case typed.Scalar() | typed.Constant() | typed.Parameter():
                pass
            case _:
                return False
    return count <= _SMALL


def _registers(bound: _Bound) -> set[int]:
    """Return the registers that parameters are in, and those that are named by other arguments."""
    found = set[int]()
    for meaning in bound.values():
        found |= {meaning} if isinstance(meaning, int) else _registers(meaning[1])
    return found
