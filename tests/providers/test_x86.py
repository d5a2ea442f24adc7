"""Tables of x86 that keep their decisions: each is what the table would decide anew, whatever follows the bytes."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from emu.displaced.decision import Code
from providers.fasttrap.x86 import LONG_TABLES, PROTECTED_TABLES
from providers.fidelity import Fidelity
from providers.kinst.x86_64 import TABLE as KINST

TABLES = {
    "fasttrap": LONG_TABLES[Fidelity.EXACT],
    "FreeBSD's fasttrap": LONG_TABLES[Fidelity.FREEBSD],
    "fasttrap on i386": PROTECTED_TABLES[Fidelity.EXACT],
    "FreeBSD's fasttrap on i386": PROTECTED_TABLES[Fidelity.FREEBSD],
    "kinst": KINST,
}
# Prefixes and opcodes of the instructions whose plans read their operands.
BEGINNINGS = [b"", b"\x66", b"\x67", b"\x48", b"\x66\x67", b"\x64"]
OPCODES = [bytes.fromhex(one) for one in "e8 e9 eb 0f84 74 ff15 ff2425 ff14 c3 c2 e3".split()]


@pytest.mark.parametrize("name", TABLES)
def test_a_kept_decision_is_the_one_made_anew(name):
    kept, random_ = replace(TABLES[name]), random.Random(name)  # noqa: S311  (nothing is secret)
    for _ in range(3000):
        start = random_.choice(BEGINNINGS) + random_.choice([*OPCODES, b"", b""])
        # Few beginnings with many ends: the same instruction is met with other bytes behind it.
        operands = bytes(random_.choice((0, 1, 0x25)) for _ in range(random_.randrange(6)))
        data = (start + operands + random_.randbytes(15))[:15]
        code = Code(data, random_.getrandbits(40))
        assert kept.decide(code) == replace(TABLES[name]).decide(code), data.hex()
