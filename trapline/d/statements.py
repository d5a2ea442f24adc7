"""The statements of a clause as actions: what each records, and under which rules.

Source: FreeBSD libdtrace dt_cc.c (dt_action_*(), dt_compile_agg()).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from trapline.d import ast, builtins, printf, quantize, typed
from trapline.d.codegen import constant, generate
from trapline.d.errors import CompileError, did_you_mean
from trapline.d.expressions import Expressions
from trapline.d.prototypes import argument_fits, check_count, incompatible
from trapline.d.types import (
    STACK,
    STRING,
    SYMBOL,
    USER_SYMBOL,
    Kind,
    Type,
    diftype,
    is_dynamic,
    is_integer,
    is_pointer,
    is_scalar,
    is_text,
    is_userland,
    is_void,
    type_name,
)
from trapline.framework.program import (
    BY_REFERENCE,
    BY_USER_REFERENCE,
    INT32,
    ActionDescription,
    ActionKind,
    Difo,
    DifType,
    LibraryAction,
    TypeKind,
)
from trapline.framework.program import INT64 as INT64_RECORD

if TYPE_CHECKING:
    from trapline.d.scopes import Aggregation, Globals

VOID_RECORD: Final = DifType(TypeKind.CTF, Kind.INTEGER.value, 0, 0)
"""Type of a value that is not recorded."""
_STACKS: Final = {"stack": ActionKind.STACK, "ustack": ActionKind.USTACK, "jstack": ActionKind.JSTACK}
_SYMBOLS: Final = {
    "sym": ActionKind.SYM,
    "func": ActionKind.SYM,
    "mod": ActionKind.MOD,
    "usym": ActionKind.USYM,
    "ufunc": ActionKind.USYM,
    "umod": ActionKind.UMOD,
    "uaddr": ActionKind.UADDR,
}
_KERNEL_SYMBOLS: Final = frozenset({ActionKind.SYM, ActionKind.MOD})
_RESTORE: Final = " "
"""Format of freopen(""): the consumer restores the output."""
_INT_MAX: Final = (1 << 31) - 1
_EMPTY_TEXT: Final = DifType(TypeKind.CTF, Kind.ARRAY.value, BY_REFERENCE, 1)

Actions = list[ActionDescription]


class Statements:
    """Compiles the statements of one clause."""

    def __init__(self, expressions: Expressions, names: Globals, *, registers: int, strsize: int) -> None:
        self._expressions = expressions
        self._names = names
        self._words = names.words
        self._registers = registers
        self._strsize = strsize
        self._seen: set[str] = set()
        self._table: dict[str, Callable[[str, ast.Call], Actions]] = {
            "trace": self._trace,
            "print": self._print,
            "printf": lambda name, call: self._printf(ActionKind.PRINTF, name, call),
            "system": lambda name, call: self._printf(ActionKind.SYSTEM, name, call),
            "freopen": self._freopen,
            "printa": self._printa,
            "tracemem": self._tracemem,
            "exit": lambda _name, call: [ActionDescription(ActionKind.EXIT, self._argument(call, INT32))],
            "clear": self._on_aggregation,
            "denormalize": self._on_aggregation,
            "trunc": self._on_aggregation,
            "normalize": self._on_aggregation,
            "setopt": self._setopt,
            "ftruncate": lambda _name, _call: [_library(constant(0, returns=INT32), LibraryAction.FTRUNCATE)],
            "speculate": self._effect,
            "commit": self._effect,
            "discard": self._effect,
            "raise": self._effect,
            "chill": self._effect,
            "stop": self._effect,
            "breakpoint": self._effect,
            "panic": self._effect,
            "printm": lambda _name, call: [self._printm(call)],
            **dict.fromkeys((*_STACKS, *_SYMBOLS), lambda _name, call: [self._datum(call, ActionKind.DIFEXPR)[0]]),
        }

    def compile(self, body: Sequence[ast.Statement]) -> Iterator[Actions]:
        """Give the actions of each statement.  Raises `CompileError`."""
        for statement in body:
            assert not isinstance(statement, ast.If), "branches.py has made clauses of it"
            yield self._statement(statement)

    def difo(self, node: typed.Node, returns: DifType | None = None) -> Difo:
        """Generate the DIF of an expression."""
        return generate(node, registers=self._registers, strsize=self._strsize, returns=returns)

    def _statement(self, node: ast.Expression) -> Actions:
        match node:
            case ast.Assign(target=ast.Index(base=ast.Index(base=ast.Aggregation(name=name)))):
                raise CompileError("D_AGG_MDIM", f"@{name} has one pair of brackets: write @{name}[a, b]", node.line)
            case ast.Assign(target=ast.Aggregation() | ast.Index(base=ast.Aggregation())):
                return self._aggregate(node)
            case ast.Aggregation(name=name) | ast.Index(base=ast.Aggregation(name=name)):
                raise CompileError(
                    "D_AGG_NULL", f"@{name} alone does nothing: assign an aggregating function", node.line
                )
            case ast.Call(function=ast.Name(name=name)) if name in self._words.actions:
                action = self._words.actions[name]
                check_count(name, len(node.arguments), action.signature, node.line)
                self._keep_rules(action, node.line)
                return self._table[name](name, node)
            case ast.Call(function=ast.Name(name=name)) if name in self._words.aggregating:
                raise CompileError(
                    "D_CG_EXPR", f"{name}( ) can only be assigned to an aggregation: @ = {name}(...)", node.line
                )
        checked = self._expressions.check(node)
        return [ActionDescription(ActionKind.DIFEXPR, self.difo(checked, VOID_RECORD))]

    # -- rules of order

    def _keep_rules(self, action: builtins.Action, line: int) -> None:
        """Hold an action against those before it in the clause."""
        name = action.name
        if name == "commit":
            self._refuse("commit", "D_COMM_COMM", "a clause can commit once", line)
            self._refuse("data", "D_COMM_DREC", "commit( ) must come before what records data", line)
        elif name == "speculate":
            self._refuse("speculate", "D_SPEC_SPEC", "a clause can speculate once", line)
            self._refuse("commit", "D_SPEC_COMM", "speculate( ) cannot follow commit( )", line)
            self._refuse("data", "D_SPEC_DREC", "speculate( ) must come before what records data", line)
        elif name == "exit":
            self._refuse("speculate", "D_EXIT_SPEC", "exit( ) cannot follow speculate( )", line)
        elif action.destroys:
            self._refuse("speculate", "D_ACT_SPEC", f"{name}( ) cannot follow speculate( )", line)
        if action.records:
            self._refuse("commit", "D_DREC_COMM", f"{name}( ) records data and cannot follow commit( )", line)
            self._seen.add("data")
        self._seen.add(name)

    def _refuse(self, what: str, tag: str, message: str, line: int) -> None:
        if what in self._seen:
            raise CompileError(tag, message, line)

    # -- values

    def _check(self, node: ast.Expression) -> typed.Node:
        return self._expressions.check(node)

    def _argument(self, call: ast.Call, returns: DifType) -> Difo:
        """Compile the only argument of an action, an integer."""
        name = call.function.name if isinstance(call.function, ast.Name) else ""
        node = self._check(call.arguments[0])
        parameter = self._words.actions[name].signature.parameters[0]
        if parameter is not None and not argument_fits(node, parameter):
            raise incompatible(f"{name}( ) argument #1", parameter, node.type, call.line)
        return self.difo(node, returns)

    def _constant(self, node: ast.Expression, tag: str, message: str, *, least: int) -> int:
        value = self._expressions.constant(node)
        if value is None or not least <= value <= _INT_MAX:
            raise CompileError(tag, message, node.line)
        return value

    def _value_action(self, node: ast.Expression) -> ActionDescription | None:
        """Compile a call that has a value as an action only: stack(), sym() and their like; None for anything else."""
        if not isinstance(node, ast.Call) or not isinstance(node.function, ast.Name):
            return None
        name, count = node.function.name, len(node.arguments)
        if name in _SYMBOLS:
            check_count(name, count, self._words.actions[name].signature, node.line)
            return ActionDescription(_SYMBOLS[name], self._argument(node, INT64_RECORD))
        if name == "stack":
            if count > 1:
                raise CompileError("D_STACK_PROTO", f"stack( ) takes one argument at most, not {count}", node.line)
            frames = self._frames(node, "D_STACK_SIZE") if count else 0
            return ActionDescription(ActionKind.STACK, argument=frames)
        if name in _STACKS:
            if count > 2:
                raise CompileError("D_USTACK_PROTO", f"{name}( ) takes two arguments at most, not {count}", node.line)
            frames = self._frames(node, "D_USTACK_FRAMES") if count else 0
            strings = 0
            if count > 1:
                message = f"{name}( ) argument #2 is not a constant of 0 or more"
                strings = self._constant(node.arguments[1], "D_USTACK_STRSIZE", message, least=0)
            return ActionDescription(_STACKS[name], argument=strings << 32 | frames)
        return None

    def _frames(self, call: ast.Call, tag: str) -> int:
        message = "the number of frames is not a positive constant"
        return self._constant(call.arguments[0], tag, message, least=1)

    def _value_type(self, action: ActionDescription) -> Type:
        """Return the type that a format and a key see of an action with a value."""
        if action.kind in _STACKS.values():
            return STACK
        return SYMBOL if action.kind in _KERNEL_SYMBOLS else USER_SYMBOL

    def _datum(self, node: ast.Expression, kind: ActionKind) -> tuple[ActionDescription, Type]:
        """Compile a value of a statement: an action that has one, or an expression recorded under `kind`."""
        action = self._value_action(node)
        if action is not None:
            return action, self._value_type(action)
        checked = self._check(node)
        return ActionDescription(kind, self.difo(checked, self._recorded(checked))), checked.type

    def _is_dynamic(self, node: ast.Expression) -> bool:
        """Tell whether an expression is a translation as a whole, which has no value."""
        return isinstance(node, ast.Name | ast.Translate | ast.Index) and is_dynamic(self._check(node).type)

    @staticmethod
    def _recorded(node: typed.Node) -> DifType:
        """Describe a value as it is recorded: memory of the traced process is fetched from there."""
        userland = (isinstance(node, typed.Memory) and node.userland) or (
            isinstance(node, typed.Relabel) and is_userland(node.operand.type)
        )
        return diftype(node.type, userland=userland)

    # -- actions

    def _trace(self, name: str, call: ast.Call) -> Actions:
        (argument,) = call.arguments
        tag = name.upper()
        if isinstance(argument, ast.Aggregation) or (
            isinstance(argument, ast.Index) and isinstance(argument.base, ast.Aggregation)
        ):
            raise CompileError(f"D_{tag}_AGG", f"{name}( ) cannot show an aggregation: use printa( )", call.line)
        if self._is_dynamic(argument):
            raise CompileError(f"D_{tag}_DYN", f"{name}( ) of something that is no value", call.line)
        action, type_ = self._datum(argument, ActionKind.DIFEXPR)
        if is_void(type_):
            raise CompileError(f"D_{tag}_VOID", f"{name}( ) of an expression without a value", call.line)
        return [action]

    def _print(self, name: str, call: ast.Call) -> Actions:
        (action,) = self._trace(name, call)
        return [replace(action, format=self._names.print_as(self._check(call.arguments[0]).type))]

    def _printm(self, call: ast.Call) -> ActionDescription:
        size = self._constant(call.arguments[0], "D_PROTO_ARG", "printm( ) needs a constant size", least=1)
        node = self._check(call.arguments[1])
        return ActionDescription(ActionKind.PRINTM, self.difo(node, DifType(TypeKind.CTF, 1, 0, size + 8)))

    def _printf(self, kind: ActionKind, name: str, call: ast.Call) -> Actions:
        text = self._format(name, call.arguments[0], empty=kind is ActionKind.FREOPEN)
        data = [self._datum(argument, kind) for argument in call.arguments[1:]]
        pieces = printf.parse(text, self._words.model, call.line)
        written = printf.check(name, pieces, [type_ for _action, type_ in data], self._words.model, call.line)
        actions = [action for action, _type in data] or [ActionDescription(kind, constant(0, returns=INT32))]
        if actions[0].kind is not kind:
            # The statement is known by its first record, and that has the format: before a stack or a symbol goes a
            # string of which nothing is shown.
            actions.insert(0, ActionDescription(kind, self.difo(typed.Text(""), _EMPTY_TEXT)))
            written = f"%.0s{written}"
        return [replace(actions[0], format=written), *actions[1:]]

    def _format(self, name: str, node: ast.Expression, *, empty: bool = False) -> str:
        if not isinstance(node, ast.Text):
            raise CompileError("D_PRINTF_ARG_FMT", f"{name}( ) needs a string constant as its format", node.line)
        if not node.value and not empty:
            raise CompileError("D_PRINTF_FMT_EMPTY", f"{name}( ) has an empty format", node.line)
        return node.value

    def _freopen(self, name: str, call: ast.Call) -> Actions:
        text = call.arguments[0]
        if isinstance(text, ast.Text) and text.value == _RESTORE:
            raise CompileError(
                "D_FREOPEN_INVALID", 'freopen(" ") is no file: freopen("") restores the output', call.line
            )
        if isinstance(text, ast.Text) and not text.value:
            return [ActionDescription(ActionKind.FREOPEN, constant(0, returns=INT32), format=_RESTORE)]
        return self._printf(ActionKind.FREOPEN, name, call)

    def _tracemem(self, _name: str, call: ast.Call) -> Actions:
        if len(call.arguments) > 3:
            raise CompileError("D_TRACEMEM_ARGS", "tracemem( ) takes three arguments at most", call.line)
        address = self._check(call.arguments[0])
        if not is_scalar(address.type) and not is_pointer(address.type):
            raise CompileError("D_TRACEMEM_ADDR", "tracemem( ) argument #1 is neither pointer nor integer", call.line)
        message = "tracemem( ) argument #2 is not a positive constant"
        size = self._constant(call.arguments[1], "D_TRACEMEM_SIZE", message, least=1)
        flags = BY_USER_REFERENCE if is_userland(address.type) else BY_REFERENCE
        memory = self.difo(address, DifType(TypeKind.CTF, Kind.ARRAY.value, flags, size))
        actions = [ActionDescription(ActionKind.TRACEMEM, memory)]
        if len(call.arguments) == 3:
            shown = self._check(call.arguments[2])
            if not is_scalar(shown.type):
                raise CompileError("D_TRACEMEM_DYNSIZE", "tracemem( ) argument #3 is no scalar", call.line)
            actions.insert(0, ActionDescription(ActionKind.TRACEMEM_DYNSIZE, self.difo(shown, INT64_RECORD)))
        return actions

    def _setopt(self, name: str, call: ast.Call) -> Actions:
        actions = []
        for place, argument in enumerate(call.arguments, start=1):
            node = self._check(argument)
            if not is_text(node.type):
                raise CompileError("D_PROTO_ARG", f"{name}( ) argument #{place} is no string", call.line)
            actions.append(_library(self.difo(typed.Relabel(node, STRING)), LibraryAction.SETOPT))
        return actions

    def _effect(self, name: str, call: ast.Call) -> Actions:
        kind = ActionKind[name.upper()]
        return [ActionDescription(kind, self._argument(call, INT32) if call.arguments else None)]

    # -- aggregations

    def _known_aggregation(self, name: str, node: ast.Expression, place: int) -> Aggregation:
        """Return the aggregation that an argument names."""
        tag = {"denormalize": "NORMALIZE"}.get(name, name.upper())
        if not isinstance(node, ast.Aggregation):
            raise CompileError(f"D_{tag}_AGGARG", f"{name}( ) argument #{place} is no aggregation", node.line)
        found = self._names.aggregations.get(node.name)
        if found is None:
            hint = did_you_mean(node.name, self._names.aggregations)
            raise CompileError(f"D_{tag}_AGGBAD", f"undefined aggregation: @{node.name}{hint}", node.line)
        return found

    def _on_aggregation(self, name: str, call: ast.Call) -> Actions:
        """Compile clear(), trunc(), normalize() and denormalize()."""
        tag = {"denormalize": "NORMALIZE"}.get(name, name.upper())
        least, most = {"trunc": (1, 2), "normalize": (2, 2)}.get(name, (1, 1))
        if not least <= len(call.arguments) <= most:
            wanted = str(most) if least == most else f"{least} or {most}"
            raise CompileError(f"D_{tag}_PROTO", f"{name}( ) takes {wanted} argument{'s' * (most > 1)}", call.line)
        library = LibraryAction[name.upper()]
        found = self._known_aggregation(name, call.arguments[0], 1)
        actions = [_library(constant(found.id, returns=INT32), library)]
        for argument in call.arguments[1:]:
            node = self._check(argument)
            if not is_scalar(node.type):
                raise CompileError(f"D_{tag}_SCALAR", f"{name}( ) argument #2 is no scalar", call.line)
            actions.append(_library(self.difo(node), library))
        return actions

    def _printa(self, name: str, call: ast.Call) -> Actions:
        arguments = list(call.arguments)
        if not arguments:
            raise CompileError("D_PRINTA_PROTO", "printa( ) needs an aggregation", call.line)
        text: str | None = None
        if not isinstance(arguments[0], ast.Aggregation | ast.Index):
            text = self._format(name, arguments.pop(0))
            if not arguments:
                raise CompileError("D_PRINTA_PROTO", "printa( ) has a format, but no aggregation", call.line)
        found = [
            self._known_aggregation(name, argument, place)
            for place, argument in enumerate(arguments, start=1 + (text is not None))
        ]
        self._check_joined(found, call.line)
        written, model = "", self._words.model
        if text is not None:
            written = printf.check_keys(printf.parse(text, model, call.line), found[0].keys, model, call.line)
        actions = [ActionDescription(ActionKind.PRINTA, constant(each.id, returns=INT32)) for each in found]
        return [replace(actions[0], format=written), *actions[1:]]

    @staticmethod
    def _check_joined(found: Sequence[Aggregation], line: int) -> None:
        """Check that aggregations shown together have keys alike."""
        first = found[0]
        for other in found[1:]:
            if len(other.keys) != len(first.keys):
                raise CompileError(
                    "D_PRINTA_AGGKEY", f"@{first.name} and @{other.name} have different numbers of keys", line
                )
            if not all(map(_alike, other.keys, first.keys)):
                raise CompileError(
                    "D_PRINTA_AGGPROTO", f"@{first.name} and @{other.name} have keys of other types", line
                )

    def _aggregate(self, node: ast.Assign) -> Actions:
        name, keys = _named(node.target)
        self._refuse("commit", "D_AGG_COMM", "an aggregation cannot follow commit( )", node.line)
        self._refuse("speculate", "D_AGG_SPEC", "an aggregation cannot follow speculate( )", node.line)
        call = node.value
        if (
            node.operator != "="
            or not isinstance(call, ast.Call)
            or not isinstance(call.function, ast.Name)
            or call.function.name not in self._words.aggregating
        ):
            raise CompileError(
                "D_AGG_FUNC",
                f"@{name} must be assigned the result of an aggregating function, such as count( )",
                node.line,
            )
        function = self._words.aggregating[call.function.name]
        check_count(function.name, len(call.arguments), function.signature, node.line)
        elements, types = self._tuple(name, keys, node.line)
        found = self._names.aggregation(name)
        value, argument, increment = self._aggregated(found, function, call)
        self._define(found, function.kind, types, node.line)
        found.argument = argument
        first = ActionDescription(ActionKind.DIFEXPR, constant(found.id, returns=INT32))
        parts = [first, *elements, *increment]
        return [*parts, ActionDescription(function.kind, value, argument, tuple_size=len(parts))]

    def _tuple(self, name: str, keys: Sequence[ast.Expression], line: int) -> tuple[Actions, tuple[Type, ...]]:
        actions: Actions = []
        types: list[Type] = []
        for place, key in enumerate(keys, start=1):
            if self._is_dynamic(key):
                raise CompileError("D_KEY_TYPE", f"@{name}[ ] key #{place} is no value", line)
            action, type_ = self._datum(key, ActionKind.DIFEXPR)
            if is_void(type_):
                raise CompileError("D_KEY_TYPE", f"@{name}[ ] key #{place} cannot be {type_name(type_)}", line)
            actions.append(action)
            types.append(type_)
        return actions, tuple(types)

    @staticmethod
    def _define(found: Aggregation, kind: ActionKind, types: tuple[Type, ...], line: int) -> None:
        """Fix what an aggregation holds, or hold it against that."""
        if found.function is None:
            found.function, found.keys = kind, types
            return
        if found.function is not kind:
            was, now = found.function.name.lower(), kind.name.lower()
            raise CompileError("D_AGG_REDEF", f"aggregation redefined: @{found.name} is {was}( ), not {now}( )", line)
        if len(types) != len(found.keys):
            has = f"{len(found.keys)} key{'s' * (len(found.keys) != 1)}"
            raise CompileError("D_PROTO_LEN", f"@{found.name}[ ] has {has}, not {len(types)}", line)
        for place, (type_, known) in enumerate(zip(types, found.keys, strict=True), start=1):
            if not _alike(type_, known):
                raise incompatible(f"@{found.name}[ ] key #{place}", known, type_, line)

    def _aggregated(
        self, found: Aggregation, function: builtins.AggregatingFunction, call: ast.Call
    ) -> tuple[Difo | None, int, Actions]:
        """Compile the arguments of an aggregating function: the value, the parameters, the increment."""
        if not call.arguments:
            return None, 0, []
        value = self._check(call.arguments[0])
        if not is_scalar(value.type):
            raise CompileError("D_AGG_SCALAR", f"{function.name}( ) argument #1 is no scalar", call.line)
        constants = [
            lambda node=node: self._expressions.constant(node)
            for node in call.arguments[1 : 1 + quantize.PARAMETERS.get(function.kind, 0)]
        ]
        argument = quantize.encode(function.kind, constants, found, call.line)
        rest = call.arguments[1 + quantize.PARAMETERS.get(function.kind, 0) :]
        increments: Actions = []
        for node in rest:
            increment = self._check(node)
            if not is_integer(increment.type):
                raise CompileError("D_PROTO_ARG", f"{function.name}( ): the increment is no integer", call.line)
            increments.append(ActionDescription(ActionKind.DIFEXPR, self.difo(increment, VOID_RECORD)))
        return self.difo(value), argument, increments


def _named(target: ast.Expression) -> tuple[str, tuple[ast.Expression, ...]]:
    """Take `@name[keys]` apart."""
    match target:
        case ast.Index(base=ast.Aggregation(name=name), keys=keys):
            return name, keys
        case ast.Aggregation(name=name):
            return name, ()
    raise AssertionError(target)


def _library(difo: Difo, action: LibraryAction) -> ActionDescription:
    return ActionDescription(ActionKind.LIBACT, difo, argument=action)


def _alike(left: Type, right: Type) -> bool:
    """Tell whether two keys go together: integers of any width, texts, or the same kind of thing."""
    if is_integer(left) and is_integer(right):
        return True
    if is_text(left) and is_text(right):
        return True
    return diftype(left) == diftype(right) and (left in {STACK, SYMBOL, USER_SYMBOL}) == (
        right in {STACK, SYMBOL, USER_SYMBOL}
    )
