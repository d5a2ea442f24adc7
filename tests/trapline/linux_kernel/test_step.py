"""`trapline step` on a real Linux kernel.  These tests need kernels: `make kernels` fetches them."""

import json

from tests.support.command import run_trapline
from tests.trapline.linux_kernel.test_traced import every_kernel

TITLES = ["patched bytes", "exception", "trap frame", "handler chain", "probe", "displaced instruction", "resume",
          "disabled"]  # fmt: skip


@every_kernel
def test_the_stages_of_a_firing(isa):
    probe = 'fbt::do_sys_openat2:entry /execname == "cat" && args[2]->flags >= 0/'
    command = ["step", "--guest", "linux-kernel", "--isa", isa, "--json", "-n", probe, "-c", "cat /etc/passwd"]
    result = run_trapline(command)
    assert result.returncode == 0, result.stderr
    stepped = json.loads(result.stdout)
    assert stepped["probe"] == "fbt:kernel:do_sys_openat2:entry"
    assert [stage["title"] for stage in stepped["stages"]] == TITLES
    found = {stage["title"]: stage for stage in stepped["stages"]}
    code = found["patched bytes"]["code"]
    assert code["before"] != code["enabled"]
    assert code["before"] == found["disabled"]["code"]["after"]
    assert " in cat, pid " in found["probe"]["text"]
    assert found["displaced instruction"]["registers"]
    assert found["resume"]["facts"]["in"].startswith("kernel`do_sys_openat2+")


@every_kernel
def test_what_cannot_be_stepped_is_said_in_one_line(isa):
    for arguments, said in (
        (["-n", "fbt::nosuchfunction:entry"], "does not match any probes"),
        (["-n", "fbt::do_exit:entry", "--trap", "guest"], "a Linux kernel has no handlers of DTrace's"),
        (["-n", "fbt::do_coredump:entry", "-c", "true"], "did not fire before the command ended"),
    ):
        result = run_trapline(["step", "--guest", "linux-kernel", "--isa", isa, *arguments])
        assert result.returncode == 1
        assert said in result.stderr
        assert len(result.stderr.splitlines()) == 1
