"""dtmalloc::temp:malloc and dtmalloc::temp:free.

A type's ids are set, and the allocator itself fires them.

Source: FreeBSD sys/cddl/dev/dtmalloc/dtmalloc.c.
"""

# ruff: noqa: ARG002  (the contract passes more than is needed)

from __future__ import annotations

import re
from typing import ClassVar, Final, NamedTuple

from emu.guest.kernel.malloc_types import MallocType, MallocTypes
from emu.native.guest import LateArguments
from providers.base import (
    ArgumentDescription,
    Attribute,
    DependencyClass,
    Framework,
    Provider,
    ProviderAttributes,
    Stability,
)

# In the order of the type's ids (DTMALLOC_PROBE_MALLOC, DTMALLOC_PROBE_FREE).
_NAMES: Final = ("malloc", "free")
_FUNCTION_LIMIT: Final = 191
_TYPES: Final = (
    "struct malloc_type *",
    "struct malloc_type_internal *",
    "struct malloc_type_stats *",
    "unsigned long",
    "int",
)
_STABLE: Final = Attribute(Stability.STABLE, Stability.STABLE, DependencyClass.COMMON)
_PRIVATE: Final = Attribute(Stability.PRIVATE, Stability.PRIVATE, DependencyClass.UNKNOWN)
_PRIVATE_ISA: Final = Attribute(Stability.PRIVATE, Stability.PRIVATE, DependencyClass.ISA)


class _Probe(NamedTuple):
    kind: MallocType
    number: int


class Dtmalloc(Provider):
    """The provider dtmalloc: two probes for each type of kernel memory."""

    name = "dtmalloc"
    attributes: ClassVar[ProviderAttributes] = ProviderAttributes(_STABLE, _PRIVATE, _PRIVATE_ISA, _STABLE, _STABLE)

    def __init__(self, framework: Framework, types: MallocTypes) -> None:
        self._framework = framework
        self._types = types
        self._enabled = 0
        framework.register(self)
        self._create()

    def provide(self, description: tuple[str, str, str, str] | None) -> None:
        """Create the probes of new types, which a module has added."""
        self._create()

    def _create(self) -> None:
        """Create two probes per type.

        If several types have one description, the first type found gets them.
        """
        for kind in self._types:
            function = re.sub(r"\s", "_", kind.description)[:_FUNCTION_LIMIT]
            if not self._framework.probe_lookup(self, "", function, _NAMES[0]):
                for number, name in enumerate(_NAMES):
                    self._framework.probe_create(self, "", function, name, 0, _Probe(kind, number))

    def enable(self, probe_id: int, arg: _Probe) -> None:
        """Set the type's id."""
        self._types.arm(arg.kind, arg.number, probe_id)
        self._count(1)

    def disable(self, probe_id: int, arg: _Probe) -> None:
        """Clear it."""
        self._types.arm(arg.kind, arg.number, 0)
        self._count(-1)

    def _count(self, change: int) -> None:
        self._enabled += change
        self._types.enable(on=self._enabled > 0)

    def argument_description(self, probe_id: int, arg: _Probe, index: int) -> ArgumentDescription | None:
        """Return an argument's type."""
        return ArgumentDescription(index, _TYPES[index]) if index < len(_TYPES) else None

    def late_arguments(self, probe_id: int, arg: _Probe) -> LateArguments:
        """Return that arguments 5 to 9 are 0: the allocator passes five."""
        return LateArguments.NONE

    def destroy(self, probe_id: int, arg: _Probe) -> None:
        """Do nothing: no data are kept for a probe."""
