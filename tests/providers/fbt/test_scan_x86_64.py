"""FBT's scanner on x86-64 (FreeBSD sys/cddl/dev/fbt/x86/fbt_isa.c)."""

from __future__ import annotations

import struct

from tests.providers.fbt.assembly import ADDRESS, Scanner

X86 = Scanner("x86_64")

SIMPLE = """
    55        push rbp
    4889e5    mov rbp, rsp
    5d        pop rbp
    c3        ret
"""


def test_a_function_has_an_entry_at_its_push_and_a_return_at_its_ret():
    entry, ret = X86.result(SIMPLE).sites
    assert entry == ("entry", ADDRESS, b"\xcc", 0x55, 1, 0)
    assert ret == ("return", ADDRESS + 5, b"\xcc", 0xC3, 5, 5)


def test_the_entry_need_not_be_the_first_instruction():
    assert X86.sites("""
        f30f1efa  endbr64
        55        push rbp
        c3        ret
    """) == [("entry", 4), ("return", 5)]


def test_the_frame_pointer_need_not_be_set_after_the_push():
    assert X86.sites("""
        55        push rbp
        53        push rbx
        c3        ret
    """) == [("entry", 0), ("return", 2)]


def test_only_the_first_push_is_an_entry():
    assert X86.sites("""
        55        push rbp
        55        push rbp
        c3        ret
    """) == [("entry", 0), ("return", 2)]


def test_a_55_inside_another_instruction_is_not_an_entry():
    assert (
        X86.refusal("""
        b855000000  mov eax, 0x55
        c3          ret
    """)
        == "no frame pointer"
    )


def test_a_push_of_r13_is_not_an_entry_although_its_second_byte_is_55():
    assert (
        X86.refusal("""
        4155      push r13
        c3        ret
    """)
        == "no frame pointer"
    )


def test_a_function_without_a_frame_pointer_has_no_probes_at_all():
    assert (
        X86.refusal("""
        31c0      xor eax, eax
        c3        ret
    """)
        == "no frame pointer"
    )


def test_a_function_of_size_0_has_no_probes():
    assert X86.refusal(SIMPLE, size=0) == "no frame pointer"


def test_the_symbols_size_is_the_limit():
    assert X86.sites(SIMPLE, size=5) == [("entry", 0)]
    assert X86.sites(SIMPLE, size=1) == [("entry", 0)]


def test_an_instruction_that_runs_over_the_limit_is_decoded_with_the_bytes_beyond():
    assert X86.sites("""
        55        push rbp
        b8        .byte 0xb8
    """, beyond=b"\xc3\xc3\xc3\xc3") == [("entry", 0)]  # fmt: skip


def test_bytes_that_are_no_instruction_before_any_push_refuse_the_function():
    listing = """
        31c0      xor eax, eax
        06        .byte 0x06
        55        push rbp
        c3        ret
    """
    assert X86.refusal(listing) == "does not disassemble"
    assert X86.result(listing).refusal.address == ADDRESS + 2


def test_bytes_that_are_no_instruction_after_the_entry_end_the_search_and_keep_what_was_found():
    listing = """
        55        push rbp
        c3        ret
        06        .byte 0x06
        c3        ret
    """
    assert X86.sites(listing) == [("entry", 0), ("return", 1)]
    assert X86.remarks(listing) == [(2, "scan ends")]


def test_every_ret_is_a_site_of_the_one_return_probe():
    assert X86.sites("""
        55        push rbp
        7402      je 0x10005
        5d        pop rbp
        c3        ret
        5d        pop rbp
        c3        ret
    """) == [("entry", 0), ("return", 4), ("return", 6)]


def test_a_c3_inside_another_instruction_is_not_a_return():
    assert X86.sites("""
        55        push rbp
        89c3      mov ebx, eax
        c3        ret
    """) == [("entry", 0), ("return", 3)]


def test_other_ways_to_return_are_not_sites_and_each_has_its_rule():
    listing = """
        55          push rbp
        c20800      ret 8
        f3c3        repz ret
        f2c3        bnd ret
        cb          retf
        ca0400      retf 4
        48cb        retfq
        48cf        iretq
        480f07      sysretq
    """
    assert X86.sites(listing) == [("entry", 0)]
    assert X86.remarks(listing) == [
        (1, "ret imm16"), (4, "rep ret"), (6, "bnd ret"), (8, "far return"), (9, "far return"), (12, "far return"),
        (14, "iretq"), (16, "sysretq"),
    ]  # fmt: skip


def test_a_jump_out_of_the_function_is_a_tail_call_and_no_site():
    listing = """
        55          push rbp
        eb02        jmp 0x10005
        ebfb        jmp 0x10000
        e9fbffffff  jmp 0x10005
        e9f1ffffff  jmp 0x10000
        e900000000  jmp 0x10014
        ebe9        jmp 0xffff
    """
    assert X86.sites(listing) == [("entry", 0)]
    assert X86.remarks(listing) == [(20, "tail call")]
    assert X86.remarks(listing, size=20) == [(15, "tail call")]


def test_a_ret_before_the_entry_is_not_a_site():
    listing = """
        7501      jne 0x10003
        c3        ret
        55        push rbp
        c3        ret
    """
    assert X86.sites(listing) == [("entry", 3), ("return", 4)]
    assert X86.remarks(listing) == [(2, "before the entry")]


def table_with(pointer):
    """Code that, from the push on, holds a pointer whose lowest byte is a c3 that disassembles as a ret."""
    return f"""
        55                  push rbp
        90                  nop
        {struct.pack("<Q", pointer).hex()}    .quad {pointer:#x}
        90                  nop
    """


def test_a_c3_that_is_part_of_a_pointer_into_the_function_is_not_patched():
    # 0x100c3 lies in a function of 256 bytes; its bytes are c3 00 01 00 00 00 00 00, and c3 reads as a ret.
    code = table_with(0x100C3)
    assert X86.sites(code, size=0x100, beyond=b"\x90" * 300) == [("entry", 0)]
    assert (2, "jump table") in X86.remarks(code, size=0x100, beyond=b"\x90" * 300)


def test_the_same_bytes_are_a_return_where_the_pointer_points_elsewhere():
    code = table_with(0x200C3)
    assert X86.sites(code, size=0x100, beyond=b"\x90" * 300) == [("entry", 0), ("return", 2)]


def test_a_pointer_that_ends_in_the_ret_protects_it_too():
    # Read as a pointer, the seven nops and the ret are 0xc390909090909090.
    listing = """
        55        push rbp
        53        push rbx
        90        nop
        90        nop
        90        nop
        90        nop
        90        nop
        90        nop
        90        nop
        c3        ret
    """
    assert X86.sites(listing, address=0xC390_9090_9090_9088) == [("entry", 0)]
    assert X86.sites(listing, address=0xC390_9090_9090_9000) == [("entry", 0), ("return", 9)]


def test_a_pointer_that_would_run_over_the_limit_does_not_count():
    pointer = struct.pack("<Q", 0x100C3)
    listing = f"""
        55                  push rbp
        {pointer.hex()}     .quad 0x100c3
    """
    # Cut before the pointer's last byte: no eight bytes inside the function make a pointer any more.
    assert X86.sites(listing, size=8, beyond=b"\x90" * 300) == [("entry", 0), ("return", 1)]


def test_a_pointer_that_would_begin_before_the_function_does_not_count():
    # Eight bytes back from the ret is before the function: the walk back stops at its start.
    assert X86.sites("""
        55        push rbp
        c3        ret
    """, beyond=bytes(8), size=2) == [("entry", 0), ("return", 1)]  # fmt: skip
