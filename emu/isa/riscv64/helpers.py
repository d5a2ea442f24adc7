"""Numbers of single precision in registers of 64 bits: NaN-boxing, which QEMU 5 does in flw only.

An operand whose upper half is not all ones counts as the canonical NaN, and a result has all ones
there (RISC-V ISA, "NaN Boxing of Narrower Values").  Most operations are functions of QEMU's, its
helpers, which are replaced by those here; the others are corrected (`emu.isa.riscv64.corrections`).
The minimum and the maximum of a NaN and a number are the number, also of a signalling NaN (F
extension, version 2.2); QEMU 5 has version 2.1.  An infinity by zero is invalid in a fused
multiplication, too, when a NaN is added; QEMU 5 accrues no exception then.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

# By the helper: how many operands are singles, and whether the result is one.
_BOTH: Final = {
    **dict.fromkeys(("fadd_s", "fsub_s", "fmul_s", "fdiv_s", "fmin_s", "fmax_s"), 2),
    **dict.fromkeys(("fmadd_s", "fmsub_s", "fnmadd_s", "fnmsub_s"), 3),
    "fsqrt_s": 1,
}
_OPERANDS: Final = {
    **dict.fromkeys(("fle_s", "flt_s", "feq_s"), 2),
    **dict.fromkeys(("fcvt_w_s", "fcvt_wu_s", "fcvt_l_s", "fcvt_lu_s", "fcvt_d_s"), 1),
}
_RESULT: Final = ("fcvt_s_w", "fcvt_s_wu", "fcvt_s_l", "fcvt_s_lu", "fcvt_s_d")
_DOUBLES: Final = {
    **dict.fromkeys(("fmin_d", "fmax_d"), 2),
    **dict.fromkeys(("fmadd_d", "fmsub_d", "fnmadd_d", "fnmsub_d"), 3),
}
_CHOOSING, _FUSED = ("fmin", "fmax"), ("fmadd", "fmsub", "fnmadd", "fnmsub")
# NV of fflags.
_INVALID: Final = 0x10
BOX: Final = 0xFFFF_FFFF_0000_0000
CANONICAL_NAN: Final = 0x7FC0_0000

_FUNCTIONS: Final = f"""
define internal i64 @unboxed(i64 %value) alwaysinline {{
  %boxed = icmp uge i64 %value, {BOX}
  %low = and i64 %value, {0xFFFFFFFF}
  %single = select i1 %boxed, i64 %low, i64 {CANONICAL_NAN}
  ret i64 %single
}}

define internal i1 @is_nan_s(i64 %value) alwaysinline {{
  %size = and i64 %value, {0x7FFFFFFF}
  %nan = icmp ugt i64 %size, {0x7F800000}
  ret i1 %nan
}}

define internal i1 @is_nan_d(i64 %value) alwaysinline {{
  %size = and i64 %value, {(1 << 63) - 1}
  %nan = icmp ugt i64 %size, {0x7FF << 52}
  ret i1 %nan
}}

; Accrues the invalid operation of an infinity by zero.
define internal void @multiplied(i64 %env, i64 %a, i64 %b, i64 %sign, i64 %infinity) alwaysinline {{
  %a.size = and i64 %a, %sign
  %b.size = and i64 %b, %sign
  %a.zero = icmp eq i64 %a.size, 0
  %b.zero = icmp eq i64 %b.size, 0
  %a.infinite = icmp eq i64 %a.size, %infinity
  %b.infinite = icmp eq i64 %b.size, %infinity
  %first = and i1 %a.zero, %b.infinite
  %second = and i1 %b.zero, %a.infinite
  %invalid = or i1 %first, %second
  br i1 %invalid, label %accrue, label %done
accrue:
  %flags = call i64 @"library.riscv_cpu_get_fflags"(i64 %env)
  %more = or i64 %flags, {_INVALID}
  call i64 @"library.riscv_cpu_set_fflags"(i64 %env, i64 %more)
  br label %done
done:
  ret void
}}
declare i64 @"library.riscv_cpu_get_fflags"(i64)
declare i64 @"library.riscv_cpu_set_fflags"(i64, i64)

; The result of fmin or fmax, but for a NaN and a number.
define internal i64 @chosen(i64 %result, i64 %a, i64 %b, i1 %a.nan, i1 %b.nan) alwaysinline {{
  %b.number = xor i1 %b.nan, true
  %a.number = xor i1 %a.nan, true
  %only.b = and i1 %a.nan, %b.number
  %only.a = and i1 %b.nan, %a.number
  %first = select i1 %only.b, i64 %b, i64 %result
  %second = select i1 %only.a, i64 %a, i64 %first
  ret i64 %second
}}
"""


def _helper(name: str, operands: int, *, unbox: bool, box: bool, environment: bool = True) -> Iterator[str]:
    """Yield the lines of a replacement."""
    names = "abc"[:operands]
    parameters = [*(["i64 %env"] if environment else []), *(f"i64 %{one}" for one in names)]
    yield f'declare i64 @"library.helper_{name}"({", ".join("i64" for _ in parameters)})'
    yield f"define i64 @helper_{name}({', '.join(parameters)}) nounwind {{"
    for one in names:
        yield f"  %v.{one} = {f'call i64 @unboxed(i64 %{one})' if unbox else f'add i64 %{one}, 0'}"
    arguments = [*(["i64 %env"] if environment else []), *(f"i64 %v.{one}" for one in names)]
    yield f'  %computed = call i64 @"library.helper_{name}"({", ".join(arguments)})'
    result = "%computed"
    if name.startswith(_FUSED):
        size = "2147483647, i64 2139095040" if name.endswith("_s") else f"{(1 << 63) - 1}, i64 {0x7FF << 52}"
        yield f"  call void @multiplied(i64 %env, i64 %v.a, i64 %v.b, i64 {size})"
    if name.startswith(_CHOOSING):
        for one in names:
            yield f"  %n.{one} = call i1 @is_nan{name[-2:]}(i64 %v.{one})"
        yield "  %chosen = call i64 @chosen(i64 %computed, i64 %v.a, i64 %v.b, i1 %n.a, i1 %n.b)"
        result = "%chosen"
    if box:
        yield f"  %boxed = or i64 {result}, {BOX}"
        result = "%boxed"
    yield f"  ret i64 {result}"
    yield "}"


def _text() -> str:
    lines = [_FUNCTIONS]
    for name, operands in _BOTH.items():
        lines += _helper(name, operands, unbox=True, box=True)
    for name, operands in _OPERANDS.items():
        lines += _helper(name, operands, unbox=True, box=False)
    lines += _helper("fclass_s", 1, unbox=True, box=False, environment=False)
    for name in _RESULT:
        lines += _helper(name, 1, unbox=False, box=True)
    for name, operands in _DOUBLES.items():
        lines += _helper(name, operands, unbox=False, box=False)
    return "\n".join(lines)


HELPERS: Final = _text()
