"""DOF: programs for the kernel, and descriptions of probes by programs of the guest."""

from __future__ import annotations

import json
from abc import abstractmethod
from base64 import b64decode
from collections.abc import Sequence
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


class _Dof(Fuzzer):
    """Damaged DOF."""

    expected = (DofError,)
    quick = 1500

    def __init__(self) -> None:
        self._seeds: Sequence[bytes] = ()

    @abstractmethod
    def seeds(self) -> Sequence[bytes]:
        """Return DOF that is not damaged."""

    def make(self, random: Random) -> bytes:
        """Damage it, most in its header and section table."""
        self._seeds = self._seeds or self.seeds()
        return damage(random, random.choice(self._seeds), among=range(64 + 32 * 12))


class KernelDof(_Dof):
    """Programs in the form of dtrace(1)."""

    name = "dof"

    def seeds(self) -> Sequence[bytes]:
        """Return the DOF of some programs."""
        return [encode(compile_text(text)) for text in _PROGRAMS]

    def run(self, case: bytes) -> str:
        """Decode it."""
        decode(case)
        return "decoded"


class HelperDof(_Dof):
    """DOF of programs that tell of their probes (the guest's `query`)."""

    name = "helper-dof"

    def seeds(self) -> Sequence[bytes]:
        """Return the DOF of a program on each ISA."""
        text = (Path(__file__).parent / "helper_dof.json").read_text()
        return [b64decode(data) for data in json.loads(text).values()]

    def run(self, case: bytes) -> str:
        """Read the probes."""
        if len(case) < 64:
            return "short"
        load_size(case[:64])
        helper_probes(case, _LOADED_AT, _LOADED_AT + 0x1000)
        return "read"
