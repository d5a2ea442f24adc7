"""Compare the lengths of x86 instructions with those of other decoders.

    python -m benchmarks.lengths [--strings N] [--llvm LIBRARY] [FILE ...].

A million structured strings (prefixes, an opcode of each map, ModRM, SIB) in 64-bit and in 32-bit
mode, against iced-x86 and, if the library is there, LLVM; and the code of whole files, by default
of the programs and libraries of this system, against objdump.  What differs is counted by its
reason; the exit status is 1 if a difference has none.  The totals go to
benchmarks/results/lengths.json.

`--expected` writes tests/emu/isa/x86_lengths.txt, which is iced-x86's answer for the first strings:
`make test` needs no second decoder.
"""

from __future__ import annotations

import argparse
import ctypes
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from ctypes.util import find_library
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks.provenance import save
from emu.isa.x86.length import LONGEST, PREFIXES, find_layout, find_length, find_prefixes
from tests.emu.isa.x86_strings import EXPECTED, KEPT, string

RESULTS: Final = Path(__file__).parent / "results" / "lengths.json"
_STRINGS: Final = 1_000_000
_MODES: Final = (64, 32)
_EXAMPLES: Final = 5
_RUSTC: Final = "rustc"
_LOCK: Final = b"\xf0"
_REFUSED: Final = frozenset({0xF0, 0xF2, 0xF3})
_REX2, _SECOND_MAP = 0xD5, 0x80
_OPERAND_SIZE, _ADDRESS_SIZE = 0x66, 0x67
_NEAR: Final = 0xE8  # call, jmp
_MOV: Final = b"\x8b"
_SIB: Final = 4  # rm
_LONG: Final = 64
Judge = Callable[[bytes], int]


@cache
def iced(bits: int, *, strict: bool = False) -> Judge:
    """Return iced-x86, which answers 0 for bytes that it calls invalid.

    `strict`: it refuses also a LOCK prefix, a register, or another field that the CPU refuses.
    """
    from iced_x86 import Decoder, DecoderOptions  # noqa: PLC0415  only this comparison needs it

    options = DecoderOptions.NONE if strict else DecoderOptions.NO_INVALID_CHECK

    def length(code: bytes) -> int:
        found = Decoder(bits, code[:LONGEST], options).decode()
        return 0 if found.is_invalid else int(found.len)

    return length


