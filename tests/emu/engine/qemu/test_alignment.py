"""SSE instructions whose operand must be aligned: #GP, as on the host's CPU."""

import ctypes

import pytest

from emu.engine import native_callbacks
from emu.engine.qemu import alignment, rewriters
from emu.guest.function import CODE, FunctionGuest
from emu.isa import ISAS
from emu.isa.x86.alignment import TABLE
from tests.fuzz.judge.case import CODE as JUDGED
from tests.fuzz.judge.case import Case
from tests.fuzz.judge.judges import by_guest, by_judge, command

pytestmark = pytest.mark.skipif(
    not rewriters.runs(rewriters.SSE_ALIGNMENT), reason="accesses are tested by machine code, in the known library"
)
modes = pytest.mark.parametrize("isa", ["x86_64", "i386"])
SIGTRAP, SIGSEGV, KERNEL = 5, 11, 0x80
DATA = 0x2000_0800
# Code with an operand at (%eax) or (%rax), and whether that has to be aligned.
OPERATIONS = {
    "movaps, load": ("0f2800", True),
    "movaps, store": ("0f2900", True),
    "movapd": ("660f2800", True),
    "movdqa": ("660f6f00", True),
    "movdqa, store": ("660f7f00", True),
    "movntps": ("0f2b00", True),
    "addps": ("0f5800", True),
    "pshufb": ("660f380000", True),
    "palignr": ("660f3a0f0003", True),
    "pcmpeqb": ("660f7400", True),
    "movshdup": ("f30f1600", True),
    "movups": ("0f1000", False),
    "movdqu": ("f30f6f00", False),
    "lddqu": ("f20ff000", False),
    "movsd": ("f20f1000", False),
    "addss": ("f30f5800", False),
    "cvtps2pd": ("0f5a00", False),
    "pcmpistri": ("660f3a630000", False),
    "pmovzxbw": ("660f383000", False),
    "movq": ("f30f7e00", False),
    "paddb, of MMX": ("0ffc00", False),
    "fxch, then movaps": ("d9c90f2800", True),
}


@modes
def test_a_misaligned_operand_is_a_general_protection_fault(isa):
    count = 16 if isa == "x86_64" else 8
    cases = [
        Case(bytes.fromhex(code), (), (DATA + offset, *[DATA] * (count - 1)), (), control=0x1F80 | 0x37F << 32)
        for code, _ in OPERATIONS.values()
        for offset in (0, 1, 8)
    ]
    expected = [
        (SIGSEGV, KERNEL, 0, JUDGED + 2 * ("then" in name)) if must and offset else SIGTRAP
        for name, (_, must) in OPERATIONS.items()
        for offset in (0, 1, 8)
    ]
    for run in (by_guest, *([by_judge] if command(isa) else [])):
        found = [
            SIGTRAP if one.signal == SIGTRAP else (one.signal, one.code, one.address, one.pc) for one in run(isa, cases)
        ]
        assert found == expected, run.__name__


@modes
def test_without_accelerated_callbacks_it_is_one_too(isa):
    for code, faults in (("0f2800c3", True), ("0f1000c3", False)):
        guest = FunctionGuest(ISAS[isa], bytes.fromhex(code), accelerated=False)
        guest.engine.write_register("rax" if isa == "x86_64" else "eax", CODE + 1)
        if faults:
            with pytest.raises(Exception, match=r"13|protection|cannot continue"):
                guest.call()
        else:
            guest.call()


@pytest.mark.skipif(not native_callbacks.available(), reason="llvmlite is not installed")
@modes
def test_machine_code_finds_what_python_finds(isa):
    engine = FunctionGuest(ISAS[isa], bytes(64), accelerated=True).engine
    compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    ask = compare(engine.callbacks.emulated[0].value)
    key = ctypes.c_uint64(CODE)
    found = 0
    for prefixes in ("", "66", "f3", "f2", "66f3", "f266", "48", "6648", "4866", "2e", "67", 14 * "66", 15 * "66"):
        for second in range(256):
            for third in (0x00, 0x0F, 0x28, 0x63, 0xC1):
                code = bytes.fromhex(prefixes) + bytes((0x0F, second, third, 0x00))
                engine.memory.write(CODE, code.ljust(24, b"\x90"))
                ask(ctypes.byref(key), None, None)
                wanted = ISAS[isa].unicorn.aligned(lambda at: engine.memory.read(at, 1)[0], CODE)
                assert bool(alignment.PENDING.value) == wanted, code.hex()
                found += wanted
    alignment.PENDING.value = 0
    assert found > sum(map(bool, TABLE))
