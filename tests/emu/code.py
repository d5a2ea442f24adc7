"""Small programs as bytes, with their assembly beside them: the same on every ISA."""

# add1(a, b): a frame, a + b, return.
ADD = {
    "x86_64": bytes.fromhex("55" "4889e5" "488d0437" "5d" "c3"),
    # push %rbp; mov %rsp,%rbp; lea (%rdi,%rsi),%rax; pop %rbp; ret
    "aarch64": bytes.fromhex("fd7bbfa9" "fd030091" "0000018b" "fd7bc1a8" "c0035fd6"),
    # stp x29,x30,[sp,#-16]!; mov x29,sp; add x0,x0,x1; ldp x29,x30,[sp],#16; ret
    "riscv64": bytes.fromhex("4111" "06e4" "2e95" "a260" "4101" "8280"),
    # addi sp,sp,-16; sd ra,8(sp); add a0,a0,a1; ld ra,8(sp); addi sp,sp,16; ret
}
ADD_INSTRUCTIONS = {"x86_64": 5, "aarch64": 5, "riscv64": 6}
ADD_ENTRY = {"x86_64": 0, "aarch64": 0, "riscv64": 2}
"""Offset of the instruction FBT would patch at entry."""

# loop(n): count n down to 0.
LOOP = {
    "x86_64": bytes.fromhex("48ffcf" "75fb" "c3"),  # 1: dec %rdi; jnz 1b; ret
    "aarch64": bytes.fromhex("000400f1" "e1ffff54" "c0035fd6"),  # 1: subs x0,x0,#1; b.ne 1b; ret
    "riscv64": bytes.fromhex("7d15" "7dfd" "8280"),  # 1: addi a0,a0,-1; bnez a0,1b; ret
}

# load(p): a few instructions, then a load from p in the middle of a block.
LOAD = {
    "x86_64": bytes.fromhex("31c0" "ffc0" "488b07" "90" "90" "c3"),
    # xor %eax,%eax; inc %eax; mov (%rdi),%rax; nop; nop; ret
    "aarch64": bytes.fromhex("210080d2" "42008052" "000040f9" "1f2003d5" "1f2003d5" "c0035fd6"),
    # mov x1,#1; mov w2,#2; ldr x0,[x0]; nop; nop; ret
    "riscv64": bytes.fromhex("8545" "0946" "0861" "0100" "0100" "8280"),
    # li a1,1; li a2,2; ld a0,0(a0); nop; nop; ret
}