def llvm(library: str) -> Callable[[int], Judge]:
    """Return LLVM's disassembler, of a shared library with its C interface.  Raises OSError."""
    code = ctypes.CDLL(library)
    for part in ("TargetInfo", "TargetMC", "Disassembler"):
        getattr(code, f"LLVMInitializeX86{part}")()
    make, decode = code.LLVMCreateDisasm, code.LLVMDisasmInstruction
    make.restype = ctypes.c_void_p
    make.argtypes = (ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    decode.restype = ctypes.c_size_t
    decode.argtypes = (
        ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_char_p, ctypes.c_size_t,
    )  # fmt: skip
    text = ctypes.create_string_buffer(256)

    def judge(bits: int) -> Judge:
        handle = make(b"x86_64--" if bits == _LONG else b"i386--", None, 0, None, None)

        def length(data: bytes) -> int:
            size = int(decode(handle, data[:LONGEST], len(data[:LONGEST]), 0, text, len(text)))
            if size and all(word in _ALONE for word in text.value.split()):  # it ends an instruction behind LOCK
                rest = length(data[size:])
                return size + rest if rest else 0
            return size

        return length

    return judge


_ALONE: Final = frozenset({b"lock", b"rep", b"repne", b"xacquire", b"xrelease"})


def _llvm_library() -> str:
    """Return the newest LLVM: Rust's, or the system's; "" for none."""
    if shutil.which(_RUSTC):
        root = subprocess.run((_RUSTC, "--print", "sysroot"), capture_output=True, text=True, check=False).stdout
        found = sorted(Path(root.strip(), "lib").glob("libLLVM*.so*"))
        if found:
            return str(found[-1])
    return find_library("LLVM") or ""


class Asked(NamedTuple):
    """The answers for a string."""

    code: bytes
    bits: int
    ours: int
    iced: int
    llvm: int | None
    """None: it was not asked."""
    other: Judge | None = None
    """LLVM."""


def _is_apx(asked: Asked) -> bool:
    """Return whether it is REX2, or map 4 of EVEX."""
    layout = find_layout(asked.code, long=asked.bits == _LONG)
    code = asked.code
    at = layout.start if layout is not None else next(i for i, byte in enumerate(code) if byte not in PREFIXES)
    if layout is None and code[at] >> 4 == 4:
        at += 1
    return asked.bits == _LONG and (code[at] == 0xD5 or code[at] == 0x62)


def _variants(asked: Asked) -> Iterator[tuple[bytes, int]]:
    """Yield the string without refused prefixes, and without REX2, and how much shorter it is."""
    layout = find_layout(asked.code, long=asked.bits == _LONG)
    if layout is None:
        return
    prefixes, rest = asked.code[: layout.start], asked.code[layout.start :]
    yield prefixes.replace(_LOCK, b"") + rest, prefixes.count(_LOCK)
    left_out = _REFUSED | ({_OPERAND_SIZE, *range(0x40, 0x50)} if layout.vector >= 0 else set())
    kept = bytes(byte for byte in prefixes if byte not in left_out)
    yield kept + rest, len(prefixes) - len(kept)
    if rest[0] == _REX2:
        opcode = rest[2:] if rest[1] < _SECOND_MAP else b"\x0f" + rest[2:]
        rex = bytes((0x48,)) if rest[1] & 8 else b""
        yield kept + rex + opcode, len(prefixes) + len(rest) - len(kept) - len(rex) - len(opcode)


def _without_prefixes(asked: Asked) -> bool:
    return any(_either(code, asked) == asked.ours - left for code, left in _variants(asked))


def _with_another_field(asked: Asked) -> bool:
    return any(asked.ours - left in _with_other_fields(code, asked) for code, left in _variants(asked))


def _either(code: bytes, asked: Asked) -> int:
    """Return iced-x86's length, or LLVM's if it has none."""
    return iced(asked.bits)(code) or (asked.other(code) if asked.other else 0)


# z, L, b, V and the mask register of EVEX.
_EVEX_FIELDS: Final = bytes.fromhex("0828480929491858000c1c4d0a")


def _with_other_fields(code: bytes, asked: Asked) -> set[int]:
    """Return the lengths with other values of W, L, vvvv, and of ModRM's reg."""
    found: set[int] = set()
    layout = find_layout(code, long=asked.bits == _LONG)
    if layout is None or layout.modrm < 0:
        return found
    start = layout.start
    modrm = code[layout.modrm]
    registers = [
        one | number << 3 for number in range(8) for one in {modrm & 0xC7, modrm & (0xC0 if modrm >= 0xC0 else 0xC7)}
    ]
    if layout.vector < 0:
        heads = [code[: layout.modrm]]
        if layout.start and code[start] == 0x0F:
            heads.append(bytes([0x66]) + code[: layout.modrm])
    elif code[start] == 0xC5:
        heads = [bytes((0xC5, code[start + 1] & 0x83 | vvvv | long)) for vvvv, long in product((0x40, 0x78), (0, 4))]
        heads = [code[:start] + head + code[start + 2 : layout.modrm] for head in heads]
    elif code[start] == 0x62:
        heads = [
            bytes((0x62, code[start + 1] & 0xF7 | 0xF0, code[start + 2] & 0x7F | w | vvvv | 4, p2))
            for w, vvvv, p2 in product((0, 0x80), (0, 0x78), _EVEX_FIELDS)
        ]
        heads = [code[:start] + head + code[start + 4 : layout.modrm] for head in heads]
    else:
        heads = [
            bytes((code[start], code[start + 1] | 0xE0, code[start + 2] & 0x03 | w | vvvv | long))
            for w, vvvv, long in product((0, 0x80), (0, 0x78), (0, 4))
        ]
        heads = [code[:start] + head + code[start + 3 : layout.modrm] for head in heads]
    for head, register in product(heads, registers):
        length = _either(head + bytes((register,)) + code[layout.modrm + 1 :], asked)
        if length:
            found.add(length - len(head) + layout.modrm)
    return found


def _with_another_operand(asked: Asked) -> bool:
    """Return whether the same opcode with a register, or with memory, has as long an immediate."""
    return any(_has_other_operand(code, asked.ours - left, asked) for code, left in _variants(asked))


def _has_other_operand(code: bytes, ours: int, asked: Asked) -> bool:
    layout = find_layout(code, long=asked.bits == _LONG)
    if layout is None or layout.modrm < 0:
        return False
    at = layout.modrm
    immediate = ours - at - _address(code, at, asked.bits)
    for modrm in (code[at] | 0xC0, code[at] & 0x38 | _SIB):
        other = code[:at] + bytes((modrm,)) + code[at + 1 :]
        lengths = {_either(other, asked)} | _with_other_fields(other, asked)
        if immediate + at + _address(other, at, asked.bits) in lengths:
            return True
    return False


def _address(code: bytes, at: int, bits: int) -> int:
    """Return iced-x86's length of a ModRM byte and its address: mov has nothing else."""
    prefix = bytes((_ADDRESS_SIZE,)) if _ADDRESS_SIZE in code[: find_prefixes(code, long=bits == _LONG).end] else b""
    return iced(bits)(prefix + _MOV + code[at:]) - len(prefix) - len(_MOV)


# Why the answers differ; the first one that holds counts.  An answer of iced-x86 is with its checks of reserved fields
# off, so it decides about lengths wherever it has one.
_REASONS: Final[Sequence[tuple[str, Callable[[Asked], bool]]]] = (
    (
        "LLVM: 66 makes near branches of 64-bit code shorter, as AMD's CPUs do; or another prefix wins",
        lambda one: one.ours == one.iced > 0 and bool(one.llvm),
    ),
    (
        "LLVM does not know it: ud0, aliases of shifts and of x87, reserved nops, prefixes that do nothing",
        lambda one: one.ours == one.iced > 0 and one.llvm == 0,
    ),
    (
        "iced-x86 takes registers that do not exist (cr1, cr5), unless it checks: no instruction to us",
        lambda one: not one.ours and one.iced > 0 and not iced(one.bits, strict=True)(one.code),
    ),
    ("newer than iced-x86, as LLVM says", lambda one: not one.iced and one.ours > 0 and one.ours == one.llvm),
    (
        "LLVM takes REX2 and EVEX before opcodes that APX excludes",
        lambda one: not one.ours and not one.iced and bool(one.llvm) and _is_apx(one),
    ),
    (
        "LLVM takes f2 and f3 with opcodes that have no such form, and APX in 32-bit code",
        lambda one: not one.ours and not one.iced and bool(one.llvm),
    ),
    ("the CPU refuses a prefix before this opcode (#UD): without it they agree", _without_prefixes),
    ("the CPU refuses a value of W, L, vvvv or reg (#UD): with another they agree", _with_another_field),
    ("the CPU refuses a register, or memory (#UD): with the other they agree", _with_another_operand),
)


def _reason(asked: Asked) -> str:
    return next((why for why, holds in _REASONS if holds(asked)), "")


def compare(bits: int, strings: int, other: Judge | None) -> dict[str, Any]:
    """Compare the answers for so many strings."""
    judge = iced(bits)
    counts: Counter[str] = Counter()
    unexplained: list[str] = []
    same = known = 0
    for number in range(strings):
        code = string(number)
        asked = Asked(
            code, bits, find_length(code, long=bits == _LONG), judge(code), other(code) if other else None, other
        )
        if asked.ours == asked.iced and asked.llvm in {None, asked.ours}:
            same += 1
            known += asked.ours > 0
            continue
        why = _reason(asked)
        counts[why or "unexplained"] += 1
        if not why and len(unexplained) < _EXAMPLES:
            unexplained.append(f"{code.hex()}: {asked.ours}, iced-x86 {asked.iced}, LLVM {asked.llvm}")
    return {"strings": strings, "same": same, "instructions among them": known, "differ": dict(counts.most_common()),
            "unexplained": unexplained}  # fmt: skip


# objdump's line: address, bytes, text.
_LINE: Final = re.compile(r"^ *([0-9a-f]+):\t((?:[0-9a-f]{2} )+) *\t?(.*)$")


def _listing(file: Path) -> Iterator[tuple[int, bytes, str]]:
    """Yield objdump's instructions of a file."""
    command = ("objdump", "-d", "-w", "--insn-width=16", str(file))
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as listed:
        assert listed.stdout is not None
        for line in listed.stdout:
            found = _LINE.match(line)
            if found:
                yield int(found[1], 16), bytes.fromhex(found[2]), found[3]


def _bits(file: Path) -> int:
    """Return the mode of a file's code, 0 if it has none of x86."""
    with file.open("rb") as opened:
        head = opened.read(20)
    if head[:4] != b"\x7fELF":
        return 0
    return {0x3E: 64, 0x03: 32}.get(head[18], 0)


# objdump's own: `data16` and other prefixes as instructions of their own, (bad), fwait with what follows it.
_OF_OBJDUMP: Final = re.compile(r"\(bad\)|^(data16|rex[.WRXB]*|addr32|[c-gs]s|lock|repz?|repnz|bnd|notrack)( |$)")


def compare_files(files: Sequence[Path]) -> dict[str, Any]:
    """Compare the lengths of the instructions of whole files with objdump's."""
    counts: Counter[str] = Counter()
    unexplained: list[str] = []
    done = instructions = 0
    for file in files:
        bits = _bits(file)
        if not bits:
            continue
        done += 1
        for address, data, text in _listing(file):
            instructions += 1
            ours = find_length(data + bytes(LONGEST), long=bits == _LONG)
            if ours == len(data):
                continue
            theirs = iced(bits)(data + bytes(LONGEST))
            if "(bad)" in text or "%?" in text or text.startswith(".byte"):
                counts["objdump does not know it: data, or newer than objdump"] += 1
            elif _OF_OBJDUMP.search(text) and ours in {theirs, 0}:
                counts["objdump shows a prefix, or bytes that it does not know, alone: iced-x86 agrees with us"] += 1
            elif ours == theirs and _OPERAND_SIZE in data[:3] and data[-3] & 0xFE == _NEAR:
                counts["objdump: 66 makes near branches of 64-bit code shorter, as AMD's CPUs do"] += 1
            elif text.startswith("f") and data[0] == 0x9B and ours == 1:
                counts["objdump shows fwait and what follows it as one"] += 1
            else:
                counts["unexplained"] += 1
                if len(unexplained) < _EXAMPLES:
                    unexplained.append(f"{file.name} {address:#x}: {data.hex()} {text}: {ours}, iced-x86 {theirs}")
    return {"files": done, "instructions": instructions, "differ": dict(counts.most_common()),
            "unexplained": unexplained}  # fmt: skip


def _installed() -> list[Path]:
    folders = ("/usr/bin", "/usr/lib/x86_64-linux-gnu", "/usr/lib/i386-linux-gnu", "/usr/i686-linux-gnu/lib")
    return [
        file
        for folder in folders
        for file in sorted(Path(folder).glob("*"))
        if file.is_file() and not file.is_symlink() and file.stat().st_size < 1 << 22
    ]


def write_expected() -> None:
    """Write iced-x86's lengths of the first strings, a digit each: 64-bit code, then 32-bit."""
    lines = ["".join(f"{iced(bits, strict=True)(string(number)):x}" for number in range(KEPT)) for bits in _MODES]
    wrapped = (line[at : at + 120] for line in lines for at in range(0, len(line), 120))
    EXPECTED.write_text("\n".join(wrapped) + "\n", "ascii")


def main(words: Sequence[str] | None = None) -> int:
    """Compare; 1 if a difference has no reason."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lengths", description="Compare lengths.")
    parser.add_argument("--strings", type=int, default=_STRINGS, metavar="N")
    parser.add_argument("--llvm", default=_llvm_library(), metavar="LIBRARY", help="a libLLVM with its C interface")
    parser.add_argument("--expected", action="store_true", help=f"write {EXPECTED.name}, and end")
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    arguments = parser.parse_args(words)
    try:
        iced(64)
    except ImportError:
        print("iced-x86 is not installed: pip install 'trapline[decoders]'", file=sys.stderr)
        return 2
    if arguments.expected:
        write_expected()
        return 0
    judges = llvm(arguments.llvm) if arguments.llvm else None
    totals: dict[str, Any] = {"decoders": ["iced-x86", *(["LLVM " + Path(arguments.llvm).name] if judges else [])]}
    for bits in _MODES:
        totals[f"{bits}-bit"] = compare(bits, arguments.strings, judges(bits) if judges else None)
    if shutil.which("objdump"):
        totals["files"] = compare_files(arguments.files or _installed())
    else:
        print("left out: whole files, since objdump is not installed")
    for name, total in totals.items():
        print(f"{name}: {total}")
    if arguments.strings == _STRINGS and not arguments.files:
        save(RESULTS, totals, "a hash of the string's number")
    return any(total["unexplained"] for total in totals.values() if isinstance(total, dict))


if __name__ == "__main__":
    sys.exit(main())
