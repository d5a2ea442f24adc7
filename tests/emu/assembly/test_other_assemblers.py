"""Our tables against other assemblers: GNU as, and LLVM's."""

import random
import re
import shutil
import subprocess
from functools import cache

import pytest

from emu.assembly import AssemblyError, machine_code
from emu.assembly.assembler import language
from emu.isa import ISAS
from emu.isa.assembly import encode

GNU = "riscv64-linux-gnu-as"
LLVM = "llvm-mc"
# The operands that rows are tried with, by the kind; others are drawn from all that the kind takes.
REGISTERS = {
    "riscv64": (
        *("a0", "sp", "zero", "s1", "x31", "a5", "t0"), *("fa0", "ft11", "fs1", "f31"),
        *("rtz", "rne"), "rw", "i", "iorw", "0", "sstatus", "fcsr", "0x7c0",
    ),
    "aarch64": (
        *("x0", "x30", "w1", "wzr", "xzr", "sp", "x9"), *("v3", "v31", "q2", "s5"), "c", "0x1008", "0x2000",
    ),
}  # fmt: skip
NUMBERS = ("1", "-1", "8", "0", "16", "-16", "31", "5", "0x40", "-2", "0x7f8", "2046", "63", "0xfffff", "-32", "24")


@cache
def lines(isa_name):
    """(text, our bytes) for operands drawn for each row of an ISA's table."""
    draw = random.Random(3)  # noqa: S311
    assembly = language(ISAS[isa_name])
    found = {}
    for row in assembly.table:
        made = 0
        for _ in range(300):

            def chosen(match):
                word = match.group()
                return draw.choice((*REGISTERS[isa_name], *NUMBERS)) if word in assembly.kinds else word

            operands = re.sub(r"[A-Za-z_]\w*", chosen, row.template)
            try:
                code = encode(assembly, row.mnemonic, operands, 0)
            except ValueError:
                continue
            text = f"{row.mnemonic} {operands}".strip()
            if code is not None and text not in found:
                found[text] = code
                made += 1
            if made == 3 or not row.template:
                break
        assert made or row.template == "" or text in found, row
    return found


@pytest.mark.exhaustive
@pytest.mark.skipif(not shutil.which(GNU), reason=f"{GNU} is not installed")
def test_riscv_is_assembled_as_gnu_as_does(tmp_path):
    # GNU as takes the number of a branch as an address: a distance is written from here.
    branches = re.compile(r"^((?:c\.)?(?:b\w+|j|jal)\b.*?)(-?(?:0x)?[0-9a-f]+)$")
    # Names that GNU as does not have, or has for other encodings.
    own = re.compile(r"^(c\.nop .|fence .*0)")
    wanted = {text: code for text, code in lines("riscv64").items() if not own.match(text)}
    source = [".option norelax"]
    for text in wanted:
        source.append(".option rvc" if text.startswith("c.") else ".option norvc")
        source.append(branches.sub(r"\1. + \2", text))
    code = assembled(tmp_path, [GNU, "-march=rv64gc_zihintpause", "-o", tmp_path / "out.o"], "\n".join(source) + "\n")
    assert len(wanted) > 500
    assert split(code, wanted) == {}


def assembled(folder, command, source):
    (folder / "in.s").write_text(source)
    run = subprocess.run([*command, folder / "in.s"], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[:2000]
    subprocess.run(
        ["riscv64-linux-gnu-objcopy", "-O", "binary", "-j", ".text", folder / "out.o", folder / "out.bin"], check=True
    )
    return (folder / "out.bin").read_bytes()


def split(code, wanted):
    """The instructions that differ."""
    different, at = {}, 0
    for text, ours in wanted.items():
        theirs = code[at : at + len(ours)]
        at += len(ours)
        if ours != theirs:
            different[text] = (ours.hex(), theirs.hex())
    assert at == len(code)
    return different


@pytest.mark.exhaustive
@pytest.mark.skipif(not shutil.which(LLVM), reason=f"{LLVM} is not installed")
def test_what_keystone_lacks_on_aarch64_is_assembled_as_llvm_does():
    features = "+v8.5a,+lse,+rcpc,+rcpc-immo,+pauth,+bti,+crypto,+sha2,+aes,+flagm,+altnzcv,+hbc,+ssbs,+ras,+sb,+spe"
    wanted = {text: code for text, code in lines("aarch64").items() if not text.startswith("dgh")}
    # LLVM takes a number as a distance; all of them are from 0 here.
    run = subprocess.run(
        [LLVM, "-triple=aarch64", f"-mattr={features}", "-show-encoding"],
        input="\n".join(wanted) + "\n", capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[:2000]
    theirs = re.findall(r"encoding: \[([^\]]*)\]", run.stdout)
    assert len(theirs) == len(wanted) > 300
    different = {
        text: (ours.hex(), other)
        for (text, ours), other in zip(wanted.items(), theirs, strict=True)
        if ours != bytes(int(one, 16) for one in other.split(","))
    }
    assert different == {}


def test_keystones_wrong_distance_of_adr_is_not_taken_over():
    keystone = pytest.importorskip("keystone")
    theirs = bytes(keystone.Ks(keystone.KS_ARCH_ARM64, 0).asm("adr x0, #0x1004", 0x1000)[0])
    ours = machine_code(ISAS["aarch64"], "adr x0, #0x1004", 0x1000)
    assert ours == bytes.fromhex("20000010") != theirs


@pytest.mark.parametrize(
    ("isa", "text", "says"),
    [
        ("x86_64", "mov al, 300", "'mov al, 0x2c', without 0x12c"),
        ("x86_64", "mov eax, [eip+4]", "without eip"),
        ("i386", "mov eax, ds:[ebp]", "without ds"),
        ("aarch64", "b #0x90001000", "without 0x90001000"),
    ],
)
def test_what_keystone_encodes_wrongly_is_refused_without_another_assembler(isa, text, says, monkeypatch):
    pytest.importorskip("keystone")
    monkeypatch.setattr("emu.assembly.outside.assembled", lambda _outside, _statement: None)
    with pytest.raises(AssemblyError, match=re.escape(says)):
        machine_code(ISAS[isa], text)
