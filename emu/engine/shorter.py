"""Shorter machine code for what QEMU translates: loads, stores, and sums of 32 bits.

QEMU makes the machine code of a block an operation at a time.  In a guest without page tables of
its own, most of what a program executes is these two pieces of code, so they are made shorter when
a block runs for the first time (`shorten_block` in `emu.engine.shorter_code`, which `ir/jumps.ll`
calls):

    a load or a store                   what replaces it

    mov  %address,%rdi                  the same
    shr  $6,%rdi                        the same
    and  MASK(%rbp),%rdi                the same
    add  TABLE(%rbp),%rdi               the same
    lea  3(%address),%rsi               the same
    and  $-4096,%rsi                    the same
    cmp  (%rdi),%rsi                    cmp  (%rdi),%rsi
    mov  %address,%rsi                  jne  miss
    jne  miss                           mov  0x20(%rdi),%rsi
    add  0x20(%rdi),%rsi                mov  (%rsi,%address),%value
    mov  (%rsi),%value

    miss: mov  %rbp,%rdi                miss: mov  %address,%rsi
          mov  $operation,%edx                push %rbp
                                              pop  %rdi
                                              push $operation
                                              pop  %rdx

    a sum of 32 bits                    what replaces it

    add  $8,%rbx                        add  $8,%ebx
    mov  %ebx,%ebx

A comparison next to its jump is one operation of the host, the second move is needed by misses
only, and the last addition is done by the address.  A 32-bit operation clears the upper half of its
register by itself.  All pieces keep their places and their sizes: what became shorter is filled
with prefixes that have no effect, so that QEMU finds the guest's instruction of an address as
before, and every jump leads to where it did.

What is changed is found by decoding the block from its beginning, an instruction at a time, up to
the first jump that nothing behind it is reached from.  An instruction that is not in the table
below ends that; what is not exactly a known piece stays.

A value that QEMU has in a register does not survive a label, so nothing jumps between the two
instructions of a sum, or into a load; and it makes a comparison of its own before each conditional
jump, so nothing reads the flags of the sum.

Source: Unicorn 2.1.4, qemu/tcg/i386/tcg-target.inc.c (tcg_out_tlb_load, tcg_out_qemu_ld_direct,
tcg_out_qemu_st_direct, tcg_out_qemu_ld_slow_path, tcg_out_qemu_st_slow_path), qemu/tcg/tcg.c
(tcg_reg_alloc_bb_end); the bytes were observed.  The forms of instructions: Intel SDM volume 2,
appendix A.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

# The parts behind an opcode: whether it is known, a ModRM byte, an immediate byte.
KNOWN: Final = 1
MODRM: Final = 2
BYTE: Final = 4
# Four immediate bytes, or two with the prefix 66; eight with REX.W.
FULL: Final = 8
WIDE: Final = 16
# An immediate that only the first two operations of the ModRM byte have.
SOME: Final = 32
# The number of opcodes of one byte; those behind 0f are the second half of the table.
SECOND: Final = 0x100


def _forms() -> Iterable[tuple[Iterable[int], int]]:
    """Yield opcodes and what follows them."""
    for first in range(0, 0x40, 8):
        yield range(first, first + 4), MODRM
        yield (first + 4,), BYTE
        yield (first + 5,), FULL
    yield (*range(0x50, 0x60), *range(0x90, 0xA0), 0xC3), 0
    yield (0x63, *range(0x84, 0x8F), *range(0xD0, 0xD4), 0xFE, 0xFF), MODRM
    yield (0x6A, *range(0x70, 0x80), 0xA8, *range(0xB0, 0xB8), 0xEB), BYTE
    yield (0x68, 0xA9, 0xE8, 0xE9), FULL
    yield (0x6B, 0x80, 0x83, 0xC0, 0xC1, 0xC6), MODRM | BYTE
    yield (0x69, 0x81, 0xC7), MODRM | FULL
    yield range(0xB8, 0xC0), FULL | WIDE
    yield (0xF6,), MODRM | BYTE | SOME
    yield (0xF7,), MODRM | FULL | SOME
    # Behind 0f.  The bytes 38 and 3a are followed by a byte more, and 3a by an immediate, too.
    yield (*range(0x110, 0x118), *range(0x128, 0x130), *range(0x140, 0x170), *range(0x174, 0x177), 0x11F), MODRM
    yield (0x138, *range(0x17E, 0x180), *range(0x190, 0x1A0), 0x1A3, 0x1A5, 0x1AB, 0x1AD, 0x1AE, 0x1AF), MODRM
    yield (*range(0x1B0, 0x1B2), 0x1B3, 0x1B6, 0x1B7, 0x1BB, *range(0x1BC, 0x1C2), *range(0x1D0, 0x1FF)), MODRM
    yield (0x13A, *range(0x170, 0x174), 0x1A4, 0x1AC, 0x1BA, 0x1C2, *range(0x1C4, 0x1C7)), MODRM | BYTE
    yield range(0x180, 0x190), FULL
    yield (0x177, *range(0x1C8, 0x1D0)), 0


def _table() -> bytes:
    table = bytearray(2 * SECOND)
    for opcodes, form in _forms():
        for opcode in opcodes:
            table[opcode] = form | KNOWN
    return bytes(table)


# The parts behind an opcode, by the opcode.
FORMS: Final = _table()
