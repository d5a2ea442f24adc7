"""The meaning of names: variables, constants, symbols of the traced system, subroutines.

Source: FreeBSD libdtrace dt_ident.c, dt_parser.c (dt_xcook_ident()).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from emu.support.words import WORD_MASK
from trapline.d.check import typed
from trapline.d.check.builtins import Subroutine
from trapline.d.check.conversions import check_count, compatible, incompatible
from trapline.d.check.scopes import Globals
from trapline.d.check.typed import Variable
from trapline.d.errors import CompileError, did_you_mean
from trapline.d.parse import ast
from trapline.d.types.data_models import INT64
from trapline.d.types.declarators import SCOPES
from trapline.framework.base.dif import Subr, Var
from trapline.framework.base.program import Scope

# The names of a kernel's structure of a thread: FreeBSD, Linux.
_THREAD: Final = ("thread", "task_struct")
# The structures of the traced kernel to which variables, and results of subroutines, point.
_STRUCTURES: Final[Mapping[int, tuple[str, ...]]] = {Var.CURTHREAD: _THREAD}
_RESULTS: Final[Mapping[int, tuple[str, ...]]] = {Subr.MUTEX_OWNER: _THREAD, Subr.GETF: ("file",)}


class References:
    """Resolves the names in one program; `check` checks an expression."""

    def __init__(self, names: Globals, check: Callable[[ast.Expression], typed.Node]) -> None:
        self._names = names
        self._check = check
        self._parameters: dict[str, typed.Parameter] = {}

    @contextmanager
    def within(self, parameters: tuple[typed.Parameter, ...]) -> Iterator[None]:
        """Resolve names to parameters while this is entered."""
        outer = self._parameters
        self._parameters = {parameter.name: parameter for parameter in parameters}
        try:
            yield
        finally:
            self._parameters = outer

    def name(self, node: ast.Name) -> typed.Node:
        """Return the meaning of a plain name, or of one with back-quotes."""
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
            return self._of_guest(self._scalar(variable, node.line), _STRUCTURES.get(variable.id, ()))
        if name in names.enumerators:
            value, enumeration = names.enumerators[name]
            return typed.Constant(value & WORD_MASK, enumeration)
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
        of_process = "``" in name
        named = not name.endswith("`")
        symbol = self._names.foreign_symbol(name if of_process else name.removeprefix("`")) if named else None
        if symbol is None:
            if of_process and self._names.foreign.symbol(name.replace("``", "`").removeprefix("`")) is not None:
                raise CompileError("D_SYM_BADREF", f"{name} is a kernel symbol: name it with one back-quote", line)
            whose = " of a process" if of_process else ""
            raise CompileError("D_IDENT_UNDEF", f"failed to resolve {name}: no such symbol{whose}", line)
        if symbol.type is None:
            raise CompileError("D_SYM_NOTYPES", f"{name}: no type information for this symbol", line)
        address = typed.Constant(symbol.address, INT64)
        return typed.in_process(address, symbol.type) if of_process else typed.Memory(address, symbol.type)

    def _of_guest(self, node: typed.Node, tags: tuple[str, ...]) -> typed.Node:
        """Give a pointer its type, if the guest's types are known."""
        known = (self._names.foreign_tag("struct", tag) for tag in tags)
        structure = next((found for found in known if found is not None), None)
        return node if structure is None else typed.Relabel(node, self._names.model.pointer_to(structure))

    def _scalar(self, variable: Variable, line: int) -> typed.Node:
        if variable.keys is not None:
            raise CompileError(
                "D_IDENT_BADREF", f"{variable.name} is an array: name an element, {variable.name}[...]", line
            )
        return typed.Scalar(variable)

    def scoped(self, node: ast.Scoped) -> typed.Node:
        """Return a thread-local or clause-local variable."""
        scope = SCOPES[node.scope]
        variable = self._names.variables.get((scope, node.name))
        if variable is None:
            hint = did_you_mean(node.name, self._names.variable_names(scope))
            raise CompileError(
                "D_VAR_UNDEF", f"{node.scope}->{node.name} has not been declared or assigned{hint}", node.line
            )
        return self._scalar(variable, node.line)

    def aggregation(self, node: ast.Aggregation) -> typed.Node:
        """Return an aggregation that an assignment before has defined, in this clause or one above.

        Source: libdtrace dt_parser.c, dt_cook_ident(), which defines no name, and dt_cc.c,
        dt_compile_one_clause(), which checks a clause when it comes to it.
        """
        known = [name for name, one in self._names.aggregations.items() if one.function is not None]
        if node.name not in known:
            hint = did_you_mean(node.name, known)
            raise CompileError("D_IDENT_UNDEF", f"failed to resolve @{node.name}: no such aggregation{hint}", node.line)
        return typed.Aggregate(node.name)

    def argument(self, node: ast.Expression) -> typed.Node:
        """Check an argument, which may be an aggregation."""
        return self.aggregation(node) if isinstance(node, ast.Aggregation) else self._check(node)

    def call(self, node: ast.Call) -> typed.Node:
        """Check a call: first its arguments, then their number, then their types."""
        assert isinstance(node.function, ast.Name), "the parser lets only names be called"
        name, words = node.function.name, self._names.words
        called = words.subroutines.get(name) or words.actions.get(name) or words.aggregating.get(name)
        if called is None:
            raise self._not_a_function(name, node.line)
        signature = called.signature
        arguments = tuple(map(self.argument, node.arguments))
        check_count(name, len(arguments), signature, node.line)
        for number, (argument, parameter) in enumerate(zip(arguments, signature.parameters, strict=False), start=1):
            if parameter is not None and not compatible(parameter, argument):
                raise incompatible(f"{name}( ) argument #{number}", parameter, argument.type, node.line)
        if not isinstance(called, Subroutine):
            return typed.Action(name, signature.returns)
        parameters = tuple(parameter for parameter in signature.parameters if parameter is not None)
        value = typed.Call(called.number, arguments, parameters[: len(arguments)], signature.returns)
        return self._of_guest(value, _RESULTS.get(called.number, ()))

    def _not_a_function(self, name: str, line: int) -> CompileError:
        words = self._names.words
        if self._names.is_defined(name) or name in self._parameters:
            return CompileError("D_FUNC_IDKIND", f"{name} is not a function", line)
        known = [*words.subroutines, *words.actions, *words.aggregating]
        return CompileError("D_FUNC_UNDEF", f"undefined function name: {name}{did_you_mean(name, known)}", line)

    def is_known(self, node: ast.Scoped | ast.Name) -> bool:
        """Return whether a name means something already."""
        if isinstance(node, ast.Scoped):
            return (SCOPES[node.scope], node.name) in self._names.variables
        return "`" in node.name or node.name in self._parameters or self._names.is_defined(node.name)
