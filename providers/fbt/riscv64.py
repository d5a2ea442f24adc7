"""FBT on RISC-V: probes on the instruction that saves ra, and on `ret`, compressed or not.

The scan ignores instruction lengths: it walks in steps of four bytes and tests each word, then its
two halves.  Half an instruction can match, and after a match in an upper half the walk continues
between words.

Source: FreeBSD sys/cddl/dev/fbt/riscv/fbt_isa.c.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from emu.displaced.cpu_core import CpuFlag
from emu.displaced.decision import Displaced, Rule
from emu.displaced.frame import Frame
from emu.isa.disassembly import instructions
from emu.isa.riscv64.instruction import instruction_length
from emu.isa.riscv64.plans import cj_immediate, j_immediate
from emu.isa.riscv64.stub import STUB
from emu.isa.riscv64.traps import C_EBREAK, EBREAK
from emu.support.words import WORD_MASK
from providers.fbt.exclusions import UNWINDER
from providers.fbt.port import ENTRY, RETURN, Exclusion, Function, Port, ProbeTrap, Refusal, ScanResult, Site, handler

_ISA = "FreeBSD sys/cddl/dev/fbt/riscv/fbt_isa.c"


_EBREAK = EBREAK.to_bytes(4, "little")  # FBT_PATCHVAL
_C_EBREAK = C_EBREAK.to_bytes(2, "little")  # FBT_C_PATCHVAL


class _Pattern(NamedTuple):
    """An instruction to be found, in 32 and in 16 bits."""

    mask: int
    value: int
    invop: int
    compressed_mask: int
    compressed_value: int
    compressed_invop: int


def _pattern(code: str, compressed: str) -> _Pattern:
    """Return the pattern of two of the stub's instructions."""
    rows = {row.code: row for row in STUB.rows}
    long, short = rows[code], rows[compressed]
    return _Pattern(long.mask, long.value, STUB.number(code), short.mask, short.value, STUB.number(compressed))


_SAVE_RA = _pattern("SD", "C_SDSP")
_RET = _pattern("RET", "C_RET")

NO_SAVED_RA = Rule(
    "ra is not saved",
    "it has neither sd ra, imm(sp) nor c.sdsp ra: most likely it is a leaf function",
    f"{_ISA}, the search for MATCH_SD and MATCH_C_SDSP",
)
SAVE_OUT_OF_STEP = Rule(
    "ra saved out of step",
    "it has sd ra, imm(sp), but the scan goes in steps of four bytes and misses it",
    f"{_ISA}, instr++ on a pointer to 32 bits",
)
HALF_INSTRUCTION = Rule(
    "half an instruction",
    "these bits are in the middle of another instruction; patching them changes what that one does",
    f"{_ISA}, check_c_sdsp and check_c_ret look at halves, whatever they belong to",
)
OUT_OF_STEP = Rule(
    "out of step",
    "the scan goes in steps of four bytes and misses this return",
    f"{_ISA}, instr++ on a pointer to 32 bits",
)
EARLY_RETURN = Rule(
    "before the entry", "the search for returns starts at the entry site, and this return precedes it", _ISA
)
TAIL_CALL = Rule("tail call", "leaves the function by a jump; only ret is looked for", _ISA)

# Other instructions that leave a function, by mask and value; FBT does not probe them.
_OTHER_RETURNS = (
    (0x00007FFF, 0x00000067, Rule("jr", "a jump through a register: it may be a tail call or a switch", _ISA)),
    (0xFFFFFFFF, 0x10200073, Rule("sret", "returns from a trap", _ISA)),
    (0xFFFFFFFF, 0x30200073, Rule("mret", "returns from a trap", _ISA)),
)
_COMPRESSED_JR = (0xF07F, 0x8002, _OTHER_RETURNS[0][2])

EXCLUSIONS = (
    UNWINDER,
    Exclusion(
        Rule("exception handler", "runs for every breakpoint", f"{_ISA}, fbt_provide_module_function"),
        names=frozenset({
            "cpu_exception_handler",
            "cpu_exception_handler_user",
            "cpu_exception_handler_supervisor",
            "do_trap_supervisor",
        }),
    ),
)  # fmt: skip


