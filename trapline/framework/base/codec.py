"""The interface of DOF, the format of programs and options for the framework.

`trapline.dof` implements it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from trapline.framework.base.program import EcbDescription, Program


class Decoded(Protocol):
    """The contents of DOF for the framework."""

    @property
    def ecbs(self) -> tuple[EcbDescription, ...]:
        """The enablings."""
        ...

    @property
    def options(self) -> tuple[tuple[str, int], ...]:
        """Run-time options by name."""
        ...


class ProgramFormat(Protocol):
    """The module `trapline.dof`."""

    @property
    def OPTIONS(self) -> tuple[str, ...]:  # noqa: N802  a constant of the module
        """The options that have a number, by their number."""
        ...

    def decode(self, data: bytes, max_size: int) -> Decoded:
        """Read DOF.  Raises `providers.dof.sections.DofError`."""
        ...

    def encode(self, program: Program, options: Mapping[str, int]) -> bytes:
        """Return a program as DOF, with run-time options by name."""
        ...
