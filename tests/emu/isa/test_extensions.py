"""What the guests' CPUs have and lack, by experiment: each instruction is a program of its own.

The bytes are those of llvm-mc and GNU as.  docs/guests.md says the same to users.
"""

import re
from pathlib import Path

import pytest

from emu.guest.linux.guest import LinuxGuest
from emu.guest.linux.launch import Program
from emu.isa import ISAS
from tests.emu.guest.linux.elf_program import elf_program
from tests.support.some import some

# exit(7), behind the instruction.
EXIT = {
    "x86_64": "bf07000000b83c0000000f05",
    "aarch64": "e0008052a80b8052010000d4",
    "riscv64": "1d459308d00573000000",
}
# ISA, extension, bytes, assembly.
LACKED = """
aarch64 | LRCPC                    | e0c3bff8     | ldapr x0,[sp]
aarch64 | LRCPC2                   | e08340d9     | ldapur x0,[sp,#8]
aarch64 | LSE                      | e10320f8     | ldadd x0,x1,[sp]
aarch64 | LSE                      | e183e0b8     | swpal w0,w1,[sp]
aarch64 | LSE                      | e17fa0c8     | cas x0,x1,[sp]
aarch64 | LSE                      | e27f2048     | casp x0,x1,x2,x3,[sp]
aarch64 | LSE                      | ff0320b8     | stadd w0,[sp]
aarch64 | PAuth                    | 2000c1da     | pacia x0,x1
aarch64 | PAuth                    | e13bc1da     | autdza x1
aarch64 | PAuth                    | ff0b5fd6     | retaa
aarch64 | PAuth                    | 3f083fd6     | blraaz x1
aarch64 | PAuth                    | 22081fd7     | braa x1,x2
aarch64 | PAuth                    | 200420f8     | ldraa x0,[x1]
aarch64 | PAuth                    | 2030c29a     | pacga x0,x1,x2
aarch64 | RDM                      | 2084826e     | sqrdmlah v0.4s,v1.4s,v2.4s
aarch64 | RDM                      | 208c827e     | sqrdmlsh s0,s1,s2
aarch64 | DotProd                  | 2094826e     | udot v0.4s,v1.16b,v2.16b
aarch64 | DotProd                  | 20e0a20f     | sdot v0.2s,v1.8b,v2.4b[1]
aarch64 | FCMA                     | 20cc826e     | fcmla v0.4s,v1.4s,v2.4s,#90
aarch64 | FCMA                     | 20e4c26e     | fcadd v0.2d,v1.2d,v2.2d,#90
aarch64 | I8MM                     | 20a4824e     | smmla v0.4s,v1.16b,v2.16b
aarch64 | BF16                     | 20fc426e     | bfdot v0.4s,v1.8h,v2.8h
aarch64 | FP16                     | 2014424e     | fadd v0.8h,v1.8h,v2.8h
aarch64 | FP16                     | 2028e21e     | fadd h0,h1,h2
aarch64 | JSCVT                    | 20007e1e     | fjcvtzs w0,d1
aarch64 | FRINTTS                  | 2040681e     | frint32z d0,d1
aarch64 | FlagM                    | 1f4000d5     | cfinv
aarch64 | FlagM                    | 028400ba     | rmif x0,#1,#2
aarch64 | FlagM                    | 0d08003a     | setf8 w0
aarch64 | SHA512, SHA3, SM3 or SM4 | 208062ce     | sha512h q0,q1,v2.2d
aarch64 | SHA512, SHA3, SM3 or SM4 | 200c02ce     | eor3 v0.16b,v1.16b,v2.16b,v3.16b
aarch64 | SHA512, SHA3, SM3 or SM4 | 2084c0ce     | sm4e v0.4s,v1.4s
aarch64 | MTE                      | 2010df9a     | irg x0,x1
aarch64 | MTE                      | 20048191     | addg x0,x1,#16,#1
aarch64 | MTE                      | 210820d9     | stg x1,[x1]
aarch64 | SVE                      | e0e31825     | ptrue p0.b
aarch64 | SVE                      | 00a0e0a5     | ld1d z0.d,p0/z,[x0]
aarch64 | SVE                      | 20502104     | addvl x0,x1,#1
aarch64 | SME                      | 7f4603d5     | smstop
aarch64 | SME                      | ff0008c0     | zero {za}
riscv64 | Zba                      | 33a5c520     | sh1add a0,a1,a2
riscv64 | Zba                      | 3be5c520     | sh3add.uw a0,a1,a2
riscv64 | Zba                      | 3b85c508     | add.uw a0,a1,a2
riscv64 | Zba                      | 1b95850a     | slli.uw a0,a1,40
riscv64 | Zbb                      | 33f5c540     | andn a0,a1,a2
riscv64 | Zbb                      | 33e5c540     | orn a0,a1,a2
riscv64 | Zbb                      | 13950560     | clz a0,a1
riscv64 | Zbb                      | 1b951560     | ctzw a0,a1
riscv64 | Zbb                      | 13952560     | cpop a0,a1
riscv64 | Zbb                      | 33e5c50a     | max a0,a1,a2
riscv64 | Zbb                      | 33d5c50a     | minu a0,a1,a2
riscv64 | Zbb                      | 13954560     | sext.b a0,a1
riscv64 | Zbb                      | 3bc50508     | zext.h a0,a1
riscv64 | Zbb                      | 3395c560     | rol a0,a1,a2
riscv64 | Zbb                      | 3bd5c560     | rorw a0,a1,a2
riscv64 | Zbb                      | 13d58562     | rori a0,a1,40
riscv64 | Zbb                      | 13d5856b     | rev8 a0,a1
riscv64 | Zbb                      | 13d57528     | orc.b a0,a1
riscv64 | Zbc                      | 3395c50a     | clmul a0,a1,a2
riscv64 | Zbc                      | 33a5c50a     | clmulr a0,a1,a2
riscv64 | Zbs                      | 3395c528     | bset a0,a1,a2
riscv64 | Zbs                      | 13d5854a     | bexti a0,a1,40
riscv64 | Zicond                   | 33d5c50e     | czero.eqz a0,a1,a2
riscv64 | Zicond                   | 33f5c50e     | czero.nez a0,a1,a2
riscv64 | V                        | 57f5050c     | vsetvli a0,a1,e8,m1,ta,ma
riscv64 | V                        | 07000102     | vle8.v v0,(sp)
riscv64 | V                        | 27700102     | vse64.v v0,(sp)
riscv64 | V                        | 57001102     | vadd.vv v0,v1,v2
riscv64 | Zfh                      | 53f5c504     | fadd.h fa0,fa1,fa2
riscv64 | Zfh                      | 07150100     | flh fa0,0(sp)
riscv64 | Zfh                      | 53f50544     | fcvt.h.s fa0,fa1
riscv64 | Zacas                    | 2f25b128     | amocas.w a0,a1,(sp)
riscv64 | Zawrs                    | 7300d000     | wrs.nto
riscv64 | Zicbom or Zicboz         | 0f204100     | cbo.zero (sp)
riscv64 | Zknh                     | 13950510     | sha256sum0 a0,a1
x86_64  | AVX or AVX2              | c5f5fed0     | vpaddd %ymm0,%ymm1,%ymm2
x86_64  | FMA                      | c4e2f1b8d0   | vfmadd231pd %xmm0,%xmm1,%xmm2
x86_64  | AVX-512                  | 62f1744858d0 | vaddps %zmm0,%zmm1,%zmm2
x86_64  | SHA                      | 0f38c8c8     | sha1nexte %xmm0,%xmm1
x86_64  | SHA                      | 0f3accc801   | sha1rnds4 $1,%xmm0,%xmm1
x86_64  | ADX                      | 660f38f6c8   | adcx %eax,%ecx
x86_64  | GFNI                     | 660f38cfc8   | gf2p8mulb %xmm0,%xmm1
x86_64  | MOVDIRI                  | 0f38f90424   | movdiri %eax,(%rsp)
x86_64  | RDPID                    | f30fc7f8     | rdpid %rax
"""
# ISA, bytes, assembly.
THERE = """
aarch64 | 2040c21a     | crc32b w0,w1,w2
aarch64 | 2048284e     | aese v0.16b,v1.16b
aarch64 | 20e0e20e     | pmull v0.1q,v1.1d,v2.1d
aarch64 | 2008285e     | sha1h s0,s1
aarch64 | 2040025e     | sha256h q0,q1,v2.4s
aarch64 | 20d4224e     | fadd v0.4s,v1.4s,v2.4s
aarch64 | e07f5fc8     | ldxr x0,[sp]
aarch64 | 3f2303d5     | paciasp
aarch64 | 5f2403d5     | bti c
aarch64 | 20c0231e     | fcvt h0,s1
riscv64 | 3385c502     | mul a0,a1,a2
riscv64 | 2f25b100     | amoadd.w a0,a1,(sp)
riscv64 | 53f5c502     | fadd.d fa0,fa1,fa2
riscv64 | 53f5c500     | fadd.s fa0,fa1,fa2
riscv64 | 0505         | c.addi a0,1
riscv64 | 2f350110     | lr.d a0,(sp)
riscv64 | 0f100000     | fence.i
riscv64 | 0f000001     | pause
riscv64 | 13601100     | prefetch.r 0(sp)
x86_64  | 660f3a63c800 | pcmpistri $0,%xmm0,%xmm1
x86_64  | f20f38f0c1   | crc32 %cl,%eax
x86_64  | f30fb8c8     | popcnt %eax,%ecx
x86_64  | 660f38dcc8   | aesenc %xmm0,%xmm1
x86_64  | 660f3a44c800 | pclmulqdq $0,%xmm0,%xmm1
x86_64  | 0f38f00424   | movbe (%rsp),%eax
x86_64  | c4e270f2d0   | andn %eax,%ecx,%edx
x86_64  | c4e278f5d1   | bzhi %eax,%ecx,%edx
x86_64  | c4e273f5d0   | pdep %eax,%ecx,%edx
x86_64  | c4e273f6d0   | mulx %eax,%ecx,%edx
x86_64  | f30fbdc8     | lzcnt %eax,%ecx
x86_64  | f30fbcc8     | tzcnt %eax,%ecx
x86_64  | 0fc7f0       | rdrand %eax
x86_64  | f3480faec0   | rdfsbase %rax
x86_64  | 0f01d0       | xgetbv
x86_64  | 660f3800c8   | pshufb %xmm0,%xmm1
x86_64  | 660f381cc8   | pabsb %xmm0,%xmm1
x86_64  | 9f           | lahf
x86_64  | 480fc70c24   | cmpxchg16b (%rsp)
x86_64  | 0f01f9       | rdtscp
x86_64  | db0c24       | fisttpl (%rsp)
x86_64  | f30f1efa     | endbr64
x86_64  | 0f0d0c24     | prefetchw (%rsp)
x86_64  | 0fae3c24     | clflush (%rsp)
"""


