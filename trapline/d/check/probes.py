"""The arguments of probes: those that provider blocks declare, and args[] of a clause.

    provider web { probe request__start(int number, const char *path); };

A provider block lists the probes that a program promises to have.  args[] has the types of the
arguments of all the probes that a clause is for.

Source: FreeBSD libdtrace dt_provider.c (dt_probe_discover(), dt_probe_create()), dt_parser.c
(dt_cook_provider(), dt_cook_probe()), dt_cc.c (dt_setcontext()), dt_ident.c (dt_idcook_args()).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from emu.support.immutable import immutable
from trapline.d.check import typed
from trapline.d.check.scopes import DeclaredProbe, Globals
from trapline.d.check.translators import Translators
from trapline.d.errors import CompileError
from trapline.d.parse import ast
from trapline.d.types.declarators import Declarators
from trapline.d.types.types import Type, type_name
from trapline.framework.base.program import PROBE_NAME_MAX, PROVIDER_NAME_MAX

if TYPE_CHECKING:
    from providers.base import ArgumentDescription
    from trapline.framework.base.device import ProbeInfo
    from trapline.framework.base.program import ProbeDescription

# No probe of the system has this many arguments.
_MOST: Final = 32
# The largest number of arguments that a provider block can give to a probe.
_ARGUMENTS_MAX: Final = 255


@immutable
class Providers:
    """Declares providers."""

    names: Globals
    declarators: Declarators
    translators: Translators

    def define(self, node: ast.Provider) -> None:
        """Declare a provider.  Raises `CompileError` D_PROV_*."""
        name = node.name
        if len(name) >= PROVIDER_NAME_MAX or "`" in name or name[-1] in "0123456789":
            raise CompileError("D_PROV_BADNAME", f"{name} is not a name for a provider", node.line)
        probes: dict[str, DeclaredProbe] = {}
        for declaration in node.probes:
            probe = self._probe(declaration)
            if probe.name in probes:
                raise CompileError("D_PROV_PRDUP", f"probe {probe.name} is declared twice", declaration.line)
            probes[probe.name] = probe
        known = self.names.providers.get(name)
        if known is not None and known != probes:
            raise CompileError("D_PROV_INCOMPAT", f"provider {name} is declared otherwise already", node.line)
        self.names.providers[name] = probes

    def _probe(self, node: ast.ProbeDeclaration) -> DeclaredProbe:
        name = node.name.replace("__", "-")
        if len(name) >= PROBE_NAME_MAX or "`" in name:
            raise CompileError("D_PROV_BADNAME", f"{node.name} is not a name for a probe", node.line)
        native = self._parameters(node.parameters)
        if len(native) > _ARGUMENTS_MAX:
            raise CompileError("D_PROV_PRARGLEN", f"probe {name} has {len(native)} arguments", node.line)
        types = tuple(type_ for _name, type_ in native)
        if node.translated is None:
            return DeclaredProbe(name, types, types, tuple(range(len(types))))
        return self._translated(name, native, node)

    def _translated(self, name: str, native: tuple[tuple[str, Type], ...], node: ast.ProbeDeclaration) -> DeclaredProbe:
        """Map the arguments that D programs see to those that the program passes."""
        assert node.translated is not None
        indices = {parameter: index for index, (parameter, _type) in enumerate(native) if parameter}
        shown, mapping = [], []
        for parameter, type_ in self._parameters(node.translated):
            if not parameter:
                raise CompileError("D_DECL_PROTO_NAME", f"probe {name}: a translated argument needs a name", node.line)
            index = indices.get(parameter)
            if index is None:
                raise CompileError("D_DECL_PROTO_FORM", f"probe {name}: no argument is called '{parameter}'", node.line)
            given = native[index][1]
            try:
                self.translators.passed(type_, typed.Parameter(parameter, given), node.line)
            except CompileError:
                raise CompileError(
                    "D_PROV_PRXLATOR",
                    f"probe {name}: no translator from {type_name(given)} to {type_name(type_)}",
                    node.line,
                ) from None
            shown.append(type_)
            mapping.append(index)
        return DeclaredProbe(name, tuple(type_ for _name, type_ in native), tuple(shown), tuple(mapping))

    def _parameters(self, part: ast.FunctionPart) -> tuple[tuple[str, Type], ...]:
        if part.varargs:
            raise CompileError("D_DECL_PROTO_VARARGS", "a probe has no ... among its arguments", part.line)
        return self.declarators.parameters(part)


class ProbeArgument(NamedTuple):
    """One element of args[]."""

    native: Type
    """Type of the passed argument."""
    mapping: int
    """Its index among the probe's arguments."""
    shown: Type | None = None
    """Its translated type; None: it is not translated."""


class ProbeArguments:
    """Finds the types of args[] when a clause first uses them."""

    def __init__(
        self,
        description: ProbeDescription,
        probes: Callable[[ProbeDescription], Sequence[ProbeInfo]],
        argument: Callable[[int, int], ArgumentDescription | None],
        type_of: Callable[[str], Type],
    ) -> None:
        self._description = description
        self._probes = probes
        self._argument = argument
        self._type_of = type_of
        self._found: tuple[ProbeArgument, ...] | None = None

    def __call__(self, line: int) -> Sequence[ProbeArgument]:
        """Return the arguments' types.  Raises `CompileError` D_ARGS_MULTI, D_ARGS_TYPE."""
        if self._found is None:
            matched = self._probes(self._description)
            if not matched:
                raise CompileError("D_ARGS_MULTI", f"args[ ]: no probe matches {self._description}", line)
            first = self._described(matched[0])
            if any(self._described(probe) != first for probe in matched[1:]):
                raise CompileError(
                    "D_ARGS_MULTI", f"args[ ]: the probes of {self._description} have different arguments", line
                )
            self._found = tuple(self._typed(argument, line) for argument in first)
        return self._found

    def _described(self, probe: ProbeInfo) -> tuple[ArgumentDescription, ...]:
        found = []
        for index in range(_MOST):
            argument = self._argument(probe.id, index)
            if argument is None or not argument.native:
                break
            found.append(argument)
        return tuple(found)

    def _typed(self, argument: ArgumentDescription, line: int) -> ProbeArgument:
        try:
            native = self._type_of(argument.native)
            shown = self._type_of(argument.translated) if argument.translated else None
        except CompileError as error:
            raise CompileError("D_ARGS_TYPE", f"args[{argument.index}]: {error.message}", line) from None
        return ProbeArgument(native, argument.mapping if argument.translated else argument.index, shown)
