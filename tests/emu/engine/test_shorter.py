"""Shorter machine code: it does what the longer one does, on the emulated CPU of this host's kind."""

import ctypes
import random
import re

import pytest

pytest.importorskip("llvmlite")

import unicorn
from capstone import CS_ARCH_X86, CS_MODE_64, Cs
from unicorn import x86_const as uc

from emu.engine import shorter_code
from emu.engine.engine import Engine
from emu.engine.errors import PageFaultError
from emu.engine.memory.pages import PAGE, Access, PageMap
from emu.engine.qemu import inlined_count
from emu.engine.shorter import FORMS
from emu.engine.state import Word
from emu.isa import ISAS
from emu.native.builder import Module
from emu.native.link import Linked
from emu.unicorn_layout import library

CODE, DATA, STACK = 0x10000, 0x20000, 0x30000
ENV, TABLE = DATA + 0x800, DATA + 0x1000
ENTRY, PLACE = TABLE + 64, DATA + 0x3000
# What the access loads or stores at `(%rsi)`, and behind what is loaded.
ACCESSES = {
    "8b16": "a load of four bytes",
    "448b16": "one into an upper register",
    "4c8b16": "eight bytes",
    "0fb616": "a byte",
    "440fb616": "a byte into an upper register",
    "0fb716": "two bytes",
    "480fbe16": "a signed byte",
    "486316": "four signed bytes",
    "8916": "a store of four bytes",
    "448916": "one of an upper register",
    "4c8916": "eight bytes",
    "66448916": "two bytes",
    "8816": "a byte",
    "448816": "a byte of an upper register",
}
# The register of the address: its number, and its name.
ADDRESSES = {0: "RAX", 1: "RCX", 3: "RBX", 8: "R8", 9: "R9", 11: "R11", 12: "R12", 13: "R13", 15: "R15"}
REGISTERS = [getattr(uc, f"UC_X86_REG_R{name}") for name in "AX BX CX DX SI DI BP SP 8 9 10 11 12 13 14 15".split()]
JUMP_OUT = b"\xe9\x00\x00\x00\x00"


class Shortener:
    """The functions of the module."""

    def __init__(self):
        module = Module()
        shorter_code.write_shorten(module)
        shorter_code._write_length(module.function("length", 1), module.data("forms", FORMS))
        self._linked = Linked(module.compiled("test"))
        self._shorten = ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_uint64)(self._linked.address("shorten_block"))
        self._length = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64)(self._linked.address("length"))

    def shorten(self, code):
        memory = ctypes.create_string_buffer(bytes(code), len(code))
        self._shorten(ctypes.addressof(memory), ctypes.addressof(memory) + len(code))
        return memory.raw

    def length(self, code):
        memory = ctypes.create_string_buffer(code)
        return self._length(ctypes.addressof(memory))


@pytest.fixture(scope="module")
def shortener():
    return Shortener()


def access(number, instruction, *, stores, operation=0x21, compare="483b37"):
    """The code of a load or store as QEMU makes it, the code for a miss, and where both end."""
    upper, low = number >> 3, number & 7
    moved = bytes((0x48 | upper, 0x8B, 0xF8 | low))
    size = 1 if re.search("0fb6|0fbe|88", instruction) else 4
    copied = bytes((0x48 | upper, 0x8B, 0xF0 | low))
    last = bytes((0x48 | upper, 0x8D, 0x70 | low)) + (b"\x24" if low == 4 else b"") + b"\x03"
    head = moved + bytes.fromhex("48c1ef06 48237dd0 48037dd8") + (copied if size == 1 else last)
    head += bytes.fromhex("4881e600f0ffff" + compare) + copied + b"\x0f\x85"
    tail = bytes.fromhex("48037720" + instruction)
    miss = bytes.fromhex("488bfd") + (bytes.fromhex("418bd2b9") if stores else b"\xba")
    miss += operation.to_bytes(4, "little") + bytes.fromhex("488d0d00000000")
    hit = tail + JUMP_OUT
    return head + len(hit).to_bytes(4, "little") + hit + miss + JUMP_OUT + bytes(64)


