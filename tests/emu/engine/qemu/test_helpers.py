"""QEMU's helpers that are replaced: RISC-V's singles, and x86's reciprocals and horizontal sums."""

import ctypes
import struct

import pytest

from emu.engine.qemu import rewriters
from emu.guest.function import CODE, FunctionGuest
from emu.isa import ISAS
from tests.emu.engine.qemu.test_sticky_flags import CLEAR, MXCSR, engines, floats, modes
from tests.fuzz.judge.case import Case
from tests.fuzz.judge.judges import by_guest, by_judge
from tests.fuzz.judge.known import unexplained
from tests.support.host_code import execute, native_host

pytestmark = pytest.mark.skipif(
    not rewriters.runs(rewriters.QEMU_HELPERS), reason="helpers are replaced by machine code, in the known library"
)
BOX = 0xFFFF_FFFF_0000_0000
ONE, MINUS_ONE, TWO, NAN, SIGNALLING, INFINITE, ZERO = (
    0x3F80_0000, 0xBF80_0000, 0x4000_0000, 0x7FC0_0000, 0x7F80_0001, 0x7F80_0000, 0,
)  # fmt: skip
DOUBLE_ONE, DOUBLE_NAN, DOUBLE_SIGNALLING, DOUBLE_INFINITE = (
    0x3FF0_0000_0000_0000, 0x7FF8_0000_0000_0000, 0x7FF0_0000_0000_0001, 0x7FF0_0000_0000_0000,
)  # fmt: skip


def r(funct7, kind, second=12, third=None, target=10, first=11):
    """Encode an operation on fa1, fa2 and fa3 into fa0, or with registers of integers."""
    top = funct7 << 25 if third is None else third << 27 | funct7 << 25
    opcode = 0x53 if third is None else 0x43
    return top | second << 20 | first << 15 | kind << 12 | target << 7 | opcode


# The operation; fa1, fa2 and fa3 before it; fa0 after it, and fflags.
SINGLES = {
    "fadd.s": (r(0, 0), (BOX | ONE, BOX | ONE), BOX | TWO, 0),
    "fadd.s of one that is not boxed": (r(0, 0), (ONE, BOX | ONE), BOX | NAN, 0),
    "fadd.s, the second": (r(0, 0), (BOX | ONE, 0xFFFF_FFFE_0000_0000 | ONE), BOX | NAN, 0),
    "fsqrt.s": (r(0x2C, 0, 0), (BOX | 0x4080_0000,), BOX | TWO, 0),
    "fcvt.s.d": (r(0x20, 0, 1), (DOUBLE_ONE,), BOX | ONE, 0),
    "fcvt.d.s of one that is not boxed": (r(0x21, 0, 0), (ONE,), DOUBLE_NAN, 0),
    "fsgnj.s": (r(0x10, 0), (BOX | ONE, BOX | MINUS_ONE), BOX | MINUS_ONE, 0),
    "fsgnjn.s": (r(0x10, 1), (BOX | ONE, BOX | MINUS_ONE), BOX | ONE, 0),
    "fsgnjx.s": (r(0x10, 2), (BOX | MINUS_ONE, BOX | MINUS_ONE), BOX | ONE, 0),
    "fneg.s": (r(0x10, 1, 11), (BOX | ONE,), BOX | MINUS_ONE, 0),
    "fabs.s": (r(0x10, 2, 11), (BOX | MINUS_ONE,), BOX | ONE, 0),
    "fmv.s of one that is not boxed": (r(0x10, 0, 11), (ONE,), BOX | NAN, 0),
    "fneg.s of one that is not boxed": (r(0x10, 1, 11), (ONE,), BOX | NAN | 1 << 31, 0),
    "fmv.w.x": (r(0x78, 0, 0, first=5), (), BOX | 0x1234_5678, 0),
    "fmin.s": (r(0x14, 0), (BOX | SIGNALLING, BOX | ONE), BOX | ONE, 0x10),
    "fmax.s": (r(0x14, 1), (BOX | ONE, BOX | NAN), BOX | ONE, 0),
    "fmin.s of two": (r(0x14, 0), (BOX | SIGNALLING, BOX | SIGNALLING), BOX | NAN, 0x10),
    "fmin.d": (r(0x15, 0), (DOUBLE_SIGNALLING, DOUBLE_ONE), DOUBLE_ONE, 0x10),
    "fmax.d": (r(0x15, 1), (DOUBLE_ONE, DOUBLE_SIGNALLING), DOUBLE_ONE, 0x10),
    "fmadd.s": (r(0, 0, 12, 13), (BOX | ONE, BOX | ONE, BOX | ONE), BOX | TWO, 0),
    "fmadd.s, infinity by zero": (r(0, 0, 12, 13), (BOX | INFINITE, BOX | ZERO, BOX | NAN), BOX | NAN, 0x10),
    "fmadd.d, zero by infinity": (r(1, 0, 12, 13), (ZERO, DOUBLE_INFINITE, DOUBLE_NAN), DOUBLE_NAN, 0x10),
}


