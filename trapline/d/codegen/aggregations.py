"""Aggregations to actions: their assignments, and what shows and changes them.

Source: FreeBSD libdtrace dt_cc.c (dt_compile_agg(), dt_action_printa(), dt_action_clear() and the
like).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from trapline.d.check import builtins
from trapline.d.check.aggregations import QUANTIZE_PARAMETERS, alike, encode_quantize, named_aggregation
from trapline.d.codegen.expressions import constant
from trapline.d.codegen.values import VOID_RECORD, Actions, Values, library
from trapline.d.errors import CompileError, did_you_mean
from trapline.d.parse import ast
from trapline.d.types.rules import is_integer, is_scalar
from trapline.framework.base.program import INT32, ActionDescription, ActionKind, Difo, LibraryAction

if TYPE_CHECKING:
    from trapline.d.check.scopes import Aggregation, Globals


class Aggregations:
    """Compiles the aggregations of a clause; `refuse` compares them with the actions before."""

    def __init__(self, values: Values, names: Globals, refuse: Callable[[str, str, str, int], None]) -> None:
        self._values = values
        self._names = names
        self._refuse = refuse

    def _known_aggregation(self, name: str, node: ast.Expression, number: int) -> Aggregation:
        """Return the aggregation that an argument names; keys after the name mean nothing here.

        Only a name with keys can be one that nothing assigns: without them it is not resolved.
        """
        tag = {"denormalize": "NORMALIZE"}.get(name, name.upper())
        if isinstance(node, ast.Index):
            node = node.base
        if not isinstance(node, ast.Aggregation):
            raise CompileError(f"D_{tag}_AGGARG", f"{name}( ) argument #{number} is not an aggregation", node.line)
        known = [other for other, one in self._names.aggregations.items() if one.function is not None]
        found = self._names.aggregation(node.name)
        if found.function is None:
            hint = did_you_mean(node.name, known)
            raise CompileError(f"D_{tag}_AGGBAD", f"undefined aggregation: @{node.name}{hint}", node.line)
        return found

    def act(self, name: str, call: ast.Call) -> Actions:
        """Compile clear(), trunc(), normalize() and denormalize()."""
        tag = {"denormalize": "NORMALIZE"}.get(name, name.upper())
        least, most = {"trunc": (1, 2), "normalize": (2, 2)}.get(name, (1, 1))
        if not least <= len(call.arguments) <= most:
            wanted = str(most) if least == most else f"{least} or {most}"
            raise CompileError(f"D_{tag}_PROTO", f"{name}( ) takes {wanted} argument{'s' * (most > 1)}", call.line)
        action = LibraryAction[name.upper()]
        found = self._known_aggregation(name, call.arguments[0], 1)
        actions = [library(constant(found.id, returns=INT32), action)]
        for argument in call.arguments[1:]:
            node = self._values.operand(argument)
            if not is_scalar(node.type):
                raise CompileError(f"D_{tag}_SCALAR", f"{name}( ) argument #2 is not a scalar", call.line)
            actions.append(library(self._values.difo(node), action))
        return actions

    def printa(self, name: str, call: ast.Call) -> Actions:
        """Compile the action that shows aggregations, with a format or without."""
        arguments = list(call.arguments)
        text: str | None = None
        if isinstance(arguments[0], ast.Text):
            text = self._values.format(name, arguments.pop(0))
            if not arguments:
                raise CompileError("D_PRINTA_PROTO", "printa( ) has a format, but no aggregation", call.line)
        found = [
            self._known_aggregation(name, argument, number)
            for number, argument in enumerate(arguments, start=1 + (text is not None))
        ]
        self._check_joined(found, call.line)
        written, formats = "", self._values.formats
        if text is not None:
            value = self._names.model.typedefs["uint64_t" if found[0].function is ActionKind.COUNT else "int64_t"]
            written = formats.check_keys(formats.parse(text, call.line), value, found[0].keys, call.line)
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
            if not all(map(alike, other.keys, first.keys)):
                raise CompileError(
                    "D_PRINTA_AGGPROTO", f"@{first.name} and @{other.name} have keys of other types", line
                )

    def assign(self, node: ast.Assign) -> Actions:
        """Compile an assignment that `check_aggregation` has accepted."""
        self._refuse("commit", "D_AGG_COMM", "an aggregation cannot follow commit( )", node.line)
        self._refuse("speculate", "D_AGG_SPEC", "an aggregation cannot follow speculate( )", node.line)
        name, keys = named_aggregation(node.target)
        call = node.value
        assert isinstance(call, ast.Call)
        assert isinstance(call.function, ast.Name)
        function = self._values.words.aggregating[call.function.name]
        found = self._names.aggregation(name)
        elements = [self._values.datum(key, ActionKind.DIFEXPR) for key in keys]
        value, argument, increment = self._aggregated(found, function, call)
        found.argument = argument
        first = ActionDescription(ActionKind.DIFEXPR, constant(found.id, returns=INT32))
        parts = [first, *elements, *increment]
        return [*parts, ActionDescription(function.kind, value, argument, tuple_size=len(parts))]

    def _aggregated(
        self, found: Aggregation, function: builtins.AggregatingFunction, call: ast.Call
    ) -> tuple[Difo | None, int, Actions]:
        """Compile an aggregating function's arguments: value, parameters, increment."""
        if not call.arguments:
            return None, 0, []
        value = self._values.operand(call.arguments[0])
        if not is_scalar(value.type):
            raise CompileError("D_AGG_SCALAR", f"{function.name}( ) argument #1 is not a scalar", call.line)
        constants = [
            lambda node=node: self._values.fold(node)
            for node in call.arguments[1 : 1 + QUANTIZE_PARAMETERS.get(function.kind, 0)]
        ]
        argument = encode_quantize(function.kind, constants, found, call.line)
        rest = call.arguments[1 + QUANTIZE_PARAMETERS.get(function.kind, 0) :]
        increments: Actions = []
        for node in rest:
            increment = self._values.operand(node)
            if not is_integer(increment.type):
                raise CompileError("D_PROTO_ARG", f"{function.name}( ): the increment is not an integer", call.line)
            increments.append(ActionDescription(ActionKind.DIFEXPR, self._values.difo(increment, VOID_RECORD)))
        return self._values.difo(value), argument, increments
