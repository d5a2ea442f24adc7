"""DOF: programs on their way into the kernel, and what programs of the guest tell of their probes."""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path
from random import Random

from providers.dof.probes import helper_probes
from providers.dof.sections import load_size
from tests.fuzz.case import Fuzzer
from tests.fuzz.mutation import damage
from tests.trapline.d.support import compile_text
from trapline.dof import DofError, decode, encode

_PROGRAMS = (
    'BEGIN { trace(1); printf("%d %s\\n", 2, execname); }',
    'fbt::read:entry /pid == 1/ { @a[execname, "x"] = quantize(arg0); self->t = timestamp; }',
    'tick-1s { i++; s = strjoin("a", "b"); x[1, "q"] = 2; speculate(speculation()); stack(); }',
)
_LOADED_AT = 0x40_0000


class KernelDof(Fuzzer):
    """Programs as dtrace(1) hands them over."""

    name = "dof"
    expected = (DofError,)
    quick = 3000

    def __init__(self) -> None:
        self._seeds: list[bytes] = []

    def make(self, random: Random) -> bytes:
        """Damage a program's DOF, most in its header and section table."""
        if not self._seeds:
            self._seeds = [encode(compile_text(text)) for text in _PROGRAMS]
        return damage(random, random.choice(self._seeds), among=range(64 + 32 * 12))

    def run(self, case: bytes) -> str:
        """Decode it."""
        decode(case)
        return "decoded"


class HelperDof(Fuzzer):
    """DOF of programs that tell of their probes (the guest's `query`)."""

    name = "helper-dof"
    expected = (DofError,)
    quick = 3000

    def __init__(self) -> None:
        self._seeds: list[bytes] = []

    def make(self, random: Random) -> bytes:
        """Damage it, most in its header and section table."""
        if not self._seeds:
            text = (Path(__file__).parent / "helper_dof.json").read_text()
            self._seeds = [b64decode(data) for data in json.loads(text).values()]
        return damage(random, random.choice(self._seeds), among=range(64 + 32 * 12))

    def run(self, case: bytes) -> str:
        """Read the probes."""
        if len(case) < 64:
            return "short"
        load_size(case[:64])
        helper_probes(case, _LOADED_AT, _LOADED_AT + 0x1000)
        return "read"