@engines
@pytest.mark.parametrize("case", SINGLES)
def test_singles_are_boxed_as_the_f_extension_says(case, accelerated):
    operation, operands, result, flags = SINGLES[case]
    # csrw fflags, zero; the operation; csrr a1, fflags; fmv.x.d a0, fa0; ret
    code = struct.pack("<5I", 0x0010_1073, operation, 0x0010_25F3, 0xE205_0553, 0x0000_8067)
    guest = FunctionGuest(ISAS["riscv64"], code, accelerated=accelerated)
    cpu = guest.engine.cpu
    cpu.write_public("mstatus", 3 << 13)
    cpu.write_register("t0", 0x1234_5678)
    for number, value in enumerate(operands):
        cpu.write_public(f"f{11 + number}", value)
    assert (guest.call(), cpu.read_register("a1")) == (result, flags)


def test_machine_code_finds_the_same_operations_as_python():
    engine = FunctionGuest(ISAS["riscv64"], bytes(64), accelerated=True).engine
    compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    ask = compare(engine.callbacks.emulated[0].value)
    key, hooked = ctypes.c_uint64(CODE), ctypes.c_uint64.from_address(engine._code_hooks.block.range)
    found = 0
    for word in (r(funct7, kind, second) for funct7 in range(128) for kind in range(8) for second in (0, 1, 11)):
        engine.memory.write(CODE, struct.pack("<I", word))
        ask(ctypes.byref(key), None, None)
        wanted = ISAS["riscv64"].unicorn.corrections.found(lambda at: engine.memory.read(at, 1)[0], CODE)
        assert (hooked.value == CODE) == wanted, hex(word)
        found += wanted
    assert found == 3 * 3 + 1


@native_host
@engines
@modes
@pytest.mark.parametrize("operation", ["0f53c1", "f30f53c1", "0f52c1", "f30f52c1"])
def test_a_reciprocal_accrues_no_exception(isa, operation, accelerated):
    code = bytes.fromhex(CLEAR + floats(1, 3) + operation + MXCSR + "dbe3c3")
    assert FunctionGuest(ISAS[isa], code, accelerated=accelerated).call() & 0xFFFF_FFFF == execute(code) == 0x1F80


@native_host
@engines
@modes
@pytest.mark.parametrize("opcode", [1, 2, 3, 5, 6, 7])
@pytest.mark.parametrize("registers", ["c0", "c1"])
@pytest.mark.parametrize("upper", [False, True])
def test_horizontal_sums_of_a_register_with_itself(isa, opcode, registers, upper, accelerated):
    # pcmpeqd %xmm1,%xmm1; psrlq $17,%xmm1; movdqa %xmm1,%xmm0; psllq $9,%xmm0; the sum; psrldq $8; movd %xmm0,%eax
    load = "660f76c9660f73d111660f6fc1660f73f009"
    code = bytes.fromhex(f"{load}660f38{opcode:02x}{registers}{'660f73d808' if upper else ''}660f7ec0c3")
    assert FunctionGuest(ISAS[isa], code, accelerated=accelerated).call() & 0xFFFF_FFFF == execute(code)


@native_host
@modes
def test_ssse3_on_registers_of_mmx_and_reserved_bits_of_mxcsr_are_as_the_host_has_them(isa):
    operations = ["0f3801c1", "0f3800c1", "0f381cc1", "0f380bc1", "0f3a0fc103", "0f3804c1"]
    codes = [bytes.fromhex(operation) for operation in operations]
    top = 0x1F80 | 0x37F << 32 | 5 << 11 + 48
    general = (0x2000_0800,) * (16 if isa == "x86_64" else 8)
    cases = [Case(code, (), general, (0,) * 32 + (7 << 60, 0x4001) * 8, 0xE0 << 32, top) for code in codes]
    # movl $0x2001f80,(%eax); ldmxcsr (%eax): as a structure that is not aligned to 16 bytes may have it
    cases.append(Case(bytes.fromhex("c700801f00020fae10"), (), general, (), 0, 0x1F80 | 0x37F << 32))
    # movl $0xe0bf,(%eax); fldcw (%eax)
    cases.append(Case(bytes.fromhex("c700bfe00000d928"), (), general, (), 0, 0x1F80 | 0x37F << 32))
    # fisttp of a number that does not fit, and of one that does
    cases += [
        Case(bytes.fromhex(store), (), general, (0,) * 32 + (7 << 61, exponent) * 8, 0xFF << 32, 0x1F80 | 0x37F << 32)
        for store in ("db08", "dd08", "df08")
        for exponent in (0x4060, 0x4002)
    ]
    judged, executed = by_judge(isa, cases), by_guest(isa, cases)
    for case, ours, theirs in zip(cases, executed, judged, strict=True):
        assert unexplained(isa, case, theirs, ours) == {}, case.code.hex()
    assert [one.signal for one in executed] == [5] * len(codes) + [11] + [5] * 7
