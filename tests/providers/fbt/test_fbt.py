"""The FBT provider: probes of a module, patches, firings (FreeBSD sys/cddl/dev/fbt/fbt.c)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from providers.base import ArgumentDescription
from providers.fbt import Signature
from providers.fbt.records import TABLE_SIZE, bucket_of
from tests.providers.fbt.fakes import FakeFrame, Kernel, Memory

X86 = {
    "sys_read": """
        55        push rbp
        7402      je 0xffffffff80200005
        5d        pop rbp
        c3        ret
        5d        pop rbp
        c3        ret
    """,
    "leaf": """
        31c0      xor eax, eax
        c3        ret
    """,
    "dtrace_probe": """
        55        push rbp
        c3        ret
    """,
    "panic": """
        55        push rbp
        ebfe      jmp 0xffffffff80200031
    """,
}
ARM = {
    "sys_read": """
        fd7bbfa9  stp x29, x30, [sp, #-0x10]!
        c0035fd6  ret
    """,
    "sys_write": """
        ff4300d1  sub sp, sp, #0x10
        c0035fd6  ret
        c0035fd6  ret
    """,
}
RISCV = {
    "sys_read": """
        06ec      c.sdsp ra, 0x18(sp)
        8280      c.jr ra
    """,
    "sys_write": """
        233c1100  sd ra, 0x18(sp)
        67800000  ret
    """,
}
I386 = {
    "sys_read": """
        55        push ebp
        89e5      mov ebp, esp
        5d        pop ebp
        c3        ret
        c9        leave
        c3        ret
    """,
}
LISTINGS = {"x86_64": X86, "aarch64": ARM, "riscv64": RISCV, "i386": I386}
READ = Memory.BASE

every_isa = pytest.mark.parametrize("isa", list(LISTINGS))


def kernel(isa="x86_64", **options):
    return Kernel(isa, LISTINGS[isa], **options).provide()


# Probes of a module.


def test_a_function_has_one_entry_probe_and_one_return_probe_for_all_its_returns():
    assert kernel().probes() == ["fbt:kernel:sys_read:entry", "fbt:kernel:sys_read:return", "fbt:kernel:panic:entry"]


def test_a_record_is_kept_for_each_return_in_ascending_order():
    _, record = kernel().probe("sys_read", "return")
    assert [(each.address - READ, each.roffset) for each in record.of_probe()] == [(4, 4), (6, 6)]


@pytest.mark.parametrize(("isa", "aframes"), [("x86_64", 3), ("aarch64", 4), ("riscv64", 5), ("i386", 3)])
def test_stack_traces_leave_out_as_many_frames_as_the_isa_has(isa, aframes):
    assert {frames for _, frames, _ in kernel(isa).framework.probes.values()} == {aframes}


def test_ko_is_not_part_of_the_module_in_a_probes_name():
    assert kernel(name="foo.ko").probes()[0] == "fbt:foo:sys_read:entry"


def test_a_module_is_scanned_once():
    target = kernel()
    entries = target.module.fbt_entries
    assert entries == 4
    target.provide()
    assert (len(target.framework.probes), target.module.fbt_entries) == (3, entries)


@pytest.mark.parametrize("options", [{"name": "dtrace.ko"}, {"dependencies": ("dtrace.ko",)}])
def test_dtraces_own_modules_get_no_probes(options):
    assert kernel(**options).probes() == []


def test_providing_probes_changes_no_byte():
    assert kernel().changed() == {}


# Arming.


@pytest.mark.parametrize(("isa", "patches"), [
    ("x86_64", {READ + 4: 0xCC, READ + 6: 0xCC}),
    ("aarch64", {READ + 4: 0xA0, READ + 5: 0x81, READ + 6: 0x20, READ + 7: 0xD4}),
    ("riscv64", {READ + 2: 0x02, READ + 3: 0x90}),
])  # fmt: skip
def test_enabling_writes_breakpoints_over_the_sites_of_the_probe_and_disabling_takes_them_out(isa, patches):
    target = kernel(isa)
    target.enable("sys_read", "return")
    assert target.changed() == patches
    assert target.module.enabled == 1
    target.disable("sys_read", "return")
    assert target.changed() == {}
    assert target.module.enabled == 0


def test_a_long_riscv_site_takes_a_long_breakpoint():
    target = kernel("riscv64")
    target.enable("sys_write", "entry")
    address = target.addresses["sys_write"]
    assert target.memory.read(address, 4) == bytes.fromhex("73001000")


def test_a_module_that_was_loaded_anew_is_counted_but_not_touched():
    target = kernel()
    target.module.load_count += 1
    target.enable("sys_read", "entry")
    assert (target.changed(), target.module.enabled) == ({}, 1)
    target.disable("sys_read", "entry")
    assert (target.changed(), target.module.enabled) == ({}, 0)
    target.fbt.resume(*target.probe("sys_read", "entry"))
    assert target.changed() == {}


def test_a_module_loaded_anew_while_a_probe_is_enabled_keeps_the_patch_of_the_old_text():
    target = kernel()
    target.enable("sys_read", "entry")
    target.module.load_count += 1
    target.disable("sys_read", "entry")
    assert target.changed() == {READ: 0xCC}


def test_suspend_takes_the_patches_out_and_resume_puts_them_back():
    target = kernel()
    target.enable("sys_read", "return")
    target.fbt.suspend(*target.probe("sys_read", "return"))
    assert target.changed() == {}
    target.fbt.resume(*target.probe("sys_read", "return"))
    assert set(target.changed()) == {READ + 4, READ + 6}


def test_a_double_trap_takes_every_patch_out():
    target = kernel()
    for function, name in (("sys_read", "entry"), ("sys_read", "return"), ("panic", "entry")):
        target.enable(function, name)
    target.fbt.double_trap()
    assert target.changed() == {}


@every_isa
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_whatever_was_enabled_disabling_it_in_any_order_restores_every_byte(isa, data):
    target = kernel(isa)
    probes = [(number, arg) for number, (_, _, arg) in target.framework.probes.items()]
    chosen = data.draw(st.lists(st.sampled_from(probes), unique=True))
    for probe in chosen:
        target.fbt.enable(*probe)
    assert bool(target.changed()) == bool(chosen)
    for probe in data.draw(st.permutations(chosen)):
        target.fbt.disable(*probe)
    assert target.changed() == {}


# Hits.


def hit_of(target, function, name, frame=None):
    _, record = target.probe(function, name)
    target.enable(function, name)
    return target.hit(record.address, frame)


def test_an_x86_entry_fires_with_the_argument_registers_and_answers_with_its_code():
    target = kernel()
    assert hit_of(target, "sys_read", "entry") == 1
    assert target.framework.fired == [("fbt:kernel:sys_read:entry", 1, 2, 3, 4, 5)]


def test_an_x86_return_fires_with_its_offset_and_the_result():
    target = kernel()
    assert hit_of(target, "sys_read", "return") == 5
    assert target.hit(READ + 6) == 5
    assert target.framework.fired == [
        ("fbt:kernel:sys_read:return", 4, 11, 0, 0, 0),
        ("fbt:kernel:sys_read:return", 6, 11, 0, 0, 0),
    ]


@pytest.mark.parametrize(("isa", "results"), [("aarch64", (11, 0)), ("riscv64", (11, 12))])
def test_elsewhere_the_answer_is_the_saved_word_and_riscv_fires_both_results(isa, results):
    target = kernel(isa)
    _, entry = target.probe("sys_read", "entry")
    _, ret = target.probe("sys_read", "return")
    assert hit_of(target, "sys_read", "entry") == int.from_bytes(target.pristine[:4], "little") == entry.saved
    assert hit_of(target, "sys_read", "return") == ret.saved
    assert target.framework.fired == [
        ("fbt:kernel:sys_read:entry", 1, 2, 3, 4, 5),
        ("fbt:kernel:sys_read:return", ret.roffset, *results, 0, 0),
    ]


@pytest.mark.parametrize(("isa", "caller"), [("x86_64", 0x1111), ("aarch64", READ), ("riscv64", 0x7FFC)])
@pytest.mark.parametrize("name", ["entry", "return"])
def test_the_caller_is_known_while_the_probe_fires_and_only_then(isa, caller, name):
    target, seen = kernel(isa), []
    target.framework.on_fire = lambda: seen.append(target.traps.core.caller)
    _, record = target.probe("sys_read", name)
    hit_of(target, "sys_read", name)
    assert seen == [record.address if isa == "aarch64" else caller]
    assert target.traps.core.caller == 0


def test_a_stack_that_cannot_be_read_leaves_the_caller_unknown_and_fires_all_the_same():
    target, seen = kernel(), []
    target.framework.on_fire = lambda: seen.append(target.traps.core.caller)
    assert hit_of(target, "sys_read", "entry", FakeFrame(stack=[])) == 1
    assert seen == [0]


@every_isa
def test_a_breakpoint_at_an_address_without_a_record_is_not_fbts(isa):
    target = kernel(isa)
    collisions = [READ + 1, READ + 8, READ + 16 * TABLE_SIZE]
    assert [target.hit(address) for address in collisions] == [0, 0, 0]
    assert target.framework.fired == []


def test_after_unload_fbt_is_neither_registered_nor_asked():
    target = kernel()
    target.enable("sys_read", "entry")
    target.fbt.unload()
    assert target.hit(READ) == 0
    assert target.framework.providers == []


# Several functions, one piece of code.


def aliased(isa):
    return kernel(isa, aliases={"read": "sys_read"})


def test_on_x86_a_hit_fires_every_probe_of_the_address_enabled_or_not():
    target = aliased("x86_64")
    assert hit_of(target, "sys_read", "entry") == 1
    assert [name for name, *_ in target.framework.fired] == ["fbt:kernel:sys_read:entry", "fbt:kernel:read:entry"]


def test_on_x86_the_patch_stays_until_no_probe_of_the_address_is_enabled():
    target = aliased("x86_64")
    target.enable("sys_read", "entry")
    target.enable("read", "entry")
    target.disable("sys_read", "entry")
    assert target.changed() == {READ: 0xCC}
    target.disable("read", "entry")
    assert target.changed() == {}


@pytest.mark.parametrize("isa", ["aarch64", "riscv64"])
def test_elsewhere_a_hit_fires_the_newest_record_of_the_address_alone(isa):
    target = aliased(isa)
    hit_of(target, "sys_read", "entry")
    assert [name for name, *_ in target.framework.fired] == ["fbt:kernel:read:entry"]


def test_elsewhere_disabling_the_newest_takes_the_patch_out_though_another_probe_is_enabled():
    # The records are not chained there, so nobody asks the others.
    target = aliased("aarch64")
    target.enable("sys_read", "entry")
    target.enable("read", "entry")
    target.disable("read", "entry")
    assert target.changed() == {}


# The end of a probe.


@every_isa
def test_destroyed_probes_leave_no_record_no_tracepoint_and_no_count(isa):
    target = kernel(isa)
    for number, (_, _, arg) in list(target.framework.probes.items()):
        target.fbt.destroy(number, arg)
    assert list(target.fbt.table) == []
    assert target.patcher.listing() == ()
    assert target.module.fbt_entries == 0


@pytest.mark.parametrize("gone", ["sys_read", "read", "third"])
def test_destroying_one_of_the_probes_of_an_address_leaves_the_others_firing(gone):
    target = kernel("x86_64", aliases={"read": "sys_read", "third": "sys_read"})
    kept = {"sys_read", "read", "third"} - {gone}
    target.fbt.destroy(*target.probe(gone, "entry"))
    target.enable(min(kept), "entry")
    assert target.hit(READ) == 1
    assert {name for name, *_ in target.framework.fired} == {f"fbt:kernel:{name}:entry" for name in kept}


def test_destroying_twice_panics():
    target = kernel()
    target.fbt.destroy(*target.probe("panic", "entry"))
    with pytest.raises(RuntimeError, match="FBT has no record of panic"):
        target.fbt.destroy(*target.probe("panic", "entry"))


def test_records_of_one_bucket_are_all_found_and_removed():
    target = kernel()
    first = target.fbt.table.find(READ)
    far = target.probe("panic", "entry")[1]
    far.address = READ + 16 * TABLE_SIZE
    assert bucket_of(far.address) == bucket_of(first.address)
    target.fbt.table.insert(far, share=True)
    assert target.fbt.table.find(far.address) is far
    target.fbt.table.remove(first)
    assert target.fbt.table.find(READ) is None
    assert target.fbt.table.find(far.address) is far


# Types of arguments.


class Types:
    def signature(self, module, function):
        return Signature("ssize_t", ("struct thread *", "struct read_args *")) if function == "sys_read" else None


@pytest.mark.parametrize(("name", "index", "expected"), [
    ("entry", 0, "struct thread *"),
    ("entry", 1, "struct read_args *"),
    ("entry", 2, None),
    ("return", 0, "int"),
    ("return", 1, "ssize_t"),
    ("return", 2, None),
])  # fmt: skip
def test_arguments_have_the_types_of_the_function(name, index, expected):
    target = kernel(signatures=Types())
    description = target.fbt.argument_description(*target.probe("sys_read", name), index)
    assert description == (ArgumentDescription(index, expected) if expected else None)


def test_without_types_only_the_offset_of_a_return_has_one():
    target = kernel()
    assert target.fbt.argument_description(*target.probe("sys_read", "return"), 0) == ArgumentDescription(0, "int")
    assert target.fbt.argument_description(*target.probe("sys_read", "return"), 1) is None
    assert target.fbt.argument_description(*target.probe("sys_read", "entry"), 0) is None


def test_a_function_whose_types_are_unknown_has_none():
    target = kernel(signatures=Types())
    assert target.fbt.argument_description(*target.probe("panic", "entry"), 0) is None
