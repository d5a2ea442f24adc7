"""Machine code finds room for records itself: with gaps, in rings, in speculations."""

from __future__ import annotations

from collections import Counter

import pytest

pytest.importorskip("llvmlite")

from emu.isa import ISAS
from trapline.framework.native.upcall_code import Upcall

# Records of 4 and of 8 bytes, and with gaps, so that each clause begins where the one before is not aligned for it.
PROGRAM = """
syscall:::entry { trace((int)arg0); }
syscall:::entry { trace(arg0 + 1); }
syscall:::entry /arg0 & 1/ { trace((char)arg0); trace(probefunc); }
syscall:::return { trace((short)arg1); trace(timestamp); }
fbt::malloc:entry { trace((int)arg0); }
fbt::malloc:return { trace(arg0); trace(arg1); }
END { trace(1); trace(0x123456789); }
"""
SPECULATIVE = """
syscall:::entry { self->s = speculation(); }
syscall:::entry /self->s/ { speculate(self->s); trace((int)arg0); }
syscall:::entry /self->s/ { speculate(self->s); trace(timestamp); trace((char)arg0); }
syscall:::return { trace((int)arg1); }
syscall:::return /self->s && arg1 & 1/ { commit(self->s); self->s = 0; }
syscall:::return /self->s/ { discard(self->s); self->s = 0; }
"""
COMMAND = "getpid 100; cat /etc/motd; getpid 99"
BUFFERS = "policy=switch", "policy=fill", "policy=ring", "policy=ring size=4k", "policy=fill size=6k"
ENGINES = ("reference", "native")


def upcalls(asked):
    """The number of upcalls of each kind."""
    found = Counter()
    for (which, _operand), count in asked.items():
        found[Upcall(which)] += count
    return found


@pytest.mark.exhaustive
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize(
    "options", ["policy=switch", "policy=fill", "policy=ring", "policy=ring size=4k", "policy=fill size=6k"]
)
def test_records_are_the_same_and_python_is_asked_at_the_end_of_a_buffer_alone(isa, options, shown):
    flags = [part for one in options.split() for part in ("-x", f"buf{one}")]
    text, asked = shown("--isa", isa, "-qn", PROGRAM, *flags, "-c", COMMAND, engines=ENGINES)
    assert len(text) > 500
    # A ring of 4 KiB is passed some ten times; a buffer that is full is not asked again before tracing ends.
    assert upcalls(asked)[Upcall.RESERVE] <= (60 if "ring size" in options else 4)


@pytest.mark.parametrize("isa", ISAS)
def test_a_speculation_enters_python_for_none_of_its_records(isa, shown):
    text, asked = shown("--isa", isa, "-qn", SPECULATIVE, "-x", "nspec=16", "-c", COMMAND, engines=ENGINES)
    assert len(text) > 500
    found = upcalls(asked)
    assert not {Upcall.SPECULATE, Upcall.COMMIT, Upcall.DISCARD, Upcall.RESERVE, Upcall.SUBROUTINE} & found.keys()
