"""The measured loops, as bytes, with their assembly beside them.

Each calls a function with a frame `n` times (argument 0); `ENTRY` is the offset of the function,
`SITE` that of the instruction that FBT patches in it.
"""

from __future__ import annotations

LOOP = {
    # push rbx; mov rbx,rdi; 1: call f; dec rbx; jnz 1b; pop rbx; ret; nop...
    # f: push rbp; mov rbp,rsp; lea rax,[rdi+rsi]; pop rbp; ret
    "x86_64": bytes.fromhex("534889fbe80700000048ffcb75f65bc3554889e5488d04375dc3"),
    # stp x19,x30,[sp,#-16]!; mov x19,x0; 1: bl f; subs x19,x19,#1; b.ne 1b; ldp x19,x30,[sp],#16; ret
    # f: stp x29,x30,[sp,#-16]!; mov x29,sp; add x0,x0,x1; ldp x29,x30,[sp],#16; ret
    "aarch64": bytes.fromhex(
        "f37bbfa9f30300aa05000094730600f1c1ffff54f37bc1a8c0035fd6fd7bbfa9fd0300910000018bfd7bc1a8c0035fd6"
    ),
    # addi sp,sp,-16; sd ra,8(sp); sd s1,0(sp); mv s1,a0; 1: jal f; addi s1,s1,-1; bnez s1,1b
    # ld ra,8(sp); ld s1,0(sp); addi sp,sp,16; ret
    # f: addi sp,sp,-16; sd ra,8(sp); add a0,a0,a1; ld ra,8(sp); addi sp,sp,16; ret
    "riscv64": bytes.fromhex("411106e426e0aa84ef000001fd14edfca260826441018280411106e42e95a26041018280"),
    # push ebx; mov ebx,[esp+8]; 1: call f; dec ebx; jnz 1b; pop ebx; ret
    # f: push ebp; mov ebp,esp; mov eax,[ebp+8]; pop ebp; ret
    "i386": bytes.fromhex("538b5c2408e8050000004b75f85bc35589e58b45085dc3"),
}
ENTRY = {"x86_64": 16, "aarch64": 28, "riscv64": 24, "i386": 15}
SITE = {"x86_64": 16, "aarch64": 28, "riscv64": 26, "i386": 15}

# 1: trap; count down; loop; ret: an empty callback can return from this trap.
TRAPS = {
    "x86_64": bytes.fromhex("cc48ffcf75fac3"),  # 1: int3; dec rdi; jnz 1b; ret
    "aarch64": bytes.fromhex("010000d4000400f1c1ffff54c0035fd6"),  # 1: svc #0; subs x0,x0,#1; b.ne 1b; ret
    "riscv64": bytes.fromhex("730000007d156dfd8280"),  # 1: ecall; addi a0,a0,-1; bnez a0,1b; ret
    "i386": bytes.fromhex("ccff4c240475f9c3"),  # 1: int3; dec dword [esp+4]; jnz 1b; ret
}

# A whole program: n times a function of three instructions, and then exit(0). Offsets of its call, of f's nop (a
# marker), of f's addition and of its return.
CALLS = 20_000
PROGRAM = {
    # mov ebx,20000; 1: call f; dec ebx; jnz 1b; mov eax,60; xor edi,edi; syscall; f: nop; lea rax,[rax+1]; ret
    "x86_64": bytes.fromhex("bb204e0000e80d000000ffcb75f7b83c00000031ff0f0590488d4001c3"),
    # mov x19,#20000; 1: bl f; subs x19,x19,#1; b.ne 1b; mov x8,#93; mov x0,#0; svc #0; f: nop; add x0,x0,#1; ret
    "aarch64": bytes.fromhex("13c489d206000094730600f1c1ffff54a80b80d2000080d2010000d41f2003d500040091c0035fd6"),
    # li s1,20000; 1: jal f; addi s1,s1,-1; bnez s1,1b; li a7,93; li a0,0; ecall; f: nop; addi a0,a0,1; ret
    "riscv64": bytes.fromhex("95649b8404e2ef002001fd14edfc9308d005014573000000130000001305150067800000"),
    # mov esi,20000; 1: call f; dec esi; jnz 1b; mov eax,1; xor ebx,ebx; int 0x80; f: nop; lea eax,[eax+1]; ret
    "i386": bytes.fromhex("be204e0000e80c0000004e75f8b80100000031dbcd80908d4001c3"),
}
CALL = {"x86_64": 0x5, "aarch64": 0x4, "riscv64": 0x6, "i386": 0x5}
NOP = {"x86_64": 0x17, "aarch64": 0x1C, "riscv64": 0x18, "i386": 0x16}
ADDITION = {"x86_64": 0x18, "aarch64": 0x20, "riscv64": 0x1C, "i386": 0x17}
RETURN = {"x86_64": 0x1C, "aarch64": 0x24, "riscv64": 0x20, "i386": 0x1A}
