"""The provider of the user probes of one process, in the form that the framework needs.

Source: FreeBSD sys fasttrap.c (fasttrap_pid_* and pid_attr), fasttrap_isa.c (fasttrap_pid_getarg).
"""

# ruff: noqa: ARG002  (the contract passes more than is needed)

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from emu.native.guest import LateArguments
from providers.base import (
    ArgumentDescription,
    Attribute,
    DependencyClass,
    Privilege,
    Provider,
    ProviderAttributes,
    Stability,
)
from providers.fasttrap.fasttrap import Fasttrap
from providers.fasttrap.hits import PASSED
from providers.fasttrap.records import Probe, ProbeType

_EVOLVING_ISA: Final = Attribute(Stability.EVOLVING, Stability.EVOLVING, DependencyClass.ISA)
_PRIVATE: Final = Attribute(Stability.PRIVATE, Stability.PRIVATE, DependencyClass.UNKNOWN)


class PidProvider(Provider):
    """The probes of one process."""

    attributes = ProviderAttributes(_EVOLVING_ISA, _PRIVATE, _PRIVATE, _EVOLVING_ISA, _PRIVATE)
    privilege: ClassVar[Privilege] = Privilege.PROC | Privilege.OWNER | Privilege.ZONEOWNER
    of_process: ClassVar[bool] = True

    def __init__(self, name: str, fasttrap: Fasttrap) -> None:
        self.name = name
        self._fasttrap = fasttrap

    def enable(self, probe_id: int, arg: Probe) -> None:
        """Install the tracepoints."""
        self._fasttrap.enable(arg)

    def enable_all(self, probes: Sequence[tuple[int, Probe]]) -> None:
        """Install the tracepoints of many probes."""
        self._fasttrap.enable_all([arg for _, arg in probes])

    def disable_all(self, probes: Sequence[tuple[int, Probe]]) -> None:
        """Remove the tracepoints of many probes."""
        self._fasttrap.disable_all([arg for _, arg in probes])

    def disable(self, probe_id: int, arg: Probe) -> None:
        """Remove them."""
        self._fasttrap.disable(arg)

    def destroy(self, probe_id: int, arg: Probe) -> None:
        """Forget the probe."""
        self._fasttrap.drop(arg)

    def usermode(self, probe_id: int, arg: Probe) -> bool:
        """Return that it fires in user mode."""
        return True

    def argument_description(self, probe_id: int, arg: Probe, index: int) -> ArgumentDescription | None:
        """Return the types that a program's DOF gives an argument."""
        if index >= len(arg.types):
            return None
        native, translated, mapping = arg.types[index]
        return ArgumentDescription(index, native, translated if translated != native else "", mapping)

    def argument_value(self, probe_id: int, arg: Probe, index: int) -> int | None:
        """Return arg5 and up: registers, then the stack.  Raises `BadAddressError`."""
        kernel, port = self._fasttrap.kernel, self._fasttrap.port
        if arg.read is not None:
            values = arg.read(kernel.frame)
            return values[index] if index < len(values) else 0
        index -= PASSED if port.arguments else 0
        if index < len(port.late_arguments):
            return kernel.cpu.read_register(port.late_arguments[index])
        return kernel.frame.stack_word(index - len(port.late_arguments) + self._skipped(arg))

    def late_arguments(self, probe_id: int, arg: Probe) -> LateArguments:
        """Return where those are."""
        if arg.read is not None:
            return LateArguments.HIT
        if arg.type is ProbeType.RETURN:
            return LateArguments.NONE
        return LateArguments.FUNCTION if self._skipped(arg) else LateArguments.CALL

    def _skipped(self, arg: Probe) -> int:
        """Return the number of words on the stack before the first argument there.

        A probe from DOF takes the place of a call, so there is no return address
        (fasttrap_usdt_getarg).
        """
        return 0 if arg.types else self._fasttrap.port.stack_skip
