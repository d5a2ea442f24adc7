"""FBT's scanner on RISC-V (FreeBSD sys/cddl/dev/fbt/riscv/fbt_isa.c)."""

from __future__ import annotations

from tests.providers.fbt.assembly import ADDRESS, Scanner

RISCV = Scanner("riscv64")

EBREAK, C_EBREAK = bytes.fromhex("73001000"), bytes.fromhex("0290")

LONG = """
    130101fe  addi sp, sp, -0x20
    233c1100  sd ra, 0x18(sp)
    83308101  ld ra, 0x18(sp)
    67800000  ret
"""


def test_a_function_of_long_instructions_has_an_entry_where_it_saves_ra_and_a_return_at_its_ret():
    entry, ret = RISCV.result(LONG).sites
    assert entry == ("entry", ADDRESS + 4, EBREAK, 0x00113C23, 1, 0)
    assert ret == ("return", ADDRESS + 12, EBREAK, 0x00008067, 3, 12)


def test_a_compressed_function_is_patched_with_short_breakpoints_and_32_bits_are_kept():
    entry, ret = RISCV.result("""
        0111      c.addi sp, -0x20
        06ec      c.sdsp ra, 0x18(sp)
        e260      c.ldsp ra, 0x18(sp)
        8280      c.jr ra
    """).sites
    assert entry == ("entry", ADDRESS + 2, C_EBREAK, 0x60E2EC06, 2, 0)
    assert ret == ("return", ADDRESS + 6, C_EBREAK, 0x8082, 4, 6)


def test_what_follows_the_function_is_kept_with_a_compressed_return_at_its_end():
    ret = RISCV.result("""
        06ec      c.sdsp ra, 0x18(sp)
        8280      c.jr ra
    """, beyond=b"\x11\x22\x33\x44").sites[1]  # fmt: skip
    assert ret.saved == 0x2211_8082


def test_a_negative_offset_is_a_save_of_ra_too():
    assert RISCV.sites("""
        233c11fe  sd ra, -8(sp)
        67800000  ret
    """) == [("entry", 0), ("return", 4)]


def test_saving_another_register_or_elsewhere_is_not_an_entry():
    assert (
        RISCV.refusal("""
        22ec      c.sdsp s0, 0x18(sp)
        0100      c.nop
        23301500  sd ra, 0(a0)
        23348100  sd s0, 8(sp)
        67800000  ret
    """)
        == "ra is not saved"
    )


def test_a_leaf_function_has_no_probes():
    assert (
        RISCV.refusal("""
        2e95      c.add a0, a1
        8280      c.jr ra
    """)
        == "ra is not saved"
    )


def test_the_symbols_size_is_the_limit():
    assert RISCV.refusal(LONG, size=0) == "ra is not saved"
    assert RISCV.refusal(LONG, size=4) == "ra is not saved"
    assert RISCV.sites(LONG, size=12) == [("entry", 4)]


def test_a_match_in_the_half_beyond_the_limit_ends_the_search():
    # The walk looks at both halves of the word at +4, of which only the first belongs to the function.
    listing = """
        0111      c.addi sp, -0x20
        0100      c.nop
        0100      c.nop
    """
    assert RISCV.refusal(listing, beyond=bytes.fromhex("06ec8280")) == "ra is not saved"


def test_an_upper_half_is_seen_after_its_lower_half():
    assert RISCV.sites("""
        06ec      c.sdsp ra, 0x18(sp)
        06e4      c.sdsp ra, 8(sp)
        8280      c.jr ra
    """) == [("entry", 0), ("return", 4)]


def test_after_a_compressed_return_the_walk_continues_four_bytes_further():
    # The return at +4 is found; the one right behind it, at +6, is inside those four bytes.
    listing = """
        06ec      c.sdsp ra, 0x18(sp)
        0100      c.nop
        8280      c.jr ra
        8280      c.jr ra
        8280      c.jr ra
    """
    assert RISCV.sites(listing) == [("entry", 0), ("return", 4), ("return", 8)]
    assert RISCV.remarks(listing) == [(6, "out of step")]


