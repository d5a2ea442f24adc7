"""Sheet 10: the changes that mend rules.py, and instructions that show its bugs."""

CHANGES = {
    "x86_64": [
        ('Set(register, "rip", distance)', 'Set(register, "rip", distance + 7)'),
        ('Set(register, "%0"), Set("rsp", "rsp", 8)', 'Set("rsp", "rsp", 8), Set(register, "%0")'),
    ],
    "i386": [
        ("2 + code.data[1]", "2 + (code.data[1] ^ 0x80) - 0x80"),
        ('Set(register, "%0"), Set("esp", "esp", 4)', 'Set("esp", "esp", 4), Set(register, "%0")'),
    ],
    "aarch64": [
        ("import Branch, Check, Compare,", "import Branch, Check, Clear, Compare,"),
        ('Plan((Set(NAMES[insn.bits(4, 0)], "pc", pages << 12)',
         'Plan((Clear("%0", "pc", 0xFFF), Set(NAMES[insn.bits(4, 0)], "%0", pages << 12)'),
        ("Check(Compare.EQ, NAMES[insn.bits(4, 0)])",
         "Check(Compare.EQ, NAMES[insn.bits(4, 0)], bits=64 if insn.bits(31, 31) else 32)"),
    ],
    "riscv64": [
        ("insn.bits(31, 12) << 12", "insn.signed(31, 12) << 12"),
        ('(link, target, Clear("%0", "%0", 1), Set', '(target, Clear("%0", "%0", 1), link, Set'),
    ],
}  # fmt: skip
SHOWN = {
    "x86_64": ("lea rax, [rip+8]", "pop rsp"),
    "i386": ("jmp 0x4000f0", "pop esp"),
    "aarch64": ("adrp x0, #0x1000", "cbz w1, #0x400200"),
    "riscv64": ("auipc a0, 0x80000", "jalr ra, 4(ra)"),
}
