"""BEGIN, END and ERROR.

Source: FreeBSD dtrace.c dtrace_attach(), which makes the provider.
"""

from __future__ import annotations

from typing import Any, Final

from providers.base import Attribute, DependencyClass, Framework, Provider, ProviderAttributes, Stability

_STABLE: Final = Attribute(Stability.STABLE, Stability.STABLE, DependencyClass.COMMON)
_PRIVATE: Final = Attribute(Stability.PRIVATE, Stability.PRIVATE, DependencyClass.UNKNOWN)


class MetaProvider(Provider):
    """The provider `dtrace`: BEGIN, END and ERROR, which fire for one consumer at a time."""

    name = "dtrace"
    attributes = ProviderAttributes(_STABLE, _PRIVATE, _PRIVATE, _STABLE, _STABLE)

    def __init__(self, framework: Framework) -> None:
        framework.register(self)
        for name in ("BEGIN", "END", "ERROR"):
            framework.probe_create(self, "", "", name, 0, None)

    def enable(self, probe_id: int, arg: Any) -> None:
        """Do nothing: the framework fires them itself."""

    def disable(self, probe_id: int, arg: Any) -> None:
        """Do nothing."""

    def destroy(self, probe_id: int, arg: Any) -> None:
        """Do nothing: they stay."""
