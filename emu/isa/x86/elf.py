"""The operand syntax of x86 assembly (AT&T), and the names of registers in every width."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Final

from emu.isa.elf_format import NUMBER, InRegister

_WIDE: Final = ("rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp")
# gcc puts a value of two words into a register and the next one in its order (REGISTER_NAMES of i386.h).
_ORDER: Final = ("ax", "dx", "cx", "bx", "si", "di", "bp")
_HIGH: Final = {low: f"e{high}" for low, high in pairwise(_ORDER)}
# Names that need a REX prefix.
_REX_ONLY: Final = frozenset({"sil", "dil", "bpl", "spl"})

CONSTANT: Final = re.compile(rf"\$({NUMBER})")
REGISTER: Final = re.compile(r"%(\w+)", re.ASCII)
# segment: displacement + symbol@relation + number
_SYMBOL: Final = r"(?P<symbol>[A-Za-z_.][A-Za-z0-9_.$]*)(?:@(?P<relation>[A-Za-z]+))?"
DISPLACEMENT: Final = (
    rf"(?:%(?P<segment>[fg]s):)?(?P<displacement>{NUMBER})?\+?(?:{_SYMBOL})?(?:\+?(?P<after>{NUMBER}))?"
)
# (base, index, scale), or nothing: an address
PARTS: Final = r"(?:\((?:%(?P<base>[a-z0-9]+))?(?:,%(?P<index>[a-z0-9]+)(?:,(?P<scale>[1248]))?)?\))?"
MEMORY: Final = re.compile(f"(?!$){DISPLACEMENT}{PARTS}")


def long_mode_names() -> Mapping[str, InRegister]:
    """Return the operand of each register's name in 64-bit code."""
    names = {"rip": InRegister("rip"), "eip": InRegister("rip")}
    for wide in _WIDE:
        letters = wide[1:]
        for name in (wide, "e" + letters, letters):
            names[name] = InRegister(wide)
        if letters[1] == "x":
            names[letters[0] + "l"] = InRegister(wide)
            names[letters[0] + "h"] = InRegister(wide, 8)
        else:
            names[letters + "l"] = InRegister(wide)
    for number in range(8, 16):
        for suffix in ("", "d", "w", "b"):
            names[f"r{number}{suffix}"] = InRegister(f"r{number}")
    return names


def protected_mode_names() -> Mapping[str, InRegister]:
    """Return the operand of each register's name in 32-bit code."""
    found = {name: register for name, register in long_mode_names().items() if name[0] != "r" and name not in _REX_ONLY}
    return {
        name: InRegister("e" + register.register[1:], register.shift, _HIGH.get(register.register[1:], ""))
        for name, register in found.items()
        if register.register[1:].isalpha()
    }
