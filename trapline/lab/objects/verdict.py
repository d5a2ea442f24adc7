"""Decisions of decoders about an instruction, which can be compared."""

from __future__ import annotations

from typing import Final, NamedTuple

from emu.support.did_you_mean import counted

# The decisions, by the numbers of sweep.c.
DECISIONS: Final = ("refused", "simulated", "executed as copies")
REFUSED: Final = DECISIONS[0]
SIMULATED: Final = DECISIONS[1]
COPIED: Final = DECISIONS[2]


class Verdict(NamedTuple):
    """A decision; a part that is not known is equal to every value of the other decision."""

    decision: str
    """One of DECISIONS; "": not known."""
    length: int = 0
    """Bytes of the instruction; 0: not known, and of a refused one it is not asked."""
    how: str = ""
    """The error of a refusal, the kind of a simulation, or what is corrected after a copy.

    "": not known.
    """

    def agrees(self, other: Verdict) -> bool:
        """Return whether no known part differs."""
        return (
            (not self.decision or not other.decision or self.decision == other.decision)
            and (not self.length or not other.length or self.length == other.length)
            and (not self.how or not other.how or self.how == other.how)
        )

    def against(self, other: Verdict) -> str:
        """Return this decision as text, with the parts that differ from the other one."""
        parts = [self.decision]
        if self.length and other.length and self.length != other.length:
            parts.append(f"of {counted(self.length, 'byte')}")
        if self.how and other.how and self.how != other.how and self.decision == other.decision:
            parts.append(f"({self.how})")
        return " ".join(filter(None, parts))