def executed(code, address, *, known):
    """Registers and data after the code, with random registers; `address`: its register."""
    cpu = unicorn.Uc(unicorn.UC_ARCH_X86, unicorn.UC_MODE_64)
    for place in (CODE, DATA, STACK):
        cpu.mem_map(place, 0x8000)
    random_ = random.Random("shorter")  # noqa: S311  (nothing is secret)
    cpu.mem_write(DATA, random_.randbytes(0x8000))
    cpu.mem_write(CODE, code)
    for register in REGISTERS:
        cpu.reg_write(register, random_.getrandbits(64))
    cpu.reg_write(uc.UC_X86_REG_RBP, ENV)
    cpu.reg_write(uc.UC_X86_REG_RSP, STACK + 0x4000)
    guest = 0x5001_1234
    if address is not None:
        cpu.reg_write(getattr(uc, f"UC_X86_REG_{address}"), guest)
        cpu.mem_write(ENV - 0x30, (64).to_bytes(8, "little"))
        cpu.mem_write(ENV - 0x28, TABLE.to_bytes(8, "little"))
        page = guest & -PAGE if known else 1
        cpu.mem_write(ENTRY, 2 * page.to_bytes(8, "little"))
        cpu.mem_write(ENTRY + 0x20, (PLACE - guest & (1 << 64) - 1).to_bytes(8, "little"))
    ends = code.rindex(b"\xe9") + 5
    cpu.emu_start(CODE, CODE + ends, count=40)
    # Behind a hit, the registers of the lookup are used no more; the stack below its pointer never is.
    kept = [one for one in REGISTERS if not (known and one in {uc.UC_X86_REG_RSI, uc.UC_X86_REG_RDI})]
    return [cpu.reg_read(one) for one in kept], bytes(cpu.mem_read(DATA, 0x8000))


@pytest.mark.parametrize("number", ADDRESSES)
@pytest.mark.parametrize("instruction", ACCESSES)
@pytest.mark.parametrize("known", [True, False], ids=["hit", "miss"])
def test_an_access_does_the_same(shortener, number, instruction, known):
    stores = bool(re.search("8[89]16$", instruction))
    code = access(number, instruction, stores=stores, compare="483b7708" if stores else "483b37")
    shorter = shortener.shorten(code)
    assert shorter != code
    assert b"\x48\x8b\x77\x20" in shorter
    # The hit ends where it did, and so do the miss and what is behind it.
    end = code.index(JUMP_OUT)
    assert shorter[end : end + 5] == JUMP_OUT
    assert shorter[code.rindex(JUMP_OUT) :] == code[code.rindex(JUMP_OUT) :]
    assert executed(shorter, ADDRESSES[number], known=known) == executed(code, ADDRESSES[number], known=known)


def test_what_is_not_exactly_known_stays(shortener):
    code = access(3, "8b16", stores=False)
    assert shortener.shorten(code) != code
    for place in range(code.index(JUMP_OUT)):
        # Distances, the mask's number, where the jump leads, and the register that is loaded.
        if place in {10, 14, 18, 22, 23, 24, 25, *range(33, 37), 43}:
            continue
        other = bytearray(code)
        other[place] ^= 0x10
        assert bytes(other) == shortener.shorten(other), place
    for operation in (0x80, 0x121):
        long = access(3, "8b16", stores=False, operation=operation)
        assert shortener.shorten(long) == long


def test_code_behind_an_unknown_instruction_stays(shortener):
    code = access(3, "8b16", stores=False)
    for before, changes in ((b"\x90", True), (b"\x0f\x0b", False), (b"\xe9" + bytes(3) + b"\x70", False)):
        assert (shortener.shorten(before + code) != before + code) is changes


# A sum of 64 bits: its name, its code with REX.W, and the register it changes.
SUMS = {
    "add $8,%rbx": ("4883c308", 3),
    "sub $4,%r12": ("4983ec04", 12),
    "and $-16,%r13": ("4983e5f0", 13),
    "add $0x89abcdef,%rbx": ("4881c3efcdab89", 3),
    "add %r12,%rbx": ("4903dc", 3),
    "sub %rbx,%r15": ("4c2bfb", 15),
    "or %rcx,%rax": ("480bc1", 0),
    "lea 16(%rbx),%r12": ("4c8d6310", 12),
    "lea (%rbx,%r12,4),%rdx": ("4a8d14a3", 2),
    "lea 0xa6ac(%r12),%r14": ("4d8db424aca60000", 14),
}


