"""`trapline step` on a real Linux kernel.  These tests need kernels: `make kernels` fetches them."""

import json

from tests.support.command import run_trapline
from tests.trapline.linux_kernel.test_traced import every_kernel


@every_kernel
def test_the_stages_of_a_firing(isa):
    probe = 'fbt::do_sys_openat2:entry /execname == "cat" && args[2]->flags >= 0/'
    command = ["step", "--guest", "linux-kernel", "--isa", isa, "--json", "-", "-n", probe, "-c", "cat /etc/passwd"]
    result = run_trapline(command)
    assert result.returncode == 0, result.stderr
    (firing,) = json.loads(result.stdout)["firings"]
    assert (firing["probe"], firing["execname"]) == ("fbt:kernel:do_sys_openat2:entry", "cat")
    stages = list(dict.fromkeys(step["stage"] for step in firing["steps"]))
    assert stages[0] == "patched bytes"
    assert "displaced instruction" in stages
    listing = firing["listing"]
    assert listing["before"] != listing["enabled"]


@every_kernel
def test_what_cannot_be_stepped_is_said_in_one_line(isa):
    for arguments, said in (
        (["-n", "fbt::nosuchfunction:entry"], "does not match any probes"),
        (["-n", "fbt::do_exit:entry", "--trap", "guest"], "a Linux kernel has no handlers of DTrace's"),
        (["-n", "fbt::do_coredump:entry", "-c", "true"], "did not fire before the guest ended"),
    ):
        result = run_trapline(["step", "--guest", "linux-kernel", "--isa", isa, *arguments])
        assert result.returncode == 1
        assert said in result.stderr
        assert len(result.stderr.splitlines()) == 1
