"""Functions that replace helpers of QEMU's x86 CPU (`emu.engine.qemu.helpers`).

rcpps, rcpss, rsqrtps and rsqrtss raise no floating-point exceptions (Intel SDM volume 2, RCPPS).
QEMU 5 divides, and accrues those of the division.

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


def _horizontal(name: str) -> str:
    original = f'@"library.helper_{name}"'
    return f"""
declare i64 {original}(i64, i64, i64)
define i64 @helper_{name}(i64 %env, i64 %target, i64 %source) nounwind {{
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
    *map(_reciprocal, _RECIPROCALS),
    *map(_horizontal, _HORIZONTAL),
))  # fmt: skip
