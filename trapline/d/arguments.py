"""args[]: the typed arguments of the probes that a clause is for.

Source: FreeBSD libdtrace dt_cc.c (dt_setcontext), dt_provider.c (dt_probe_discover), dt_ident.c
(dt_idcook_args).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from trapline.d.errors import CompileError

if TYPE_CHECKING:
    from providers.base import ArgumentDescription
    from trapline.d.types import Type
    from trapline.framework.device import ProbeInfo
    from trapline.framework.program import ProbeDescription

# No probe has this many arguments.
_MOST: Final = 32


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
