"""Probes listed (-l) and their stability and arguments (-v).

Source: FreeBSD cmd/dtrace/dtrace.c (list_probe, print_probe_info) and libdtrace dt_provider.c
(dt_probe_info).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from providers.base import DependencyClass
from trapline.d.check.stability import description_attribute

if TYPE_CHECKING:
    from collections.abc import Callable

    from providers.base import ArgumentDescription, Attribute
    from trapline.framework.base.device import ProbeInfo
    from trapline.framework.base.program import ProbeDescription

HEADING: Final = f"{'ID':>5} {'PROVIDER':>10} {'MODULE':>17} {'FUNCTION':>33} NAME\n"
_CLASSES: Final = {DependencyClass.CPU: "CPU", DependencyClass.ISA: "ISA"}


def list_line(probe: ProbeInfo) -> str:
    """Return the line of one probe."""
    it = probe.description
    return f"{probe.id:5d} {it.provider:>10} {it.module:>17} {it.function:>33} {it.name}\n"


def show_attribute(title: str, attribute: Attribute) -> str:
    """Return an attribute as a block under its title."""
    return (
        f"\n\t{title}\n"
        f"\t\tIdentifier Names: {attribute.name.name.capitalize()}\n"
        f"\t\tData Semantics:   {attribute.data.name.capitalize()}\n"
        f"\t\tDependency Class: {_CLASSES.get(attribute.klass, attribute.klass.name.capitalize())}\n"
    )


def show_probe(
    probe: ProbeInfo, pattern: ProbeDescription, argument: Callable[[int], ArgumentDescription | None]
) -> str:
    """Return the attributes and the argument types of a probe as described by `pattern`."""
    return (
        show_attribute("Probe Description Attributes", description_attribute(probe, pattern))
        + show_attribute("Argument Attributes", probe.attributes.args)
        + "\n\tArgument Types\n"
        + "".join(f"\t\targs[{index}]: {text}\n" for index, text in enumerate(argument_types(argument)))
        + ("" if argument(0) else "\t\tNone\n")
        + "\n"
    )


def argument_types(argument: Callable[[int], ArgumentDescription | None]) -> list[str]:
    """Return the types of a probe's arguments as D programs see them."""
    types: list[str] = []
    while (found := argument(len(types))) is not None:
        types.append(found.translated or found.native)
    return types
