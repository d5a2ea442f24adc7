"""The statements of a clause as actions: their records, and the rules of their order.

Source: FreeBSD libdtrace dt_cc.c (dt_action_*()).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from trapline.d.check import builtins, typed
from trapline.d.check.aggregations import is_aggregation
from trapline.d.check.expressions import Expressions
from trapline.d.codegen.aggregations import Aggregations
from trapline.d.codegen.expressions import constant
from trapline.d.codegen.values import STACKS, SYMBOLS, VOID_RECORD, Actions, Values, library
from trapline.d.errors import CompileError
from trapline.d.parse import ast
from trapline.d.types.rules import is_address, is_dynamic, is_integer, is_scalar, is_text, is_userland, is_void
from trapline.d.types.types import STRING, Kind
from trapline.framework.base.program import (
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
from trapline.framework.base.program import INT64 as INT64_RECORD

if TYPE_CHECKING:
    from trapline.d.check.scopes import Globals

# Format of freopen(""): the consumer restores the output.
_RESTORE: Final = " "
_EMPTY_TEXT: Final = DifType(TypeKind.CTF, Kind.ARRAY.value, BY_REFERENCE, 1)


class Statements:
    """Compiles the statements of one clause."""

    def __init__(
        self, expressions: Expressions, names: Globals, *, registers: int, strsize: int, target: bool = False
    ) -> None:
        self._values = Values(expressions, names.words, registers=registers, strsize=strsize, target=target)
        self._aggregations = Aggregations(self._values, names, self._refuse)
        self._names = names
        self._words = names.words
        self._seen: set[str] = set()
        self._table: dict[str, Callable[[str, ast.Call], Actions]] = {
            "trace": self._trace,
            "print": self._print,
            "printf": lambda name, call: self._printf(ActionKind.PRINTF, name, call),
            "system": lambda name, call: self._printf(ActionKind.SYSTEM, name, call),
            "freopen": self._freopen,
            "printa": self._aggregations.printa,
            "tracemem": self._tracemem,
            "exit": lambda _name, call: [ActionDescription(ActionKind.EXIT, self._values.argument(call, INT32))],
            "clear": self._aggregations.act,
            "denormalize": self._aggregations.act,
            "trunc": self._aggregations.act,
            "normalize": self._aggregations.act,
            "setopt": self._setopt,
            "ftruncate": lambda _name, _call: [library(constant(0, returns=INT32), LibraryAction.FTRUNCATE)],
            "speculate": self._effect,
            "commit": self._effect,
            "discard": self._effect,
            "raise": self._effect,
            "chill": self._effect,
            "stop": self._effect,
            "breakpoint": self._effect,
            "panic": self._effect,
            "printm": lambda _name, call: [self._printm(call)],
            **dict.fromkeys((*STACKS, *SYMBOLS), lambda _name, call: [self._values.datum(call, ActionKind.DIFEXPR)]),
        }

    def compile(self, body: Sequence[ast.Statement]) -> Iterator[Actions]:
        """Yield the actions of each statement.  Raises `CompileError`."""
        for statement in body:
            assert not isinstance(statement, ast.If), "branch_free() has made clauses of it"
            yield self._statement(self._values.chosen(statement))

    def predicate(self, node: ast.Expression) -> Difo:
        """Compile a predicate."""
        return self._values.difo(self._values.check(node))

    def _statement(self, node: ast.Expression) -> Actions:
        match node:
            case ast.Assign() if is_aggregation(node):
                return self._aggregations.assign(node)
            case ast.Aggregation(name=name) | ast.Index(base=ast.Aggregation(name=name)):
                raise CompileError(
                    "D_AGG_NULL", f"@{name} alone does nothing: assign an aggregating function", node.line
                )
            case ast.Call(function=ast.Name(name=name)) if name in self._words.actions:
                action = self._words.actions[name]
                self._keep_rules(action, node.line)
                return self._table[name](name, node)
            case ast.Call(function=ast.Name(name=("copyout" | "copyoutstr") as name)):
                self._refuse("speculate", "D_ACT_SPEC", f"{name}( ) cannot follow speculate( )", node.line)
            case ast.Call(function=ast.Name(name=name)) if name in self._words.aggregating:
                raise CompileError(
                    "D_CG_EXPR", f"{name}( ) can only be assigned to an aggregation: @ = {name}(...)", node.line
                )
        checked = self._values.check(node)
        return [ActionDescription(ActionKind.DIFEXPR, self._values.difo(checked, VOID_RECORD))]

    # -- rules of order

    def _keep_rules(self, action: builtins.Action, line: int) -> None:
        """Check an action against those before it in the clause."""
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

    # -- actions

    def _trace(self, name: str, call: ast.Call) -> Actions:
        (argument,) = call.arguments
        tag = name.upper()
        checked = self._values.operand(argument)
        if isinstance(checked, typed.Aggregate):
            raise CompileError(f"D_{tag}_AGG", f"{name}( ) cannot show an aggregation: use printa( )", call.line)
        if is_void(checked.type):
            raise CompileError(f"D_{tag}_VOID", f"{name}( ) of an expression without a value", call.line)
        if is_dynamic(checked.type):
            raise CompileError(f"D_{tag}_DYN", f"{name}( ) of a translation: show one of its members", call.line)
        return [self._values.datum(argument, ActionKind.DIFEXPR)]

    def _print(self, name: str, call: ast.Call) -> Actions:
        (action,) = self._trace(name, call)
        return [replace(action, format=self._names.print_as(self._values.operand(call.arguments[0]).type))]

    def _printm(self, call: ast.Call) -> ActionDescription:
        size = self._values.constant(call.arguments[0], "D_PRINTM_SIZE", "printm( ) needs a constant size", least=1)
        node = self._values.check(call.arguments[1])
        return ActionDescription(
            ActionKind.PRINTM, self._values.difo(node, DifType(TypeKind.CTF, 1, BY_REFERENCE, size + 8))
        )

    def _printf(self, kind: ActionKind, name: str, call: ast.Call) -> Actions:
        text = self._values.format(name, call.arguments[0], empty=kind is ActionKind.FREOPEN)
        types = [self._values.operand(argument).type for argument in call.arguments[1:]]
        formats = self._values.formats
        written, addresses = formats.check(name, formats.parse(text, call.line), types, call.line)
        actions = [
            self._values.address(argument, kind) if index in addresses else self._values.datum(argument, kind)
            for index, argument in enumerate(call.arguments[1:])
        ] or [ActionDescription(kind, constant(0, returns=INT32))]
        if actions[0].kind is not kind:
            # The statement is identified by its first record, which has the format: before a stack or a symbol there is
            # a string that is not shown.
            actions.insert(0, ActionDescription(kind, self._values.difo(typed.Text(""), _EMPTY_TEXT)))
            written = f"%.0s{written}"
        return [replace(actions[0], format=written), *actions[1:]]

    def _freopen(self, name: str, call: ast.Call) -> Actions:
        text = call.arguments[0]
        if isinstance(text, ast.Text) and text.value == _RESTORE:
            raise CompileError(
                "D_FREOPEN_INVALID", 'freopen(" ") is not a file: freopen("") restores the output', call.line
            )
        if isinstance(text, ast.Text) and not text.value:
            return [ActionDescription(ActionKind.FREOPEN, constant(0, returns=INT32), format=_RESTORE)]
        return self._printf(ActionKind.FREOPEN, name, call)

    def _tracemem(self, _name: str, call: ast.Call) -> Actions:
        address = self._values.operand(call.arguments[0])
        if not is_integer(address.type) and not is_address(address.type):
            raise CompileError("D_TRACEMEM_ADDR", "tracemem( ) argument #1 is neither pointer nor integer", call.line)
        message = "tracemem( ) argument #2 is not a positive constant"
        size = self._values.constant(call.arguments[1], "D_TRACEMEM_SIZE", message, least=1)
        if len(call.arguments) > 3:
            raise CompileError("D_TRACEMEM_ARGS", "tracemem( ) takes three arguments at most", call.line)
        flags = BY_USER_REFERENCE if is_userland(address.type) else BY_REFERENCE
        memory = self._values.difo(address, DifType(TypeKind.CTF, Kind.ARRAY.value, flags, size))
        actions = [ActionDescription(ActionKind.TRACEMEM, memory)]
        if len(call.arguments) == 3:
            shown = self._values.check(call.arguments[2])
            if not is_scalar(shown.type):
                raise CompileError("D_TRACEMEM_DYNSIZE", "tracemem( ) argument #3 is not a scalar", call.line)
            actions.insert(0, ActionDescription(ActionKind.TRACEMEM_DYNSIZE, self._values.difo(shown, INT64_RECORD)))
        return actions

    def _setopt(self, name: str, call: ast.Call) -> Actions:
        actions = []
        for number, argument in enumerate(call.arguments, start=1):
            node = self._values.check(argument)
            if not is_text(node.type):
                raise CompileError("D_PROTO_ARG", f"{name}( ) argument #{number} is not a string", call.line)
            actions.append(library(self._values.difo(typed.Relabel(node, STRING)), LibraryAction.SETOPT))
        return actions

    def _effect(self, name: str, call: ast.Call) -> Actions:
        kind = ActionKind[name.upper()]
        return [ActionDescription(kind, self._values.argument(call, INT32) if call.arguments else None)]
