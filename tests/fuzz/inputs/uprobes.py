"""Lines of uprobe_events, and filters of their events."""

from __future__ import annotations

from random import Random
from typing import Final

from emu.isa import ISAS
from tests.fuzz.case import Fuzzer
from tests.fuzz.mutation import damage_words
from trapline.ftrace import definition
from trapline.ftrace.errors import UprobeEventError
from trapline.ftrace.filter import FilterError, parse_filter

_SEEDS: Final = (
    "p:group/event /bin/bash:0x4245c0 name=%ax:s32 text=+0(%di):string",
    "r:bash/readline /bin/bash:0x4245c0(0x10) $retval:u64 +0($retval):ustring",
    "p /lib/libc.so.6:0x1000%return $stack $stack4 $comm \\100 @+0x40:x8 @0x1000",
    "p:e /bin/x:1 a=+0(-8(%sp)):u8[4] b=%cx:b4@2/32 c=+u0(%di):string d=$arg1",
)
_WORDS: Final = (
    *": / = + - ( ) [ ] @ $ % \\ , p r e - 0 1 0x 0xfffffffffffffffff :u8 :s64 :x32 :string :symbol :char [0] [64] [99]"
    " $retval $stack $stack9999 $comm $arg9 %nosuch %return +u b4@2/32 b99@99/99 # name=".split(),
    "²", "$stack5²", "1" * 5000, "(" * 100, "+0(" * 40, " ", "\t", "\n", "\0", "é",
)  # fmt: skip
_FIELDS: Final = {"file": "0x10", "cmd": '"SELECT 1"', "n": "-3"}
_FILTERS: Final = ('file == 16 && cmd ~ "SEL*" || !(n < -2)', "n & 0x10", "cmd != 'x' || file >= 0x7f")
_FILTER_WORDS: Final = (
    *"== != < > <= >= & ~ && || ! ( ) file cmd n nosuch 0 -1 0x 08 'x' \"y*\" * ? [".split(),
    "(" * 3000, "!" * 3000, "9" * 5000, "²", "'", '"', "file == 1 && " * 400, "\\", "[a-", "\0",
)  # fmt: skip


class UprobeDefinitions(Fuzzer):
    """Lines that add an event."""

    name = "uprobes"
    expected = (UprobeEventError,)
    quick = 2000

    def make(self, random: Random) -> bytes:
        """Make an ISA's name and a line."""
        seed = random.choice(_SEEDS)
        pieces = seed.replace(":", " : ").split(" ") if random.random() < 0.5 else list(seed)
        joint = random.choice(("", " "))
        text = joint.join(damage_words(random, pieces, _WORDS))
        return f"{random.choice(list(ISAS))} {text}".encode()

    def run(self, case: bytes) -> str:
        """Read the line, and print it as uprobe_events does."""
        isa, _, line = case.decode().partition(" ")
        return "read" if str(definition.parse(line, ISAS[isa])) else "nothing"


class Filters(Fuzzer):
    """Filters of events."""

    name = "filters"
    expected = (FilterError,)
    quick = 2000

    def make(self, random: Random) -> bytes:
        """Make a filter."""
        pieces = random.choice(_FILTERS).split(" ")
        return " ".join(damage_words(random, pieces, _FILTER_WORDS)).encode()

    def run(self, case: bytes) -> str:
        """Read the filter, and ask it about an event."""
        wanted = parse_filter(case.decode(), frozenset(_FIELDS))(_FIELDS)
        return "wanted" if wanted else "not wanted"