@pytest.mark.parametrize("name", SUMS)
def test_a_sum_does_the_same(shortener, name):
    text, number = SUMS[name]
    sum_ = bytes.fromhex(text)
    pattern = 0xC0 | (number & 7) * 9
    move = bytes((0x8B, pattern)) if number < 8 else bytes((0x45, 0x8B, pattern))
    code = sum_ + move + JUMP_OUT
    shorter = shortener.shorten(code)
    assert shorter != code
    (only,) = list(Cs(CS_ARCH_X86, CS_MODE_64).disasm(shorter[: -len(JUMP_OUT)], 0))
    assert only.size == len(sum_ + move)
    assert executed(shorter, None, known=True) == executed(code, None, known=True)
    # With another register in the move, with nothing behind it, or as a multiplication, it stays.
    for other in (sum_ + move[:-1] + bytes((pattern ^ 1,)) + JUMP_OUT, sum_ + JUMP_OUT, b"\x48\x0f\xaf\xdc\x8b\xdb"):
        assert shortener.shorten(other) == other


def test_a_constant_behind_the_code_stays(shortener):
    sum_ = bytes.fromhex("4883c3088bdb")
    code = JUMP_OUT[:1] + (100).to_bytes(4, "little") + sum_
    assert shortener.shorten(code) == code
    # A jump over the end leads to more code.
    further = bytes.fromhex("7405") + code
    assert shortener.shorten(further) == further[: -len(sum_)] + bytes.fromhex("3e3e4083c308")


def test_lengths_are_those_of_capstone(shortener):
    random_ = random.Random("lengths")  # noqa: S311  (nothing is secret)
    decoder = Cs(CS_ARCH_X86, CS_MODE_64)
    prefixes = [bytes.fromhex(text) for text in ("", "66", "f3", "48", "4d", "6641", "0f", "480f", "660f", "c5", "c4")]
    seen = 0
    for _ in range(60_000):
        code = random_.choice(prefixes) + random_.randbytes(15)
        length, real = shortener.length(code), next(decoder.disasm(code, 0), None)
        if length and real is not None:
            # What the prefix 66 does to a jump depends on the CPU's maker.
            if 0x66 in code[:4] and real.mnemonic.split()[-1].startswith(("j", "call")):
                continue
            assert length == real.size, f"{code.hex()}: {real.mnemonic} {real.op_str}"
            seen += 1
    assert seen > 20_000


HOSTED = pytest.mark.skipif(
    not (inlined_count.POSSIBLE and library.this().is_known),
    reason="blocks are changed on Linux and x86-64, in the known library",
)
# Loads from the address in a register and stores what it has loaded 8 bytes behind it, then waits.
COPY = {
    "x86_64": ("rsi", "8b06894608"),
    "i386": ("esi", "8b06894608"),
    "aarch64": ("x1", "200040b9200800b9"),
    "riscv64": ("a1", "03a5050023a4a500"),
}


@HOSTED
@pytest.mark.parametrize("isa", COPY)
def test_blocks_have_the_shorter_code_and_fault_where_they_did(isa):
    space = PageMap()
    space.map(CODE, PAGE, Access.READ | Access.EXECUTE)
    space.map(DATA, PAGE, Access.READ | Access.WRITE)
    space.map(DATA + PAGE, PAGE, Access.READ)
    engine = Engine(ISAS[isa], 8 * PAGE, pages=space, accelerated=True)
    register, copy = COPY[isa]
    engine.write_code(CODE, bytes.fromhex(copy) + ISAS[isa].traps.wait)
    engine.memory.write(DATA, b"copied")

    def run(address):
        engine.write_register(register, address)
        engine.pc = CODE
        engine.run()

    run(DATA)
    run(DATA)
    assert engine.memory.read(DATA + 8, 4) == b"copi"
    state = engine.counter.state
    code = ctypes.string_at(state[Word.LOWEST], state[Word.LATEST] - state[Word.LOWEST] + 0x200)
    assert len(re.findall(rb"\x0f\x85....\x48\x8b\x77\x20", code, re.DOTALL)) >= 2
    store = CODE + len(bytes.fromhex(copy)) // 2 if isa in {"aarch64", "riscv64"} else CODE + 2
    for address, at in ((DATA + PAGE - 8, store), (DATA + 2 * PAGE, CODE)):
        with pytest.raises(PageFaultError) as fault:
            run(address)
        assert fault.value.pc == at
