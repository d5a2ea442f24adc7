"""FBT on x86-64: probes on `push rbp` and on `ret`.

Source: FreeBSD sys/cddl/dev/fbt/x86/fbt_isa.c.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from emu.displaced.cpu_core import CpuCore, CpuFlag
from emu.displaced.decision import Rule
from emu.displaced.frame import Frame
from emu.isa.x86.instruction import LONG_MODE, Mode
from emu.isa.x86.instruction import instruction_lengths as lengths
from emu.isa.x86_64.stub import STUB
from emu.probe.trap import Handler
from emu.support.words import BadAddressError
from providers.dis_tables import known_lengths
from providers.fbt.port import (
    ENTRY,
    RETURN,
    AssemblyHandler,
    Exclusion,
    Fire,
    Function,
    Port,
    ProbeTrap,
    Refusal,
    ScanResult,
    Site,
)
from providers.fbt.records import TABLE_MASK, RecordTable
from providers.fidelity import Fidelity

SOURCE = "FreeBSD sys/cddl/dev/fbt/x86/fbt_isa.c"

# FBT_PATCHVAL: only the first byte of an instruction is ever overwritten.
INT3 = b"\xcc"
_PUSH_RBP = 0x55  # FBT_PUSHL_EBP
_RET = 0xC3  # FBT_RET
_INVOP_PUSHL_EBP, _INVOP_RET = STUB.number("PUSHL_EBP"), STUB.number("RET")
# Only kinst answers it.
_INVOP_CALL = STUB.number("CALL")
_POINTER = 8
_LONGEST_INSTRUCTION = 15

NO_FRAME = Rule(
    "no frame pointer",
    "it has no push rbp, so nothing marks its entry",
    f"{SOURCE}, the search for FBT_PUSHL_EBP",
)
UNDECODABLE_FIRST = Rule(
    "does not disassemble",
    "bytes that are not an instruction come before any push rbp",
    f"{SOURCE}, dtrace_instr_size() <= 0",
)
UNDECODABLE_LATER = Rule(
    "scan ends",
    "from here the bytes are not an instruction, a jump table perhaps: returns further on are not found",
    f"{SOURCE}, dtrace_instr_size() <= 0",
)
JUMP_TABLE = Rule(
    "jump table",
    "the byte is part of what reads as a pointer into this function, so it may be data and not a ret",
    f"{SOURCE}, the test of the pointers that overlap the site",
)
EARLY_RETURN = Rule(
    "before the entry", "the search for returns starts at the entry site, and this return precedes it", SOURCE
)
TAIL_CALL = Rule("tail call", "leaves the function by a jump; only the byte c3 is a return on x86", SOURCE)

# Other instructions that leave a function, by their first bytes; FBT does not probe them.
_OTHER_RETURNS = (
    (b"\xc2", Rule("ret imm16", "a ret that also pops arguments begins with c2; only c3 is looked for", SOURCE)),
    (b"\xf3\xc3", Rule("rep ret", "a prefix precedes the c3, so the instruction does not begin with it", SOURCE)),
    (b"\xf2\xc3", Rule("bnd ret", "a prefix precedes the c3, so the instruction does not begin with it", SOURCE)),
    (b"\xca", Rule("far return", "returns to another code segment; only c3 is looked for", SOURCE)),
    (b"\xcb", Rule("far return", "returns to another code segment; only c3 is looked for", SOURCE)),
    (b"\x48\xcb", Rule("far return", "returns to another code segment; only c3 is looked for", SOURCE)),
    (b"\x48\xcf", Rule("iretq", "returns from a trap; only c3 is looked for", SOURCE)),
    (b"\x48\x0f\x07", Rule("sysretq", "returns from a system call; only c3 is looked for", SOURCE)),
)
_JUMPS = (0xE9, 0xEB)
# First bytes of all instructions that may leave a function; most of the code has others.
_WAYS_OUT = frozenset({_RET, *_JUMPS, *(first[0] for first, _rule in _OTHER_RETURNS)})

# Source: FreeBSD sys/x86/include/trap.h; sys/cddl/dev/dtrace/amd64/dtrace_subr.c and i386's.
PROBE_TRAPS = (
    ProbeTrap(12, "page fault", CpuFlag.BADADDR),
    ProbeTrap(9, "protection fault", CpuFlag.ILLOP),
    ProbeTrap(3, "breakpoint"),
)

EXCLUSIONS = (
    Exclusion(
        Rule("trap_check", "it wraps DTrace's own fault handler", f"{SOURCE}, fbt_provide_module_function"),
        names=frozenset({"trap_check"}),
    ),
)


def instructions(function: Function, mode: Mode = LONG_MODE) -> Iterator[tuple[int, int]]:
    """Yield (offset, length) of instructions, until the limit or bytes that do not decode."""
    freebsd = function.fidelity is Fidelity.FREEBSD
    offset = 0
    for length in known_lengths(function.code, mode) if freebsd else lengths(function.code, mode):
        if offset >= function.size:
            break
        yield offset, length
        offset += length


def scan(function: Function) -> ScanResult:
    """Find the first `push rbp`, and every `ret` after it."""
    code = function.code
    sites: list[Site] = []
    end = 0
    for offset, length in instructions(function):
        end = offset + length
        # Entry: the first push rbp, wherever it is.  FBT does not require that mov rbp, rsp follows.
        if not sites:
            if code[offset] == _PUSH_RBP:
                sites.append(Site(ENTRY, function.address + offset, INT3, _PUSH_RBP, _INVOP_PUSHL_EBP))
        # Returns: an instruction whose first byte is c3.
        elif code[offset] == _RET and not in_jump_table(function, offset, _POINTER):
            sites.append(Site(RETURN, function.address + offset, INT3, _RET, _INVOP_RET, offset))
    if sites:
        return ScanResult(tuple(sites))
    return ScanResult((), Refusal(function.address + end, NO_FRAME if end >= function.size else UNDECODABLE_FIRST))


def in_jump_table(function: Function, offset: int, size: int) -> bool:
    """Return whether `size` bytes around the site are a pointer into the function.

    Older compilers put the tables of switches into the text, where they are disassembled as code.
    """
    for start in range(offset, offset - size, -1):
        if start < 0:
            break
        if start + size > function.size:
            continue
        pointer = int.from_bytes(function.code[start : start + size], "little")
        if function.address <= pointer < function.limit:
            return True
    return False


def remarks(function: Function, result: ScanResult) -> Iterator[Refusal]:
    """Name each exit of the function that is not a site."""
    taken = {site.address for site in result.sites}
    entry, code = result.sites[0].address, function.code
    end = 0
    for offset, length in instructions(function):
        address, end = function.address + offset, offset + length
        if code[offset] not in _WAYS_OUT:
            continue
        rule = _remark(function, offset, length) if address not in taken else None
        if rule is not None:
            yield Refusal(address, rule if address > entry else EARLY_RETURN)
    if end < function.size:
        yield Refusal(function.address + end, UNDECODABLE_LATER)


def _remark(function: Function, offset: int, length: int) -> Rule | None:
    instruction = function.code[offset : offset + length]
    if instruction[0] == _RET:
        return JUMP_TABLE
    return leaves_by_jump(function, offset, length) or next(
        (rule for first, rule in _OTHER_RETURNS if instruction.startswith(first)), None
    )


def leaves_by_jump(function: Function, offset: int, length: int) -> Rule | None:
    """Return the rule of tail calls if the instruction jumps out of the function."""
    instruction = function.code[offset : offset + length]
    if instruction[0] not in _JUMPS:
        return None
    target = offset + length + int.from_bytes(instruction[1:], "little", signed=True)
    return None if 0 <= target < function.size else TAIL_CALL


def top_of_stack(frame: Frame) -> int:
    """Return the top of the stack.

    At the entry the push has not run, and at the ret the frame no longer exists.
    """
    try:
        return frame.stack_word(0)
    except BadAddressError:
        return 0


def handler(
    table: RecordTable, core: CpuCore, fire: Fire, at_return: Callable[[Frame], int] | None = top_of_stack
) -> Handler:
    """Make FBT's invop handler (fbt_invop).

    `at_return` finds the caller where a function returns; None: its frame still exists, and a stack
    trace finds the caller.
    """
    buckets = table.buckets

    def fbt_invop(address: int, frame: Frame, _scratch: int) -> int:
        record = buckets[address >> 4 & TABLE_MASK]
        while record is not None and record.address != address:
            record = record.hash_next
        if record is None:
            return 0
        # The frame's rip already points at the breakpoint here; FreeBSD moves it back and forth for that.
        rval = record.rval
        while record is not None:  # every probe of the tracepoint, enabled or not: those that are not do nothing
            if record.roffset:
                core.find_caller = at_return
                fire(record.probe_id, record.roffset, frame.results()[0])
            else:
                core.find_caller = top_of_stack
                arg0, arg1, arg2, arg3, arg4 = frame.arguments()
                fire(record.probe_id, arg0, arg1, arg2, arg3, arg4)
            core.find_caller = None
            record = record.trace_next
        return rval

    return fbt_invop


_ANSWERS = (
    (_INVOP_PUSHL_EBP, bytes([_PUSH_RBP])),
    (STUB.number("LEAVE"), b"\xc9"),
    (STUB.number("NOP"), b"\x90"),
    (_INVOP_RET, bytes([_RET])),
)
_ASSEMBLY = AssemblyHandler(
    pushed=None,
    returned=("rip", "cs", "rflags", "rsp", "ss"),
    alignment=16,
    clobbered=("rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11"),
    answers=(*_ANSWERS, (_INVOP_CALL, b"\xe8\x10\0\0\0")),
    pushing=_INVOP_CALL,
)

PORT = Port(
    aframes=3,
    exclusions=EXCLUSIONS,
    lookahead=_LONGEST_INSTRUCTION,
    shares_tracepoints=True,
    scan=scan,
    remarks=remarks,
    handler=handler,
    entry_caller=top_of_stack,
    return_caller=top_of_stack,
    probe_traps=PROBE_TRAPS,
    assembly=_ASSEMBLY,
    # The entry saves nothing, and no call is emulated (usr/src/uts/intel/ml/exception.S).
    illumos=_ASSEMBLY._replace(pushed=(), answers=_ANSWERS, pushing=0),
)
