"""The stability of a program: the minimum of the names that it uses.

Source: FreeBSD libdtrace dt_open.c (the attributes of each identifier), dt_attr.c.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from providers.base import Attribute, DependencyClass, Stability, minimum
from trapline.framework.base.device import ProbeInfo
from trapline.framework.base.program import STABLE, ProbeDescription

_EVOLVING: Final = Attribute(Stability.EVOLVING, Stability.EVOLVING, DependencyClass.COMMON)
_SYMBOL: Final = Attribute(Stability.PRIVATE, Stability.PRIVATE, DependencyClass.UNKNOWN)
_GLOB: Final = frozenset("*?[\\")
# Attributes of a description whose provider is not named (_dtrace_prvdesc).
_ANY_PROVIDER: Final = Attribute(Stability.UNSTABLE, Stability.UNSTABLE, DependencyClass.COMMON)
_NAMES: Final = {
    "curthread": Attribute(Stability.STABLE, Stability.PRIVATE, DependencyClass.COMMON),
    **dict.fromkeys(
        """
        mutex_owned mutex_owner mutex_type_adaptive mutex_type_spin rw_iswriter rw_read_held rw_write_held
        sx_shared_held sx_exclusive_held sx_isexclusive
        """.split(),
        _EVOLVING,
    ),
}
_ARGUMENTS: Final = frozenset({"args", *(f"arg{number}" for number in range(10))})


def parse_attribute(text: str) -> Attribute | None:
    """Read a stability, `Evolving/Private/ISA`; None if it is not one."""
    parts = text.upper().split("/")
    if len(parts) != 3 or not {parts[0], parts[1]} <= set(Stability.__members__):
        return None
    if parts[2] not in DependencyClass.__members__:
        return None
    return Attribute(Stability[parts[0]], Stability[parts[1]], DependencyClass[parts[2]])


def shown(attribute: Attribute) -> str:
    """Show a stability as `parse_attribute` reads it."""
    parts = (attribute.name.name, attribute.data.name, attribute.klass.name)
    return "/".join(part.capitalize() for part in parts)


def least(names: Iterable[str], arguments: Callable[[], Attribute], given: Mapping[str, Attribute]) -> Attribute:
    """Return the least stability of the names in a clause.

    `arguments` returns that of its probes' arguments, `given` is the stability from pragmas.
    """
    found = STABLE
    for name in names:
        if "`" in name:
            found = minimum(found, _SYMBOL)
        elif name in _ARGUMENTS:
            found = minimum(found, arguments())
        else:
            found = minimum(found, given.get(name) or _NAMES.get(name, STABLE))
    return found


def description_attribute(probe: ProbeInfo | None, pattern: ProbeDescription) -> Attribute:
    """Return a description's stability: the least of the fields that are named without a glob.

    `probe` is one that matches it, None if there is none (dt_provider.c, dt_probe_info).
    """
    if probe is None:
        return _ANY_PROVIDER
    attributes = probe.attributes
    if not _exact(pattern.provider):
        return _ANY_PROVIDER
    fields: Sequence[tuple[str, Attribute]] = (
        (pattern.module, attributes.module),
        (pattern.function, attributes.function),
        (pattern.name, attributes.probe),
    )
    least = attributes.provider
    for text, attribute in fields:
        if _exact(text):
            least = minimum(least, attribute)
    return least


def _exact(field: str) -> bool:
    return bool(field) and not _GLOB & set(field)
