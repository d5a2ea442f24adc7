"""Small programs as bytes, with their assembly beside them: the same on every ISA."""

# add1(a, b): a frame, a + b, return.
ADD = {
    "x86_64": bytes.fromhex("554889e5488d04375dc3"),
    # push rbp; mov rbp,rsp; lea rax,[rdi+rsi]; pop rbp; ret
    "aarch64": bytes.fromhex("fd7bbfa9fd0300910000018bfd7bc1a8c0035fd6"),
    # stp x29,x30,[sp,#-16]!; mov x29,sp; add x0,x0,x1; ldp x29,x30,[sp],#16; ret
    "riscv64": bytes.fromhex("411106e42e95a26041018280"),
    # addi sp,sp,-16; sd ra,8(sp); add a0,a0,a1; ld ra,8(sp); addi sp,sp,16; ret
    "i386": bytes.fromhex("5589e58b450803450c5dc3"),
    # push ebp; mov ebp,esp; mov eax,[ebp+8]; add eax,[ebp+12]; pop ebp; ret
}
ADD_INSTRUCTIONS = {"x86_64": 5, "aarch64": 5, "riscv64": 6, "i386": 6}
# Offset of the instruction FBT would patch at entry.
ADD_ENTRY = {"x86_64": 0, "aarch64": 0, "riscv64": 2, "i386": 0}

# loop(n): count n down to 0.
LOOP = {
    "x86_64": bytes.fromhex("48ffcf75fbc3"),  # 1: dec rdi; jnz 1b; ret
    "aarch64": bytes.fromhex("000400f1e1ffff54c0035fd6"),  # 1: subs x0,x0,#1; b.ne 1b; ret
    "riscv64": bytes.fromhex("7d157dfd8280"),  # 1: addi a0,a0,-1; bnez a0,1b; ret
    "i386": bytes.fromhex("ff4c240475fac3"),  # 1: dec dword [esp+4]; jnz 1b; ret
}

# load(p): a few instructions, then a load from p in the middle of a block.
LOAD = {
    "x86_64": bytes.fromhex("31c0ffc0488b079090c3"),
    # xor eax,eax; inc eax; mov rax,[rdi]; nop; nop; ret
    "aarch64": bytes.fromhex("210080d242008052000040f91f2003d51f2003d5c0035fd6"),
    # mov x1,#1; mov w2,#2; ldr x0,[x0]; nop; nop; ret
    "riscv64": bytes.fromhex("854509460861010001008280"),
    # li a1,1; li a2,2; ld a0,0(a0); nop; nop; ret
    "i386": bytes.fromhex("8b4c2404408b019090c3"),
    # mov ecx,[esp+4]; inc eax; mov eax,[ecx]; nop; nop; ret
}

# exclusive(p): load-exclusive from p, breakpoint, store-exclusive there; returns what that says: 0 for success.
EXCLUSIVE = {
    "aarch64": bytes.fromhex("01fc5fc8a08120d401fc02c8e00302aac0035fd6"),
    # ldaxr x1,[x0]; brk #0x40d; stlxr w2,x1,[x0]; mov x0,x2; ret
    "riscv64": bytes.fromhex("af350510730010002f35b5188280"),
    # lr.d a1,(a0); ebreak; sc.d a0,a1,(a0); ret
}
