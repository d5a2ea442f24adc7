"""Functions that replace helpers of QEMU's x86 CPU (`emu.engine.qemu.helpers`).

rcpps, rcpss, rsqrtps and rsqrtss raise no floating-point exceptions (Intel SDM volume 2, RCPPS).
QEMU 5 divides, and accrues those of the division.  roundps and its relatives are exact where bit 3
of their number says so (ROUNDPS); QEMU 5 accrues the inexact exception.

SSSE3's instructions on registers of MMX use the x87's registers, as all of MMX: the stack's top
becomes 0, and no register is empty (SDM volume 1, 9.5.1).  QEMU 5 leaves that out.

ldmxcsr of reserved bits is #GP (volume 2, LDMXCSR), and fldcw does not change those of the x87's
control word (volume 1, 8.1.5).  QEMU 5 takes both.

fisttp of a number that does not fit stores the integer indefinite, all zeros but for the sign (SDM
volume 2, FISTTP).  QEMU 5 stores the largest number.

Horizontal additions and subtractions of a register with itself (`phaddw %mm0,%mm0`): QEMU 5 writes
the lower half of the result before it has read the operand for the upper half.
"""

from __future__ import annotations

from typing import Final

from emu.isa.x86.registers import OFFSETS

_RECIPROCALS: Final = ("rcpps", "rcpss", "rsqrtps", "rsqrtss")

_HORIZONTAL: Final = tuple(
    f"ph{operation}_{registers}"
    for operation in ("addw", "addd", "addsw", "subw", "subd", "subsw")
    for registers in ("mmx", "xmm")
)
_SHARED: Final = tuple(
    f"{name}_mmx"
    for name in ("pshufb", "pmaddubsw", "pmulhrsw", *(f"p{kind}{size}" for kind in ("sign", "abs") for size in "bwd"))
)
_ALIGNED: Final = "palignr_mmx"
_ROUNDING: Final = tuple(f"round{size}_xmm" for size in ("ps", "pd", "ss", "sd"))
_INVALID, _INEXACT, _EXACT = 1, 0x20, 8
_PROTECTION: Final = 13
_RESERVED: Final = 0xFFFF_0000
_KNOWN_CONTROL, _SET_CONTROL = 0x1F3F, 0x40


def _reciprocal(name: str) -> str:
    original = f'@"library.helper_{name}"'
    return f"""
declare i64 {original}(i64, i64, i64)
define i64 @helper_{name}(i64 %env, i64 %target, i64 %source) nounwind {{
  %flags.at = add i64 %env, {OFFSETS["SSE_FLAGS"]}
  %flags.p = inttoptr i64 %flags.at to ptr
  %flags = load i8, ptr %flags.p
  call i64 {original}(i64 %env, i64 %target, i64 %source)
  store i8 %flags, ptr %flags.p
  ret i64 0
}}
"""


def _rounded(name: str) -> str:
    original = f'@"library.helper_{name}"'
    return f"""
declare i64 {original}(i64, i64, i64, i64)
define i64 @helper_{name}(i64 %env, i64 %target, i64 %source, i64 %mode) nounwind {{
  %flags.at = add i64 %env, {OFFSETS["SSE_FLAGS"]}
  %flags.p = inttoptr i64 %flags.at to ptr
  %before = load i8, ptr %flags.p
  call i64 {original}(i64 %env, i64 %target, i64 %source, i64 %mode)
  %flags = load i8, ptr %flags.p
  %exact = and i64 %mode, {_EXACT}
  %keep = icmp eq i64 %exact, 0
  %kept = and i8 %flags, {0xFF & ~_INEXACT}
  %old = and i8 %before, {_INEXACT}
  %suppressed = or i8 %kept, %old
  %new = select i1 %keep, i8 %flags, i8 %suppressed
  store i8 %new, ptr %flags.p
  ret i64 0
}}
"""