def _halves(function: Function) -> tuple[int, ...]:
    """Return the 16-bit halves of the function, and those after it that the scan may read."""
    count = -(-function.size // 2) + 4
    return struct.unpack_from(f"<{count}H", function.code.ljust(2 * count, b"\0"))


def scan(function: Function) -> ScanResult:
    """Find the first instruction that saves ra, and every `ret` after it."""
    halves = _halves(function)
    entry = _find(_SAVE_RA, halves, 0, function, ENTRY)
    if entry is None:
        missed = any(_saves_ra(word, length) for _address, word, length in _instructions(function))
        return ScanResult((), Refusal(function.address, SAVE_OUT_OF_STEP if missed else NO_SAVED_RA))
    sites = [entry]
    index = (entry.address - function.address) // 2
    while (site := _find(_RET, halves, index, function, RETURN)) is not None:
        sites.append(site)
        index = site.roffset // 2 + 2  # four bytes further, after a compressed one too
    return ScanResult(tuple(sites))


def _find(pattern: _Pattern, halves: tuple[int, ...], start: int, function: Function, probe: str) -> Site | None:
    """Return the next match of a pattern, walking from half `start` in steps of two."""
    for index in range(start, -(-function.size // 2), 2):
        word = halves[index] | halves[index + 1] << 16
        found, patch, invop = index, _EBREAK, pattern.invop
        if word & pattern.mask != pattern.value:
            patch, invop = _C_EBREAK, pattern.compressed_invop
            if halves[index] & pattern.compressed_mask != pattern.compressed_value:
                found = index + 1
                if halves[found] & pattern.compressed_mask != pattern.compressed_value:
                    continue
        if 2 * found >= function.size:
            return None
        saved = halves[found] | halves[found + 1] << 16
        roffset = 2 * found if probe == RETURN else 0
        return Site(probe, function.address + 2 * found, patch, saved, invop, roffset)
    return None


def remarks(function: Function, result: ScanResult) -> Iterator[Refusal]:
    """Name exits of the function that are not sites, and sites that are not instructions."""
    sites = {site.address for site in result.sites}
    entry = result.sites[0].address
    for address, word, length in _instructions(function):
        for inside in range(address + 2, address + length, 2):
            if inside in sites:
                yield Refusal(inside, HALF_INSTRUCTION)
        if address in sites:
            continue
        if address < entry and _saves_ra(word, length):
            yield Refusal(address, SAVE_OUT_OF_STEP)
        rule = _remark(function, address, word, length)
        if rule is not None:
            yield Refusal(address, rule if address > entry else EARLY_RETURN)


def _instructions(function: Function) -> Iterator[tuple[int, int, int]]:
    """Yield address, encoding and length of the instructions, decoded from the start."""
    code = function.code.ljust(function.size + 4, b"\0")
    for offset, length in instructions(instruction_length, code, function.size):
        yield function.address + offset, int.from_bytes(code[offset : offset + length], "little"), length


def _saves_ra(word: int, length: int) -> bool:
    if length == 4:
        return word & _SAVE_RA.mask == _SAVE_RA.value
    return word & _SAVE_RA.compressed_mask == _SAVE_RA.compressed_value


def _remark(function: Function, address: int, word: int, length: int) -> Rule | None:
    if word in (_RET.value, _RET.compressed_value):
        return OUT_OF_STEP
    distance = _jump(word, length)
    if distance is not None:
        return None if function.address <= address + distance < function.limit else TAIL_CALL
    others = _OTHER_RETURNS if length == 4 else (_COMPRESSED_JR,)
    return next((rule for mask, value, rule in others if word & mask == value), None)


def _jump(word: int, length: int) -> int | None:
    """Return the distance of a `j` or `c.j`, None for another instruction."""
    if length == 4 and word & 0xFFF == 0x06F:
        return j_immediate(Displaced(word, 0))
    if length == 2 and word & 0xE003 == 0xA001:
        return cj_immediate(Displaced(word, 0))
    return None


def _caller(frame: Frame) -> int:
    """Return the address of the call if it has four bytes: for a compressed one it is wrong by two."""
    return frame.register("ra") - 4 & WORD_MASK


PORT = Port(
    aframes=5,
    exclusions=EXCLUSIONS,
    lookahead=8,
    shares_tracepoints=False,
    scan=scan,
    remarks=remarks,
    handler=partial(handler, caller=_caller, both_results=True),
    entry_caller=_caller,
    return_caller=_caller,
    both_results=True,
    unsound=frozenset({HALF_INSTRUCTION}),
    probe_traps=(
        ProbeTrap(1, "instruction access fault", CpuFlag.BADADDR),
        ProbeTrap(5, "load access fault", CpuFlag.BADADDR),
        ProbeTrap(7, "store access fault", CpuFlag.BADADDR),
        ProbeTrap(12, "instruction page fault", CpuFlag.BADADDR),
        ProbeTrap(13, "load page fault", CpuFlag.BADADDR),
        ProbeTrap(15, "store page fault", CpuFlag.BADADDR),
        ProbeTrap(3, "breakpoint"),
    ),
)
