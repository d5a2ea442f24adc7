"""FBT's scanner on AArch64 (FreeBSD sys/cddl/dev/fbt/aarch64/fbt_isa.c)."""

from __future__ import annotations

from tests.providers.fbt.assembly import ADDRESS, Scanner

ARM = Scanner("aarch64")

BRK = bytes.fromhex("a08120d4")

SIMPLE = """
    fd7bbfa9  stp x29, x30, [sp, #-0x10]!
    fd030091  mov x29, sp
    fd7bc1a8  ldp x29, x30, [sp], #0x10
    c0035fd6  ret
"""


def test_a_function_has_an_entry_where_its_frame_opens_and_a_return_at_its_ret():
    entry, ret = ARM.result(SIMPLE).sites
    assert entry == ("entry", ADDRESS, BRK, 0xA9BF7BFD, 1, 0)
    assert ret == ("return", ADDRESS + 12, BRK, 0xD65F03C0, 2, 12)


def test_any_pair_of_registers_opens_a_frame():
    assert ARM.sites("""
        f353bea9  stp x19, x20, [sp, #-0x20]!
        c0035fd6  ret
    """) == [("entry", 0), ("return", 4)]


def test_a_sub_of_the_stack_pointer_opens_a_frame_and_is_tagged_so():
    entry, ret = ARM.result("""
        ff8300d1  sub sp, sp, #0x20
        c0035fd6  ret
    """).sites
    assert (entry.address, entry.rval, entry.saved) == (ADDRESS, 4, 0xD10083FF)
    assert ret.roffset == 4


def test_a_shifted_sub_does_not_open_a_frame():
    assert ARM.sites("""
        ff0740d1  sub sp, sp, #1, lsl #12
        ff4300d1  sub sp, sp, #0x10
        c0035fd6  ret
    """) == [("entry", 4), ("return", 8)]


def test_a_nop_that_comes_first_is_the_entry_and_is_tagged_as_an_stp():
    entry, ret = ARM.result("""
        1f2003d5  nop
        fd7bbfa9  stp x29, x30, [sp, #-0x10]!
        c0035fd6  ret
    """).sites
    assert (entry.address, entry.rval, entry.saved) == (ADDRESS, 1, 0xD503201F)
    assert ret.roffset == 8


def test_a_nop_further_on_is_not_an_entry():
    assert ARM.sites("""
        000080d2  mov x0, #0
        1f2003d5  nop
        fd7bbfa9  stp x29, x30, [sp, #-0x10]!
        c0035fd6  ret
    """) == [("entry", 8), ("return", 12)]


def test_a_bti_is_stepped_over_and_never_patched():
    for bti in ("1f2403d5  bti", "5f2403d5  bti c", "9f2403d5  bti j", "df2403d5  bti jc"):
        assert ARM.sites(f"""
            {bti}
            fd7bbfa9  stp x29, x30, [sp, #-0x10]!
            c0035fd6  ret
        """) == [("entry", 4), ("return", 8)]


def test_a_nop_after_a_bti_is_the_entry():
    assert ARM.sites("""
        5f2403d5  bti c
        1f2003d5  nop
        c0035fd6  ret
    """) == [("entry", 4), ("return", 8)]


def test_only_one_bti_is_stepped_over_before_the_nop():
    assert (
        ARM.refusal("""
        5f2403d5  bti c
        5f2403d5  bti c
        1f2003d5  nop
        c0035fd6  ret
    """)
        == "no frame"
    )


def test_paciasp_is_passed_and_not_patched():
    assert ARM.sites("""
        3f2303d5  paciasp
        fd7bbfa9  stp x29, x30, [sp, #-0x10]!
        c0035fd6  ret
    """) == [("entry", 4), ("return", 8)]


def test_an_stp_or_a_sub_of_another_register_does_not_end_the_search():
    assert ARM.sites("""
        4004bfa9  stp x0, x1, [x2, #-0x10]!
        201000d1  sub x0, x1, #4
        e01300d1  sub x0, sp, #4
        1f1000d1  sub sp, x0, #4
        fd7bbfa9  stp x29, x30, [sp, #-0x10]!
        c0035fd6  ret
    """) == [("entry", 16), ("return", 20)]


def test_neither_a_plain_stp_nor_one_of_w_registers_opens_a_frame():
    assert (
        ARM.refusal("""
        fd7b01a9  stp x29, x30, [sp, #0x10]
        e007bf29  stp w0, w1, [sp, #-8]!
        c0035fd6  ret
    """)
        == "no frame"
    )


