"""Provider blocks: the probes that a program promises to have.

    provider web { probe request__start(int number, const char *path); };

Source: FreeBSD libdtrace dt_provider.c, dt_parser.c (dt_cook_provider, dt_cook_probe).
"""

from __future__ import annotations

from typing import Final

from emu.immutable import immutable
from trapline.d import ast, typed
from trapline.d.declarations import Declarations
from trapline.d.errors import CompileError
from trapline.d.scopes import DeclaredProbe, Globals
from trapline.d.translators import Translators
from trapline.d.types import Type, type_name
from trapline.framework.program import PROBE_NAME_MAX, PROVIDER_NAME_MAX

_ARGUMENTS_MAX: Final = 255


@immutable
class Providers:
    """Declares providers."""

    names: Globals
    declarations: Declarations
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
        places = {parameter: place for place, (parameter, _type) in enumerate(native) if parameter}
        shown, mapping = [], []
        for parameter, type_ in self._parameters(node.translated):
            if not parameter:
                raise CompileError("D_DECL_PROTO_NAME", f"probe {name}: a translated argument needs a name", node.line)
            place = places.get(parameter)
            if place is None:
                raise CompileError("D_DECL_PROTO_FORM", f"probe {name}: no argument is called '{parameter}'", node.line)
            given = native[place][1]
            try:
                self.translators.passed(type_, typed.Parameter(parameter, given), node.line)
            except CompileError:
                raise CompileError(
                    "D_PROV_PRXLATOR",
                    f"probe {name}: no translator from {type_name(given)} to {type_name(type_)}",
                    node.line,
                ) from None
            shown.append(type_)
            mapping.append(place)
        return DeclaredProbe(name, tuple(type_ for _name, type_ in native), tuple(shown), tuple(mapping))

    def _parameters(self, part: ast.FunctionPart) -> tuple[tuple[str, Type], ...]:
        if part.varargs:
            raise CompileError("D_DECL_PROTO_VARARGS", "a probe has no ... among its arguments", part.line)
        return self.declarations.parameters(part)
