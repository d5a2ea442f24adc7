"""FBT on AArch64: probes on the instruction that opens the frame, on `ret`, and on tail calls.

Source: FreeBSD sys/cddl/dev/fbt/aarch64/fbt_isa.c; masks and values:
sys/cddl/contrib/opensolaris/uts/common/sys/dtrace.h.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import partial

from emu.displaced.cpu_core import CpuFlag
from emu.displaced.decision import Rule
from emu.displaced.frame import Frame
from emu.isa.aarch64.stub import STUB
from emu.isa.aarch64.traps import BRK_DTRACE, NOP_WORD
from providers.fbt.exclusions import UNWINDER
from providers.fbt.port import ENTRY, RETURN, Exclusion, Function, Port, ProbeTrap, Refusal, ScanResult, Site, handler

_ISA = "FreeBSD sys/cddl/dev/fbt/aarch64/fbt_isa.c"

# FBT_PATCHVAL.
BRK = BRK_DTRACE.to_bytes(4, "little")
_BTI_MASK, _BTI = 0xFFFFFF3F, 0xD503241F  # bti, with or without c and j
_RET = 0xD65F03C0
_PAIR_MASK, _STP = 0xFFC00000, 0xA9800000  # stp of X registers, pre-indexed
_SUB_MASK, _SUB = 0xFFC00000, 0xD1000000  # sub of a 64-bit immediate, unshifted
_B_MASK, _B, _B_DATA = 0xFF000000, 0x14000000, 0x00FFFFFF
_SP = 31
_INVOP_STP, _INVOP_RET, _INVOP_B, _INVOP_SUB = (STUB.number(code) for code in ("STP", "RET", "B", "SUB"))

NO_FRAME = Rule(
    "no frame",
    "it does not begin with a nop, and has neither stp xt1, xt2, [sp, #imm]! nor sub sp, sp, #imm",
    f"{_ISA}, the search for STP_64 and SUB_INSTR",
)
FALSE_TAIL_CALL = Rule(
    "not a tail call",
    "stays in the function, but the distance is multiplied by four once too often: the return probe fires on it",
    f"{_ISA}, target = instr + offs",
)
BACKWARD_TAIL_CALL = Rule(
    "backward tail call",
    "leaves the function by a branch, but B_MASK has two bits of the distance too many and matches forward ones only",
    f"{_ISA}, B_MASK",
)
EARLY_RETURN = Rule(
    "before the entry", "the search for returns starts at the entry site, and this return precedes it", _ISA
)

_ANY_B_MASK, _ANY_B = 0xFC000000, 0x14000000

# Other instructions that leave a function, by mask and value; FBT does not probe them.
_OTHER_RETURNS = (
    (0xFFFFFC1F, 0xD65F0000, Rule("ret xn", "returns through a register other than x30", _ISA)),
    (0xFFFFFBFF, 0xD65F0BFF, Rule("retaa", "an authenticating return has another encoding than ret", _ISA)),
    (0xFFFFFC1F, 0xD61F0000, Rule("br", "a jump through a register: it may be a tail call or a switch", _ISA)),
    (0xFFFFFFFF, 0xD69F03E0, Rule("eret", "returns from an exception", _ISA)),
)

EXCLUSIONS = (
    UNWINDER,
    Exclusion(
        Rule(
            "exception handler",
            "runs for every breakpoint; the scanner answers 1, and that ends the walk of the module's symbols",
            f"{_ISA}, fbt_provide_module_function",
        ),
        names=frozenset({"handle_el1h_sync", "do_el1h_sync"}),
        ends_walk=True,
    ),
)


def _words(function: Function) -> tuple[int, ...]:
    """Return the 32-bit words that begin in the function."""
    count = -(-function.size // 4)
    return struct.unpack_from(f"<{count}I", function.code.ljust(4 * count, b"\0"))


def scan(function: Function) -> ScanResult:
    """Find the instruction that opens the frame, then every `ret` and every tail call."""
    words = _words(function)
    entry = _entry(words)
    if entry is None:
        return ScanResult((), Refusal(function.address, NO_FRAME))
    # The tag is SUB or STP, also for the nop; it is not used, because the stub decodes the saved word.
    rval = _INVOP_SUB if words[entry] & _SUB_MASK == _SUB else _INVOP_STP
    sites = [Site(ENTRY, function.address + 4 * entry, BRK, words[entry], rval)]
    for index in range(entry, len(words)):
        word = words[index]
        if word == _RET:
            rval = _INVOP_RET
        elif word & _B_MASK == _B and 4 * index + 16 * (word & _B_DATA) >= function.size:
            # The distance in words is multiplied by 4 and then added to a pointer to words, so it is multiplied by 16
            # in all.
            rval = _INVOP_B
        else:
            continue
        sites.append(Site(RETURN, function.address + 4 * index, BRK, word, rval, 4 * index))
    return ScanResult(tuple(sites))


def _entry(words: tuple[int, ...]) -> int | None:
    """Return the index of the entry site."""
    first = 0
    # A bti stays: an indirect call must find it.
    if words and words[0] & _BTI_MASK == _BTI:
        first = 1
    # A nop at the start marks an assembly function made for FBT.
    if words[first : first + 1] == (NOP_WORD,):
        return first
    # Otherwise it is the instruction that opens the frame.  One with another register does not end the search.
    for index in range(first, len(words)):
        word = words[index]
        if word & _PAIR_MASK == _STP and word >> 5 & 31 == _SP:
            return index
        if word & _SUB_MASK == _SUB and word & 31 == _SP and word >> 5 & 31 == _SP:
            return index
    return None


def remarks(function: Function, result: ScanResult) -> Iterator[Refusal]:
    """Name each exit of the function that is not a site, and each site that is not an exit."""
    taken = {site.address for site in result.sites}
    entry = result.sites[0].address
    for index, word in enumerate(_words(function)):
        address = function.address + 4 * index
        rule = _remark(function, index, word, is_site=address in taken)
        if rule is not None:
            yield Refusal(address, rule if address > entry else EARLY_RETURN)


def _remark(function: Function, index: int, word: int, *, is_site: bool) -> Rule | None:
    if word & _ANY_B_MASK == _ANY_B:
        distance = (word & 0x03FFFFFF ^ 0x02000000) - 0x02000000
        inside = 0 <= 4 * (index + distance) < function.size
        if inside == is_site:
            return FALSE_TAIL_CALL if is_site else BACKWARD_TAIL_CALL
        return None
    if is_site:
        return None
    if word == _RET:
        return EARLY_RETURN
    return next((rule for mask, value, rule in _OTHER_RETURNS if word & mask == value), None)


def _caller(frame: Frame) -> int:
    """Return the probed instruction itself: FreeBSD's port passes the address of the breakpoint."""
    return frame.register("pc")


PORT = Port(
    aframes=4,
    exclusions=EXCLUSIONS,
    lookahead=3,
    shares_tracepoints=False,
    scan=scan,
    remarks=remarks,
    handler=partial(handler, caller=_caller),
    entry_caller=_caller,
    return_caller=_caller,
    probe_traps=(ProbeTrap(0x25, "data abort", CpuFlag.BADADDR), ProbeTrap(0x3C, "breakpoint")),
)
