"""FBT's scan on i386 (FreeBSD sys/cddl/dev/fbt/x86/fbt_isa.c, its i386 branches)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emu.isa.x86.instruction import refused
from tests.providers.fbt.assembly import ADDRESS, Scanner

I386 = Scanner("i386")


def sites(listing, **options):
    return I386.result(listing, **options).sites


def test_the_entry_is_the_push_of_a_frame_and_the_patch_a_lock_prefix():
    entry, _ = sites("""
        55        push ebp
        89e5      mov ebp, esp
        5d        pop ebp
        c3        ret
    """)
    assert (entry.probe, entry.address, entry.patch, entry.saved, entry.rval, entry.roffset) == (
        "entry", ADDRESS, b"\xf0", 0x55, 1, 0,
    )  # fmt: skip


def test_both_encodings_of_the_move_make_a_frame():
    assert I386.sites("""
        55        push ebp
        8bec      mov ebp, esp
    """)


@pytest.mark.parametrize("listing", [
    """
        89e5      mov ebp, esp
        c3        ret
    """,
    """
        90        nop
        55        push ebp
        89e5      mov ebp, esp
    """,
    """
        55        push ebp
        90        nop
        89e5      mov ebp, esp
    """,
])  # fmt: skip
def test_anything_else_at_the_start_denies_a_function_its_probes(listing):
    assert I386.refusal(listing) == "no frame pointer"


def test_a_return_is_the_pop_or_leave_before_a_ret_and_its_offset_is_that_of_the_ret():
    _, *returns = sites("""
        55        push ebp
        89e5      mov ebp, esp
        5d        pop ebp
        c3        ret
        c9        leave
        c20800    ret 8
    """)
    assert [(site.probe, site.address - ADDRESS, site.saved, site.rval, site.roffset) for site in returns] == [
        ("return", 3, 0x5D, 2, 4),
        ("return", 5, 0xC9, 3, 6),
    ]


def test_a_pop_without_a_ret_and_a_ret_without_a_pop_are_no_returns():
    listing = """
        55        push ebp
        89e5      mov ebp, esp
        5d        pop ebp
        90        nop
        c3        ret
    """
    assert I386.sites(listing) == [("entry", 0)]
    assert I386.remarks(listing) == [(5, "ret alone")]


def test_a_site_that_is_part_of_a_pointer_into_the_function_is_left_alone():
    listing = f"""
        55        push ebp
        89e5      mov ebp, esp
        5d        pop ebp
        c3        ret
        90        nop
        {(ADDRESS + 2).to_bytes(4, "little").hex()} .long
    """
    assert len(I386.sites(listing)) == 2
    # The pointer's bytes are those of the site: 5d c3 xx yy, with the function where they point.
    address = 0x0001_C35D - 4
    (entry,) = sites("""
        55        push ebp
        89e5      mov ebp, esp
        5d        pop ebp
        c3        ret
        0100      add dword ptr [eax], eax
    """, address=address)  # fmt: skip
    assert entry.address == address


@given(st.binary(min_size=1, max_size=14))
def test_every_byte_after_a_frames_lock_makes_an_undefined_instruction(rest):
    """What stands behind FBT's patches: mov ebp, esp, ret, ret imm16."""
    for kept in (b"\x89\xe5", b"\x8b\xec", b"\xc3", b"\xc2"):
        assert refused(b"\xf0" + kept + rest)


@pytest.mark.parametrize(
    "code", ["f0ff00", "f00fb10f", "f0830001", "f08703", "f00fc70f", "f0f718", "f00fba2801", "f0000c24"]
)
def test_a_lock_that_the_processor_takes_is_not_refused(code):
    assert not refused(bytes.fromhex(code))


@pytest.mark.parametrize("code", ["f0ffc0", "f03900", "f090", "f08b00", "f0fff0", "f0f700", "f00fba2001", "f00fb1c1"])
def test_a_lock_without_memory_to_lock_or_before_another_instruction_is_refused(code):
    assert refused(bytes.fromhex(code))
