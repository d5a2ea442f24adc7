"""DIF, the D Intermediate Format: opcodes, operand formats, built-in variables and subroutines.

Numbers are FreeBSD's (sys/cddl/contrib/opensolaris/uts/common/sys/dtrace.h); they are shared by the
compiler, the DIF machine and the disassembler, and this module is data only.

An instruction is 32 bits: opcode 31:24, r1 23:16, r2 15:8, rd (or rs) 7:0.  A branch label is the
low 24 bits.  Indices of variables, integers, strings, subroutines and translators are bits 23:8.
"""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import Final

DIF_VERSION: Final = 2
INTEGER_REGISTERS: Final = 8
TUPLE_REGISTERS: Final = 8
# First id of a variable of the program's own (DIF_VAR_OTHER_UBASE); larger than any built-in.
USER_VARIABLE_BASE: Final = 0x500
USER_VARIABLE_MAX: Final = 0xFFFF


class Op(IntEnum):
    """DIF opcodes."""

    OR = 1
    XOR = 2
    AND = 3
    SLL = 4
    SRL = 5
    SUB = 6
    ADD = 7
    MUL = 8
    SDIV = 9
    UDIV = 10
    SREM = 11
    UREM = 12
    NOT = 13
    MOV = 14
    CMP = 15
    TST = 16
    BA = 17
    BE = 18
    BNE = 19
    BG = 20
    BGU = 21
    BGE = 22
    BGEU = 23
    BL = 24
    BLU = 25
    BLE = 26
    BLEU = 27
    LDSB = 28
    LDSH = 29
    LDSW = 30
    LDUB = 31
    LDUH = 32
    LDUW = 33
    LDX = 34
    RET = 35
    NOP = 36
    SETX = 37
    SETS = 38
    SCMP = 39
    LDGA = 40
    LDGS = 41
    STGS = 42
    LDTA = 43
    LDTS = 44
    STTS = 45
    SRA = 46
    CALL = 47
    PUSHTR = 48
    PUSHTV = 49
    POPTS = 50
    FLUSHTS = 51
    LDGAA = 52
    LDTAA = 53
    STGAA = 54
    STTAA = 55
    LDLS = 56
    STLS = 57
    ALLOCS = 58
    COPYS = 59
    STB = 60
    STH = 61
    STW = 62
    STX = 63
    ULDSB = 64
    ULDSH = 65
    ULDSW = 66
    ULDUB = 67
    ULDUH = 68
    ULDUW = 69
    ULDX = 70
    RLDSB = 71
    RLDSH = 72
    RLDSW = 73
    RLDUB = 74
    RLDUH = 75
    RLDUW = 76
    RLDX = 77
    XLATE = 78
    XLARG = 79


class Format(Enum):
    """The format of an instruction's operands."""

    R3 = "r1, r2, rd"
    R2 = "r1, rd"
    C = "r1, r2"
    T = "r1"
    B = "label"
    L = "[r1], rd"
    W = "r1, [rd]"
    RT = "rd"
    NONE = ""
    I = "integer, rd"  # noqa: E741  the reference's letter
    S = "string, rd"
    A = "array r1 [r2], rd"
    V = "variable, rd"
    SV = "rs, variable"
    K = "subroutine, rd"
    P = "type, size r2, rs"
    X = "xlref, rd"


FORMATS: Final[dict[Op, Format]] = {
    Op.OR: Format.R3,
    Op.XOR: Format.R3,
    Op.AND: Format.R3,
    Op.SLL: Format.R3,
    Op.SRL: Format.R3,
    Op.SUB: Format.R3,
    Op.ADD: Format.R3,
    Op.MUL: Format.R3,
    Op.SDIV: Format.R3,
    Op.UDIV: Format.R3,
    Op.SREM: Format.R3,
    Op.UREM: Format.R3,
    Op.NOT: Format.R2,
    Op.MOV: Format.R2,
    Op.CMP: Format.C,
    Op.TST: Format.T,
    Op.BA: Format.B,
    Op.BE: Format.B,
    Op.BNE: Format.B,
    Op.BG: Format.B,
    Op.BGU: Format.B,
    Op.BGE: Format.B,
    Op.BGEU: Format.B,
    Op.BL: Format.B,
    Op.BLU: Format.B,
    Op.BLE: Format.B,
    Op.BLEU: Format.B,
    Op.LDSB: Format.L,
    Op.LDSH: Format.L,
    Op.LDSW: Format.L,
    Op.LDUB: Format.L,
    Op.LDUH: Format.L,
    Op.LDUW: Format.L,
    Op.LDX: Format.L,
    Op.RET: Format.RT,
    Op.NOP: Format.NONE,
    Op.SETX: Format.I,
    Op.SETS: Format.S,
    Op.SCMP: Format.C,
    Op.LDGA: Format.A,
    Op.LDGS: Format.V,
    Op.STGS: Format.SV,
    Op.LDTA: Format.A,
    Op.LDTS: Format.V,
    Op.STTS: Format.SV,
    Op.SRA: Format.R3,
    Op.CALL: Format.K,
    Op.PUSHTR: Format.P,
    Op.PUSHTV: Format.P,
    Op.POPTS: Format.NONE,
    Op.FLUSHTS: Format.NONE,
    Op.LDGAA: Format.V,
    Op.LDTAA: Format.V,
    Op.STGAA: Format.SV,
    Op.STTAA: Format.SV,
    Op.LDLS: Format.V,
    Op.STLS: Format.SV,
    Op.ALLOCS: Format.R2,
    Op.COPYS: Format.R3,
    Op.STB: Format.W,
    Op.STH: Format.W,
    Op.STW: Format.W,
    Op.STX: Format.W,
    Op.ULDSB: Format.L,
    Op.ULDSH: Format.L,
    Op.ULDSW: Format.L,
    Op.ULDUB: Format.L,
    Op.ULDUH: Format.L,
    Op.ULDUW: Format.L,
    Op.ULDX: Format.L,
    Op.RLDSB: Format.L,
    Op.RLDSH: Format.L,
    Op.RLDSW: Format.L,
    Op.RLDUB: Format.L,
    Op.RLDUH: Format.L,
    Op.RLDUW: Format.L,
    Op.RLDX: Format.L,
    Op.XLATE: Format.X,
    Op.XLARG: Format.X,
}


