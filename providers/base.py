"""The contract between a provider and the framework: FreeBSD's dtrace_pops_t, in Python.

Source of the contract: FreeBSD sys/cddl/contrib/opensolaris/uts/common/sys/dtrace.h.

To add a provider follow docs/adding-a-provider.md: it lists the methods to define, and the
registries of providers.
"""

# ruff: noqa: ARG002, B027  (a method that a provider need not define does nothing)

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import IntEnum, IntFlag
from typing import Any, ClassVar, Protocol

from emu.native.guest import LateArguments
from emu.support.immutable import immutable


class Stability(IntEnum):
    """Stability levels, low to high (dtrace.h DTRACE_STABILITY_*)."""

    INTERNAL = 0
    PRIVATE = 1
    OBSOLETE = 2
    EXTERNAL = 3
    UNSTABLE = 4
    EVOLVING = 5
    STABLE = 6
    STANDARD = 7


class DependencyClass(IntEnum):
    """Dependency classes (dtrace.h DTRACE_CLASS_*)."""

    UNKNOWN = 0
    CPU = 1
    PLATFORM = 2
    GROUP = 3
    ISA = 4
    COMMON = 5


class Privilege(IntFlag):
    """Privileges that a consumer needs to see a provider's probes (dtrace.h DTRACE_PRIV_*)."""

    NONE = 0
    KERNEL = 1
    USER = 2
    PROC = 4
    OWNER = 8
    ZONEOWNER = 0x10
    ALL = KERNEL | USER | PROC | OWNER | ZONEOWNER


@immutable
class Attribute:
    """Stability of a name, of its data, and the dependency class."""

    name: Stability
    data: Stability
    klass: DependencyClass


def minimum(left: Attribute, right: Attribute) -> Attribute:
    """Return the lesser of two attributes, field by field (dt_attr_min)."""
    return Attribute(min(left.name, right.name), min(left.data, right.data), min(left.klass, right.klass))


@immutable
class ProviderAttributes:
    """The five attribute triples of a provider (dtrace_pattr_t)."""

    provider: Attribute
    module: Attribute
    function: Attribute
    probe: Attribute
    args: Attribute


_EVOLVING = Attribute(Stability.EVOLVING, Stability.EVOLVING, DependencyClass.COMMON)
_PRIVATE = Attribute(Stability.PRIVATE, Stability.PRIVATE, DependencyClass.UNKNOWN)
_PRIVATE_ISA = Attribute(Stability.PRIVATE, Stability.PRIVATE, DependencyClass.ISA)

# The declaration of FreeBSD's providers fbt, sdt, syscall ... (sys/cddl/dev/fbt/fbt.c).
FREEBSD_KERNEL_ATTRIBUTES = ProviderAttributes(_EVOLVING, _PRIVATE, _PRIVATE_ISA, _EVOLVING, _PRIVATE_ISA)


@immutable
class ArgumentDescription:
    """Type of one probe argument (dtrace_argdesc_t); `native` "" means none."""

    index: int
    native: str
    translated: str = ""
    mapping: int = 0


class Framework(Protocol):
    """The interface of the framework for providers (dtrace.c's provider interface)."""

    def register(self, provider: Provider) -> None:
        """Add a provider (dtrace_register).  Raises ValueError for an illegal or used name."""
        ...

    def unregister(self, provider: Provider) -> None:
        """Remove a provider and its probes (dtrace_unregister).

        Raises ValueError while a probe is enabled.
        """
        ...

    def probe_create(self, provider: Provider, module: str, function: str, name: str, aframes: int, arg: Any) -> int:
        """Create a probe and return its id (dtrace_probe_create)."""
        ...

    def probe_lookup(self, provider: Provider, module: str, function: str, name: str) -> int:
        """Return the id of an existing probe of this provider, or 0 (dtrace_probe_lookup)."""
        ...

    def probe_arg(self, provider: Provider, probe_id: int) -> Any:
        """Return the `arg` the probe was created with (dtrace_probe_arg)."""
        ...

    def probe(self, probe_id: int, arg0: int = 0, arg1: int = 0, arg2: int = 0, arg3: int = 0, arg4: int = 0) -> None:
        """Fire a probe (dtrace_probe).  Arguments are unsigned 64-bit."""
        ...

    def native_runs(self, probe_id: int) -> int:
        """Return the address of a probe's enablings for machine code; 0: there is none.

        At that address, for the life of the probe, are two words: the number of enablings, 0 if
        Python runs them, and the address of pairs (function, its first argument). `function(first,
        arguments, core)` runs an enabling; `arguments` are five words, `core` the words of
        `emu.displaced.cpu_core`.
        """
        ...


class Provider(ABC):
    """A provider: creates probes, arms them, and fires them through its framework."""

    name: str
    attributes: ClassVar[ProviderAttributes] = FREEBSD_KERNEL_ATTRIBUTES
    privilege: ClassVar[Privilege] = Privilege.USER
    """FreeBSD registers its kernel providers with DTRACE_PRIV_USER."""
    of_process: ClassVar[bool] = False
    """Whether it belongs to one process, whose number ends its name."""

    def provide(self, description: tuple[str, str, str, str] | None) -> None:
        """Create the probes that can be named now.

        `description` is the wanted description, None for all.
        """

    def refusal(self, name: str) -> str:
        """Return why there can be no probe of this name; "": nothing is known."""
        return ""

    def provide_module(self, module: Any) -> None:
        """Create the probes of one kernel module (`emu.guest` Module).

        It is called once for each loaded module.
        """

    def forget_module(self, module: Any) -> None:
        """Forget a kernel module that is unloaded; its probes have been destroyed."""

    def unregistered(self) -> None:
        """Release all resources beside the probes: the framework has forgotten the provider."""

    @abstractmethod
    def enable(self, probe_id: int, arg: Any) -> None:
        """Arm a probe: its first enabling was linked."""

    @abstractmethod
    def disable(self, probe_id: int, arg: Any) -> None:
        """Disarm a probe: its last enabling was unlinked."""

    def enable_all(self, probes: Sequence[tuple[int, Any]]) -> None:
        """Arm probes, (id, arg) for each; a provider of many probes does it in fewer steps."""
        for probe_id, arg in probes:
            self.enable(probe_id, arg)

    def disable_all(self, probes: Sequence[tuple[int, Any]]) -> None:
        """Disarm probes, as `enable_all` arms them."""
        for probe_id, arg in probes:
            self.disable(probe_id, arg)

    def suspend(self, probe_id: int, arg: Any) -> None:
        """Remove the patch while a debugger reads the code."""

    def resume(self, probe_id: int, arg: Any) -> None:
        """Write the patch again after `suspend`."""

    def argument_description(self, probe_id: int, arg: Any, index: int) -> ArgumentDescription | None:
        """Return the type of argument `index`, None if it has none (getargdesc)."""
        return None

    def argument_value(self, probe_id: int, arg: Any, index: int) -> int | None:
        """Return argument `index` >= 5.

        None: the framework finds the argument itself (getargval).  It is not called while
        `late_arguments` says that there are none.
        """
        return None

    def late_arguments(self, probe_id: int, arg: Any) -> LateArguments:
        """Return where machine code finds arguments 5 to 9 while the probe fires."""
        return LateArguments.PYTHON

    def usermode(self, probe_id: int, arg: Any) -> bool:
        """Return whether the probe fired in user mode (usermode)."""
        return False

    @abstractmethod
    def destroy(self, probe_id: int, arg: Any) -> None:
        """Forget a probe, because its module was unloaded."""