def rows(table, isa):
    split = (tuple(map(str.strip, line.split("|"))) for line in table.strip().splitlines())
    return [row[1:] for row in split if row[0] == isa]


def run(isa, code, path):
    path.write_bytes(elf_program(isa, bytes.fromhex(code + EXIT[isa])))
    path.chmod(0o755)
    said = []
    guest = LinuxGuest(ISAS[isa], Program(str(path)), report=said.append)
    guest.run(guest.now() + 10_000_000)
    return guest.exit_status, said


@pytest.mark.parametrize("isa", EXIT)
def test_a_program_that_needs_what_the_cpu_lacks_is_told_which_extension(isa, tmp_path):
    for extension, code, text in some(rows(LACKED, isa)):
        status, said = run(isa, code, tmp_path / "program")
        assert status == 128 + 4, text
        (line,) = said
        assert re.search(rf"illegal instruction at 0x400000: .* needs {re.escape(extension)}, which", line), (
            text,
            line,
        )


@pytest.mark.parametrize("isa", EXIT)
def test_what_the_cpu_has_is_executed(isa, tmp_path):
    for code, text in some(rows(THERE, isa)):
        assert run(isa, code, tmp_path / "program") == (7, []), text


@pytest.mark.parametrize("isa", ISAS)
def test_the_documentation_names_every_extension_that_is_lacked(isa):
    page = (Path(__file__).parents[3] / "docs" / "guests.md").read_text(encoding="utf-8")
    lacked = re.findall(rf"^\| {ISAS[isa].title} +\|(?:[^|]*\|){{2}}([^|]*)\|$", page, re.MULTILINE)
    assert sorted(lacked[0].strip().split(", ")) == sorted(
        name for one in {one.name for one in ISAS[isa].lacks} for name in one.split(", ")
    )
