"""kinst on a real Linux kernel.  These tests need kernels: `make kernels` fetches them."""

from tests.trapline.linux_kernel.test_traced import every_kernel, traced

COMMAND = "seq 1 300 | sort | tail -n 1; ls /"


@every_kernel
def test_every_instruction_is_counted_and_the_program_prints_as_ever(isa):
    functions = ("vfs_read", "do_sys_openat2", "__schedule", "do_wp_page", "walk_component", "copy_page_range")
    probes = ", ".join(f"kinst::{name}:" for name in functions)
    program = f"""
    {probes} {{ @[probefunc] = count(); }}
    END {{ printf("\\n== "); printa("%s %@d ", @); }}
    """
    plain, _, _ = traced(isa, 'END { printf("\\n== "); }', COMMAND).rpartition("\n== ")
    shown, _, counts = traced(isa, program, COMMAND).rpartition("\n== ")
    assert shown == plain
    words = counts.split()
    assert set(words[::2]) == set(functions)
    assert all(int(count) > 100 for count in words[1::2])


@every_kernel
def test_instructions_are_hit_as_often_as_the_function_is_entered(isa):
    program = """
    fbt::vfs_read:entry { @entries = count(); }
    kinst::vfs_read: { @[probename] = count(); }
    END { printa("= %@d\\n", @entries); printa("%s %@d\\n", @); }
    """
    shown = traced(isa, program, "dd if=/etc/passwd of=/dev/null bs=16").split("= ")[1].split()
    entries, offsets = int(shown[0]), dict(zip(shown[1::2], map(int, shown[2::2]), strict=True))
    first = min(offsets, key=int)
    assert int(first) < 16
    assert entries > 0
    assert offsets[first] == entries
    assert max(offsets.values()) >= entries


@every_kernel
def test_stacks_and_times_are_the_same_with_every_handler_of_hits(isa, monkeypatch):
    program = "kinst::vfs_read: { @[probename, execname, stack()] = count(); @last = max(timestamp); }"
    shown = {}
    for engine in ("native", "reference"):
        monkeypatch.setenv("TRAPLINE_ENGINE", engine)
        shown[engine] = traced(isa, program, "dd if=/etc/passwd of=/dev/null bs=16")
    assert shown["native"] == shown["reference"]
    assert "ksys_read" in shown["native"]