def _truncated(name: str, bits: int) -> str:
    original = f'@"library.helper_{name}"'
    return f"""
declare i64 {original}(i64)
define i64 @helper_{name}(i64 %env) nounwind {{
  %flags.at = add i64 %env, {OFFSETS["X87_FLAGS"]}
  %flags.p = inttoptr i64 %flags.at to ptr
  %before = load i8, ptr %flags.p
  store i8 0, ptr %flags.p
  %number = call i64 {original}(i64 %env)
  %flags = load i8, ptr %flags.p
  %all = or i8 %before, %flags
  store i8 %all, ptr %flags.p
  %invalid = and i8 %flags, {_INVALID}
  %fits = icmp eq i8 %invalid, 0
  %result = select i1 %fits, i64 %number, i64 {-1 << bits - 1}
  ret i64 %result
}}
"""


def _shared(name: str, parameters: str = "i64 %env, i64 %target, i64 %source") -> str:
    original = f'@"library.helper_{name}"'
    return f"""
declare i64 {original}({", ".join("i64" for _ in parameters.split(","))})
define i64 @helper_{name}({parameters}) nounwind {{
  call i64 @"library.helper_enter_mmx"(i64 %env)
  call i64 {original}({parameters})
  ret i64 0
}}
"""


_CONTROL: Final = f"""
declare i64 @"library.helper_fldcw"(i64, i64)
define i64 @helper_fldcw(i64 %env, i64 %value) nounwind {{
  %known = and i64 %value, {_KNOWN_CONTROL}
  %whole = or i64 %known, {_SET_CONTROL}
  call i64 @"library.helper_fldcw"(i64 %env, i64 %whole)
  ret i64 0
}}
declare i64 @"library.helper_ldmxcsr"(i64, i64)
declare i64 @"library.raise_exception_err_ra"(i64, i64, i64, i64)
declare ptr @llvm.returnaddress(i32)
define i64 @helper_ldmxcsr(i64 %env, i64 %value) nounwind {{
  %reserved = and i64 %value, {_RESERVED}
  %valid = icmp eq i64 %reserved, 0
  br i1 %valid, label %load, label %refuse
load:
  call i64 @"library.helper_ldmxcsr"(i64 %env, i64 %value)
  ret i64 0
refuse:
  ; The address of the call, as QEMU takes it (GETPC).
  %back.p = call ptr @llvm.returnaddress(i32 0)
  %back = ptrtoint ptr %back.p to i64
  %call = sub i64 %back, 2
  call i64 @"library.raise_exception_err_ra"(i64 %env, i64 {_PROTECTION}, i64 0, i64 %call)
  unreachable
}}
"""


def _horizontal(name: str) -> str:
    original = f'@"library.helper_{name}"'
    enter = 'call i64 @"library.helper_enter_mmx"(i64 %env)' if name.endswith("_mmx") else ""
    return f"""
declare i64 {original}(i64, i64, i64)
define i64 @helper_{name}(i64 %env, i64 %target, i64 %source) nounwind {{
  {enter}
  %copy = alloca [2 x i64], align 16
  %copy.at = ptrtoint ptr %copy to i64
  %same = icmp eq i64 %target, %source
  %source.p = inttoptr i64 %source to ptr
  call void @llvm.memcpy.p0.p0.i64(ptr %copy, ptr %source.p, i64 16, i1 false)
  %operand = select i1 %same, i64 %copy.at, i64 %source
  call i64 {original}(i64 %env, i64 %target, i64 %operand)
  ret i64 0
}}
"""


HELPERS: Final = "\n".join((
    "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
    'declare i64 @"library.helper_enter_mmx"(i64)',
    _CONTROL,
    _truncated("fisttl_ST0", 32),
    _truncated("fisttll_ST0", 64),
    *map(_rounded, _ROUNDING),
    *map(_shared, _SHARED),
    _shared(_ALIGNED, "i64 %env, i64 %target, i64 %source, i64 %shift"),
    *map(_reciprocal, _RECIPROCALS),
    *map(_horizontal, _HORIZONTAL),
))  # fmt: skip