def test_a_leaf_function_has_no_probes():
    assert (
        ARM.refusal("""
        0000018b  add x0, x0, x1
        c0035fd6  ret
    """)
        == "no frame"
    )


def test_the_symbols_size_is_the_limit():
    assert ARM.refusal(SIMPLE, size=0) == "no frame"
    assert ARM.sites(SIMPLE, size=4) == [("entry", 0)]
    assert ARM.sites(SIMPLE, size=12) == [("entry", 0)]
    assert ARM.sites(SIMPLE, size=13) == [("entry", 0), ("return", 12)]


def test_a_nop_behind_a_lone_bti_is_beyond_the_limit():
    assert ARM.refusal("""
        5f2403d5  bti c
    """, beyond=bytes.fromhex("1f2003d5")) == "no frame"  # fmt: skip


def test_every_ret_is_a_site():
    assert ARM.sites("""
        fd7bbfa9  stp x29, x30, [sp, #-0x10]!
        c0035fd6  ret
        c0035fd6  ret
    """) == [("entry", 0), ("return", 4), ("return", 8)]


def test_a_branch_out_of_the_function_is_a_return():
    site = ARM.result("""
        fd7bbfa9  stp x29, x30, [sp, #-0x10]!
        ff030014  b #0x11000
    """).sites[1]
    assert (site.probe, site.address, site.rval, site.saved) == ("return", ADDRESS + 4, 3, 0x140003FF)


def test_a_branch_whose_distance_times_four_stays_inside_is_not_a_return():
    # 2 instructions on is 8 bytes; taken for 32 it must still be inside: 0x10004 + 32 < 0x10028.
    listing = """
        fd7bbfa9  stp x29, x30, [sp, #-0x10]!
        02000014  b #0x1000c
    """
    assert ARM.sites(listing, size=40, beyond=bytes(32)) == [("entry", 0)]
    assert ARM.sites(listing, size=36, beyond=bytes(32)) == [("entry", 0), ("return", 4)]


def test_a_branch_inside_the_function_that_is_taken_for_a_tail_call_is_a_site_with_a_remark():
    listing = """
        fd7bbfa9  stp x29, x30, [sp, #-0x10]!
        02000014  b #0x1000c
        1f2003d5  nop
        c0035fd6  ret
    """
    assert ARM.sites(listing) == [("entry", 0), ("return", 4), ("return", 12)]
    assert ARM.remarks(listing) == [(4, "not a tail call")]


def test_a_branch_to_the_limit_itself_is_a_tail_call():
    listing = """
        fd7bbfa9  stp x29, x30, [sp, #-0x10]!
        01000014  b #0x10008
    """
    assert ARM.sites(listing) == [("entry", 0), ("return", 4)]
    assert ARM.remarks(listing) == []


def test_a_backward_branch_is_never_a_return_even_when_it_leaves_the_function():
    listing = """
        fd7bbfa9  stp x29, x30, [sp, #-0x10]!
        ffffff17  b #0x10000
        fdffff17  b #0xfffc
        c0035fd6  ret
    """
    assert ARM.sites(listing) == [("entry", 0), ("return", 12)]
    assert ARM.remarks(listing) == [(8, "backward tail call")]


def test_other_ways_out_are_not_sites_and_each_has_its_rule():
    listing = """
        fd7bbfa9  stp x29, x30, [sp, #-0x10]!
        20005fd6  ret x1
        ff0b5fd6  retaa
        ff0f5fd6  retab
        00021fd6  br x16
        e0039fd6  eret
        21000054  b.ne #0x1001c
        000000b4  cbz x0, #0x1001c
    """
    assert ARM.sites(listing) == [("entry", 0)]
    assert ARM.remarks(listing) == [(4, "ret xn"), (8, "retaa"), (12, "retaa"), (16, "br"), (20, "eret")]


def test_a_return_before_the_entry_is_not_a_site():
    listing = """
        400000b4  cbz x0, #0x10008
        c0035fd6  ret
        fd7bbfa9  stp x29, x30, [sp, #-0x10]!
        c0035fd6  ret
    """
    assert ARM.sites(listing) == [("entry", 8), ("return", 12)]
    assert ARM.remarks(listing) == [(4, "before the entry")]


def test_data_that_looks_like_a_ret_is_a_return_for_there_is_not_a_guard_against_tables():
    assert ARM.sites("""
        fd7bbfa9          stp x29, x30, [sp, #-0x10]!
        c0035fd600000000  .quad 0xd65f03c0
    """) == [("entry", 0), ("return", 4)]
