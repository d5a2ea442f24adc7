"""Tables of instructions and their effects, in text files that people can read and write (.ins).

    [bytes] "disassembly" register=value, [address]=value => register=value, [address]=value, pc=+4;
        FreeBSD => ...;
    "assembly" register=value, [address]=value => ...;

The bytes may be omitted: then the text is assembled.  They are given if the encoding matters.

Before the arrow there is the state in which the instruction runs, at `CODE`.  After it there is
everything that the instruction changes; all other registers and words of memory keep their values.
pc=+n is n bytes on.  Registers have their names in `Isa.registers`, "pc" is the pc on every ISA;
[address] is a word of the ISA's.

The second line is present if FreeBSD's emulation differs from a CPU: a quirk.  "=> refused" says
that there is no emulation.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from emu.assembly import machine_code
from emu.isa import ISAS

CODE = 0x10000
ISA_NAMES = ("x86_64", "aarch64", "riscv64", "i386")

_ROW = re.compile(r'^(?:\[([0-9a-f]+)\] )?"([^"]+)" ?(.*?) ?=> (.*);$')
_QUIRK = re.compile(r"^    FreeBSD => (.*);$")
_REFUSED = "refused"


@dataclass(frozen=True)
class State:
    """Registers and words of memory, by name and by address."""

    registers: dict[str, int]
    memory: dict[int, int]


@dataclass
class Case:
    """One row of a table; `after` is None where the table of displaced instructions refuses."""

    isa: str
    line: int
    code: bytes
    text: str
    before: State
    after: State | None
    freebsd: State | None = None

    def __str__(self) -> str:
        return f"{self.isa}:{self.line}-{self.text}".replace(" ", "_")


def _state(text: str, pc: str) -> State:
    state = State({}, {})
    for item in filter(None, text.split(", ")):
        place, value = item.split("=")
        number = CODE + int(value[1:], 0) if value.startswith("+") else int(value, 0)
        if place.startswith("["):
            state.memory[int(place[1:-1], 0)] = number
        else:
            state.registers[pc if place == "pc" else place] = number
    return state


def cases(isa: str, pc: str) -> list[Case]:
    """Read the table of an ISA whose pc register is called `pc`."""
    found: list[Case] = []
    for number, line in enumerate(Path(__file__).with_name(f"{isa}.ins").read_text().splitlines(), 1):
        if row := _ROW.match(line):
            code, text, before, after = row.groups()
            outcome = None if after == _REFUSED else _state(after, pc)
            data = bytes.fromhex(code) if code else machine_code(ISAS[isa], text, CODE)
            found.append(Case(isa, number, data, text, _state(before, pc), outcome))
        elif quirk := _QUIRK.match(line):
            found[-1].freebsd = _state(quirk.group(1), pc)
        elif line and not line.startswith("#"):
            raise ValueError(f"{isa}.ins:{number}: {line!r} is neither a row, nor a quirk, nor a comment")
    return found
