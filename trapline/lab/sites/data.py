"""The result of `trapline sites` for functions: their sites, and the reasons for refusals."""

from __future__ import annotations

from dataclasses import dataclass

from emu.displaced.decision import Decision, Rule


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction of a function."""

    address: int
    offset: int
    """From the function's start."""
    code: bytes
    text: str
    """The disassembly; "(no instruction)" where there is none."""


@dataclass(frozen=True, slots=True)
class ProbeSite:
    """A place that gets a probe."""

    probe: str
    """Probe name: "entry", "return"."""
    instruction: Instruction
    patch: bytes
    invop: int | None
    """Invop code the provider keeps with the site; None: it keeps none."""
    invop_name: str
    """The name of that code, "" where there is none."""
    decision: Decision
    """How the instruction is displaced, and the row of the table that decides it."""
    remark: Rule | None
    """The reason why this should not be a site: the real system's errors are reproduced."""


@dataclass(frozen=True, slots=True)
class PassedOver:
    """A place that resembles a site, but is not one."""

    instruction: Instruction
    rule: Rule


@dataclass(frozen=True, slots=True)
class FunctionSites:
    """The result for one function: its sites, or the rule that refuses it."""

    name: str
    address: int
    size: int
    sites: tuple[ProbeSite, ...]
    passed_over: tuple[PassedOver, ...]
    refusal: Rule | None
