"""FBT on i386: probes on `push ebp`, and on the `pop ebp` or `leave` before a `ret`.

This is the oldest form of FBT. It does not use int3: a LOCK prefix takes the place of the one-byte
instruction, and with `mov ebp, esp` or `ret` after it, it is an undefined instruction
(`emu.isa.x86.instruction`).

Source: FreeBSD sys/cddl/dev/fbt/x86/fbt_isa.c, its i386 branches; illumos
usr/src/uts/intel/dtrace/fbt.c before int3.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from emu.displaced.decision import Rule
from emu.isa.i386.stub import STUB
from emu.isa.i386.traps import LOCK
from emu.isa.x86.instruction import PROTECTED_MODE
from providers.fbt.port import ENTRY, RETURN, AssemblyHandler, Function, Port, Refusal, ScanResult, Site
from providers.fbt.x86_64 import (
    EXCLUSIONS,
    JUMP_TABLE,
    PROBE_TRAPS,
    SOURCE,
    UNDECODABLE_LATER,
    handler,
    in_jump_table,
    instructions,
    leaves_by_jump,
    top_of_stack,
)

_PUSH_EBP = 0x55  # FBT_PUSHL_EBP
_ENTRIES = (b"\x55\x8b\xec", b"\x55\x89\xe5")  # then FBT_MOVL_ESP_EBP0 and 1, in either encoding
_INVOP_PUSHL_EBP = STUB.number("PUSHL_EBP")
# FBT_POPL_EBP and FBT_LEAVE -> DTRACE_INVOP_POPL_EBP and _LEAVE.
_RETURNS = {0x5D: STUB.number("POPL_EBP"), 0xC9: STUB.number("LEAVE")}
_RETS = frozenset({0xC3, 0xC2})  # FBT_RET, FBT_RET_IMM16
_POINTER = 4
_LONGEST_INSTRUCTION = 15
_instructions = partial(instructions, mode=PROTECTED_MODE)

NO_FRAME = Rule(
    "no frame pointer",
    "it does not begin with push ebp and mov ebp, esp: on i386 the scan looks nowhere else",
    f"{SOURCE}, FBT_PUSHL_EBP and FBT_MOVL_ESP_EBP",
)
BARE_RETURN = Rule(
    "ret alone",
    "no pop ebp or leave comes right before it: FBT patches those, since the ret itself could not be emulated",
    f"{SOURCE}, FBT_POPL_EBP, FBT_LEAVE",
)
_OTHER_RETURNS = (
    (b"\xf3\xc3", Rule("rep ret", "a prefix precedes the c3", SOURCE)),
    (b"\xca", Rule("far return", "returns to another code segment; only c3 and c2 are looked for", SOURCE)),
    (b"\xcb", Rule("far return", "returns to another code segment; only c3 and c2 are looked for", SOURCE)),
    (b"\xcf", Rule("iret", "returns from a trap; only c3 and c2 are looked for", SOURCE)),
)


def scan(function: Function) -> ScanResult:
    """Take the first three bytes as the entry, and find every exit that removes the frame."""
    code = function.code
    if not code.startswith(_ENTRIES):
        return ScanResult((), Refusal(function.address, NO_FRAME))
    sites = [Site(ENTRY, function.address, LOCK, _PUSH_EBP, _INVOP_PUSHL_EBP)]
    for offset, length in _instructions(function):
        if _undoes_frame(code, offset, length) and not in_jump_table(function, offset, _POINTER):
            byte = code[offset]
            # The reported offset is that of the ret.
            sites.append(Site(RETURN, function.address + offset, LOCK, byte, _RETURNS[byte], offset + 1))
    return ScanResult(tuple(sites))


def _undoes_frame(code: bytes, offset: int, length: int) -> bool:
    return length == 1 and code[offset] in _RETURNS and offset + 1 < len(code) and code[offset + 1] in _RETS


def remarks(function: Function, result: ScanResult) -> Iterator[Refusal]:
    """Name each exit of the function that is not a site."""
    taken = {site.address for site in result.sites}
    code, end, before = function.code, 0, -1
    for offset, length in _instructions(function):
        address, end = function.address + offset, offset + length
        if _undoes_frame(code, offset, length):
            if address not in taken:
                yield Refusal(address, JUMP_TABLE)
        elif code[offset] in _RETS and function.address + before not in taken:
            yield Refusal(address, BARE_RETURN)
        else:
            rule = leaves_by_jump(function, offset, length) or next(
                (rule for first, rule in _OTHER_RETURNS if code.startswith(first, offset)), None
            )
            if rule is not None:
                yield Refusal(address, rule)
        before = offset
    if end < function.size:
        yield Refusal(function.address + end, UNDECODABLE_LATER)


_ASSEMBLY = AssemblyHandler(
    pushed=("edi", "esi", "ebp", "esp", "ebx", "edx", "ecx", "eax"),
    returned=("eip", "cs", "eflags"),
    alignment=_POINTER,
    clobbered=("ecx", "edx"),
    answers=(
        (_INVOP_PUSHL_EBP, bytes([_PUSH_EBP])),
        *((answer, bytes([code])) for code, answer in _RETURNS.items()),
        (STUB.number("NOP"), b"\x90"),
    ),
)

PORT = Port(
    aframes=3,
    exclusions=EXCLUSIONS,
    lookahead=_LONGEST_INSTRUCTION,
    shares_tracepoints=True,
    scan=scan,
    remarks=remarks,
    handler=partial(handler, at_return=None),
    entry_caller=top_of_stack,
    return_caller=None,
    probe_traps=PROBE_TRAPS,
    assembly=_ASSEMBLY,
    # The entry saves nothing, and no call is emulated (usr/src/uts/intel/ml/exception.S).
    illumos=_ASSEMBLY._replace(pushed=()),
)