def test_a_long_return_that_the_walk_steps_into_the_middle_of_is_missed():
    # The entry at +2 sets the phase: words at +2, +6, +10.  The ret at +4 lies across two of them.
    listing = """
        0111      c.addi sp, -0x20
        06ec      c.sdsp ra, 0x18(sp)
        67800000  ret
        0100      c.nop
    """
    assert RISCV.sites(listing) == [("entry", 2)]
    assert RISCV.remarks(listing) == [(4, "out of step")]


def test_a_long_return_in_step_after_a_compressed_entry_is_found():
    assert RISCV.sites("""
        0111      c.addi sp, -0x20
        06ec      c.sdsp ra, 0x18(sp)
        0100      c.nop
        67800000  ret
    """) == [("entry", 2), ("return", 6)]


def test_half_of_a_long_instruction_that_looks_like_a_return_is_taken_for_one():
    # lui a0, 0x80820: its upper half is the bits of c.jr ra.
    listing = """
        06ec      c.sdsp ra, 0x18(sp)
        0100      c.nop
        37058280  lui a0, 0x80820
        8280      c.jr ra
    """
    assert RISCV.sites(listing) == [("entry", 0), ("return", 6)]
    assert RISCV.remarks(listing) == [(6, "half an instruction"), (8, "out of step")]


def test_half_of_a_long_instruction_that_looks_like_a_save_is_taken_for_the_entry():
    listing = """
        370506ec  lui a0, 0xec060
        0100      c.nop
        8280      c.jr ra
    """
    assert RISCV.sites(listing) == [("entry", 2), ("return", 6)]
    assert RISCV.remarks(listing) == [(2, "half an instruction")]


def test_a_save_of_ra_that_the_walk_skips_refuses_the_function_with_its_own_rule():
    listing = """
        0100      c.nop
        233c1100  sd ra, 0x18(sp)
        8280      c.jr ra
    """
    assert RISCV.refusal(listing) == "ra saved out of step"


def test_a_save_of_ra_that_the_walk_passes_by_is_named_where_half_an_instruction_was_taken_for_it():
    # What gcc 12 makes of a function with a frame of 4 KiB: the real save at +6 is out of step, the addi at +12 is not.
    listing = """
        130101d2  addi sp, sp, -0x2e0
        7d76      c.lui a2, 0xfffff
        233c112c  sd ra, 0x2d8(sp)
        fd72      c.lui t0, 0xfffff
        130706fe  addi a4, a2, -0x20
        8280      c.jr ra
    """
    assert RISCV.sites(listing) == [("entry", 14), ("return", 16)]
    assert RISCV.remarks(listing) == [(6, "ra saved out of step"), (14, "half an instruction")]


def test_jumps_out_of_the_function_are_tail_calls_and_no_sites():
    listing = """
        06ec      c.sdsp ra, 0x18(sp)
        01a0      c.j 0
        f5bf      c.j -4
        edb7      c.j -0x16
        6f008000  j 8
        6ff0dffe  j -0x14
        6f004000  j 4
        05a0      c.j 0x20
        0100      c.nop
    """
    assert RISCV.sites(listing) == [("entry", 0)]
    assert RISCV.remarks(listing) == [(6, "tail call"), (12, "tail call"), (20, "tail call")]


def test_other_ways_out_are_not_sites_and_each_has_its_rule():
    listing = """
        06ec      c.sdsp ra, 0x18(sp)
        8282      c.jr t0
        67800200  jr t0
        67804000  jalr zero, ra, 4
        73002010  sret
        73002030  mret
    """
    assert RISCV.sites(listing) == [("entry", 0)]
    assert RISCV.remarks(listing) == [(2, "jr"), (4, "jr"), (8, "jr"), (12, "sret"), (16, "mret")]


def test_a_return_before_the_entry_is_not_a_site():
    listing = """
        19c1      c.beqz a0, 6
        0100      c.nop
        8280      c.jr ra
        06ec      c.sdsp ra, 0x18(sp)
        8280      c.jr ra
    """
    assert RISCV.sites(listing) == [("entry", 6), ("return", 8)]
    assert RISCV.remarks(listing) == [(4, "before the entry")]
