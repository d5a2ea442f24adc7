"""Modules of a real kernel.  These tests need kernels: `make kernels` fetches them."""

from itertools import pairwise

import pytest

from emu.guest.linux_kernel.files import store
from emu.isa import ISAS
from tests.support.command import run_trapline
from tests.trapline.linux_kernel.test_traced import kernel_params

_READS = (
    "dd if=/dev/zero of=/tmp/d bs=64k count=4 2>/dev/null; losetup /dev/loop0 /tmp/d; "
    "dd if=/dev/loop0 of=/dev/null bs=4k count=16 2>/dev/null; "
    "dd if=/dev/zero of=/dev/loop0 bs=4k count=1 conv=fsync 2>/dev/null; cut -d ' ' -f 1 /proc/modules"
)


def with_modules():
    """The kernels that have modules; the others are skipped, with the reason."""
    for isa in kernel_params():
        if isinstance(isa, str) and not store.stored(ISAS[isa]).modules.is_dir():
            yield pytest.param(isa, marks=pytest.mark.skip(reason=f"no modules: trapline kernel get {isa}"))
        else:
            yield isa


every_kernel = pytest.mark.parametrize("isa", list(with_modules()))


def traced(isa, program, load, command):
    flags = ["dtrace", "--guest", "linux-kernel", "--isa", isa, "-x", f"load={load}", "-qn", program, "-c", command]
    return run_trapline(flags)


@every_kernel
def test_functions_of_a_module_have_probes_names_types_and_stacks(isa):
    program = """
    fbt:loop:loop_queue_rq:entry { @in[probemod, args[1]->rq->q == args[0]->queue] = count(); }
    fbt::blk_mq_start_request:entry { @s[func(caller)] = count(); }
    fbt:loop:loop_queue_rq:return { @out[(int)arg1] = count(); }
    io::: { @io[probename] = count(); }
    """
    result = traced(isa, program, "loop", _READS)
    assert result.returncode == 0, result.stderr
    words = result.stdout.split()
    assert words[0] == "loop"  # of /proc/modules
    assert "loop`loop_queue_rq" in result.stdout
    counts = dict(pairwise(words))
    assert int(counts["start"]) >= 1
    assert counts["start"] == counts["done"]
    assert counts["wait-start"] == counts["wait-done"] == "1"


@every_kernel
def test_a_module_is_loaded_after_those_that_it_needs(isa):
    result = traced(isa, "BEGIN { exit(0); }", "nls-iso8859-1,overlay,vxlan", "true")
    assert result.returncode == 0, result.stderr


@every_kernel
def test_a_module_that_does_not_exist_is_said_in_one_line(isa):
    result = traced(isa, "BEGIN", "nosuch", "true")
    assert result.returncode == 1
    assert result.stderr == "dtrace: no module nosuch is stored; it may be a part of the kernel itself\n"


@every_kernel
def test_instructions_variables_and_types_of_a_module(isa):
    program = """
    BEGIN { printf("found %d %s ", loop`max_part, stringof(loop`__this_module.name)); }
    BEGIN { printf("%d\\n", sizeof(struct loop`loop_cmd)); }
    kinst:loop:loop_queue_rq:0 { @k[probemod, probefunc] = count(); }
    fbt:loop:loop_queue_rq:entry { @k[probemod, probefunc] = count(); }
    fbt::blk_mq_start_request:entry { @s[stack()] = count(); }
    """
    result = traced(isa, program, "loop", _READS)
    assert result.returncode == 0, result.stderr
    part, name, size = result.stdout.partition("found ")[2].split()[:3]
    assert (part, name) == ("0", "loop")
    assert int(size) > 100
    stacks = result.stdout.partition("loop_queue_rq")[2]
    assert "loop`loop_queue_rq" in stacks
    assert "kernel`vfs_read" in stacks  # the stack goes on below the module


@every_kernel
def test_tracepoints_of_a_module_have_probes(isa):
    program = """
    sdt:xfs:xfs: { @n[probemod] = count(); }
    sdt:xfs:xfs:xfs_buf_init { @t[args[0]->b_target != 0] = count(); }
    """
    event = "/sys/kernel/tracing/events/xfs/xfs_buf_init/enable"
    command = (
        f"dd if=/dev/zero of=/tmp/d bs=64k count=4 2>/dev/null; losetup /dev/loop0 /tmp/d; mkdir /tmp/m; "
        f"echo 1 > {event}; mount -t xfs /dev/loop0 /tmp/m 2>/dev/null; echo 0 > {event}; "
        f"grep -c xfs_buf_init: /sys/kernel/tracing/trace"
    )
    result = traced(isa, program, "crc32c_generic,xfs,loop" if isa == "riscv64" else "xfs,loop", command)
    words = result.stdout.split()
    counted, module, _, *of_buffers = words
    assert module == "xfs", result.stderr
    assert int(counted) > 0
    assert of_buffers == ["1", counted]  # the kernel's own event, on and off beside ours