class Var(IntEnum):
    """Built-in variables (DIF_VAR_*)."""

    ARGS = 0x0
    REGS = 0x1
    UREGS = 0x2
    VMREGS = 0x3
    CURTHREAD = 0x100
    TIMESTAMP = 0x101
    VTIMESTAMP = 0x102
    IPL = 0x103
    EPID = 0x104
    ID = 0x105
    ARG0 = 0x106
    ARG1 = 0x107
    ARG2 = 0x108
    ARG3 = 0x109
    ARG4 = 0x10A
    ARG5 = 0x10B
    ARG6 = 0x10C
    ARG7 = 0x10D
    ARG8 = 0x10E
    ARG9 = 0x10F
    STACKDEPTH = 0x110
    CALLER = 0x111
    PROBEPROV = 0x112
    PROBEMOD = 0x113
    PROBEFUNC = 0x114
    PROBENAME = 0x115
    PID = 0x116
    TID = 0x117
    EXECNAME = 0x118
    ZONENAME = 0x119
    WALLTIMESTAMP = 0x11A
    USTACKDEPTH = 0x11B
    UCALLER = 0x11C
    PPID = 0x11D
    UID = 0x11E
    GID = 0x11F
    ERRNO = 0x120
    EXECARGS = 0x121
    JID = 0x122
    JAILNAME = 0x123
    CPU = 0x200


class Subr(IntEnum):
    """Subroutines (DIF_SUBR_*), FreeBSD's numbers."""

    RAND = 0
    MUTEX_OWNED = 1
    MUTEX_OWNER = 2
    MUTEX_TYPE_ADAPTIVE = 3
    MUTEX_TYPE_SPIN = 4
    RW_READ_HELD = 5
    RW_WRITE_HELD = 6
    RW_ISWRITER = 7
    COPYIN = 8
    COPYINSTR = 9
    SPECULATION = 10
    PROGENYOF = 11
    STRLEN = 12
    COPYOUT = 13
    COPYOUTSTR = 14
    ALLOCA = 15
    BCOPY = 16
    COPYINTO = 17
    MSGDSIZE = 18
    MSGSIZE = 19
    GETMAJOR = 20
    GETMINOR = 21
    DDI_PATHNAME = 22
    STRJOIN = 23
    LLTOSTR = 24
    BASENAME = 25
    DIRNAME = 26
    CLEANPATH = 27
    STRCHR = 28
    STRRCHR = 29
    STRSTR = 30
    STRTOK = 31
    SUBSTR = 32
    INDEX = 33
    RINDEX = 34
    HTONS = 35
    HTONL = 36
    HTONLL = 37
    NTOHS = 38
    NTOHL = 39
    NTOHLL = 40
    INET_NTOP = 41
    INET_NTOA = 42
    INET_NTOA6 = 43
    TOUPPER = 44
    TOLOWER = 45
    MEMREF = 46
    SX_SHARED_HELD = 47
    SX_EXCLUSIVE_HELD = 48
    SX_ISEXCLUSIVE = 49
    MEMSTR = 50
    GETF = 51
    JSON = 52
    STRTOLL = 53


def encode_registers(op: Op, r1: int, r2: int, rd: int) -> int:
    """Encode an instruction with three register fields."""
    return op << 24 | r1 << 16 | r2 << 8 | rd


def encode_branch(op: Op, label: int) -> int:
    """Encode a branch to instruction index `label`."""
    return op << 24 | label


def encode_index(op: Op, index: int, register: int) -> int:
    """Encode an instruction with a 16-bit table or variable index and one register."""
    return op << 24 | index << 8 | register


def opcode(instruction: int) -> int:
    """Return bits 31:24."""
    return instruction >> 24 & 0xFF


def r1(instruction: int) -> int:
    """Return bits 23:16."""
    return instruction >> 16 & 0xFF


def r2(instruction: int) -> int:
    """Return bits 15:8."""
    return instruction >> 8 & 0xFF


def rd(instruction: int) -> int:
    """Return bits 7:0, the destination (or the source of a store to a variable)."""
    return instruction & 0xFF


def label(instruction: int) -> int:
    """Return bits 23:0, the branch target."""
    return instruction & 0xFFFFFF


def index(instruction: int) -> int:
    """Return bits 23:8: variable, integer, string, subroutine or translator index."""
    return instruction >> 8 & 0xFFFF
