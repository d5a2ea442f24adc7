"""Arguments of stapsdt markers, as notes of programs have them."""

from __future__ import annotations

from random import Random
from typing import Final

from emu.elf.stapsdt import evaluate, fetch_argument, parse_arguments
from emu.isa import ISAS
from tests.fuzz.case import Fuzzer
from tests.fuzz.mutation import damage_words

_SEEDS: Final = {
    "x86_64": "-4@%edi 8@%rax 4@$-5 8@-8(%rbp) 8@(%rax,%rbx,8) 4@counter(%rip) 8@$sym 2@%ax 1@%ah 8f@%xmm0",
    "i386": "-4@%edi 4@%eax 4@$-5 4@-8(%ebp) 4@(%eax,%ebx,4) 4@counter 4@4(%esp) 2@%ax 1@%ah 4@x@GOTOFF(%ebp)",
    "aarch64": "-4@w0 8@x19 4@5 8@[sp, 16] 8@[x29, -8] 8@[x1, x2, lsl 3] 8@[x0] 4@[x3, :lo12:v]",
    "riscv64": "-4@a0 8@s1 4@5 8@8(sp) 8@-16(s0) 8@0(a5)",
}
_WORDS: Final = (
    *"@ % $ ( ) [ ] , + - * : x f 0 1 8 16 0x10 018 08 -1 rip rax eax al sp x31 w31 lsl sym @PLT @GOTPCREL".split(),
    "²", "٣", "9" * 5000, " ", "", "\0", "\xff", "18446744073709551616",
)  # fmt: skip


class MarkerArguments(Fuzzer):
    """The arguments of a marker: pieces of true ones in new orders."""

    name = "stapsdt"
    quick = 2000

    def make(self, random: Random) -> bytes:
        """Make an ISA's name and a text."""
        isa = random.choice(list(_SEEDS))
        pieces = [random.choice([seed, *seed]) for seed in _SEEDS[isa].split(" ")]
        text = random.choice(("", " ")).join(damage_words(random, pieces, _WORDS))
        return f"{isa} {text}".encode("utf-8", "surrogateescape")

    def run(self, case: bytes) -> str:
        """Read the arguments, and evaluate them."""
        isa, _, text = case.decode().partition(" ")
        for argument in parse_arguments(text, ISAS[isa]):
            value = evaluate(argument, lambda _name: 0x1234, lambda _address, _size: 0x55, lambda *_: 0x1000)
            assert 0 <= value < 1 << 64
            fetch_argument(argument, lambda name: name, lambda _symbol: 0)
        return "read"
