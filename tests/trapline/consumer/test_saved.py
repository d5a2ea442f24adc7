"""Programs that are saved: for -a, as object files, and the requests that a run makes."""

import re
import shutil
import subprocess

import pytest

from emu.isa import ISAS
from tests.support.command import run_trapline
from trapline.dof import decode

PROGRAM = 'fbt::sys_read:entry /execname == "sh" && n++ < 2/ { trace(execname); @[execname] = count(); }'


@pytest.mark.exhaustive
@pytest.mark.parametrize("isa", ISAS)
def test_what_is_saved_for_anonymous_tracing_is_claimed_from_the_first_instruction_on(isa, tmp_path):
    run = run_trapline(["dtrace", "--isa", isa, "-A", "-x", "bufsize=64k", "-n", PROGRAM], cwd=tmp_path)
    assert (run.returncode, run.stdout) == (0, "")
    assert "saved anonymous enabling in dtrace.dof" in run.stderr
    assert ("bufsize", 65536) in decode((tmp_path / "dtrace.dof").read_bytes()).options
    claimed = run_trapline(["dtrace", "--isa", isa, "-a"], cwd=tmp_path)
    direct = run_trapline(["dtrace", "--isa", isa, "-n", PROGRAM], cwd=tmp_path)
    assert claimed.stdout == direct.stdout
    assert claimed.stdout.count("sys_read:entry") == 2


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "no anonymous state"), (b"rubbish", "corrupt DOF header"), (b"\x7fDOF" + bytes(100), "load size")],
)
def test_an_anonymous_state_that_cannot_be_claimed_is_reported_in_one_line(content, message, tmp_path):
    if content is not None:
        (tmp_path / "dtrace.dof").write_bytes(content)
    run = run_trapline(["dtrace", "-a"], cwd=tmp_path)
    assert run.returncode == 1
    assert message in run.stderr
    assert run.stderr.count("\n") == 1


@pytest.mark.parametrize("isa", ISAS)
def test_an_object_file_is_one_to_readelf(isa, tmp_path):
    if shutil.which("readelf") is None:
        pytest.skip("readelf (Debian: binutils) is not installed")
    (tmp_path / "x.d").write_text("BEGIN { trace(1) }\n")
    assert run_trapline(["dtrace", "--isa", isa, "-G", "-s", "x.d"], cwd=tmp_path).returncode == 0
    told = subprocess.run(["readelf", "-hSsW", "x.o"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert told.stderr == ""
    assert re.search(r"\.SUNW_dof +LOOS\+0xffffff4 .* WA ", told.stdout)
    assert re.search(r"OBJECT +GLOBAL HIDDEN +1 ___SUNW_dof", told.stdout)
    run_trapline(["dtrace", "--isa", isa, "-G", "-x", "linktype=dof", "-s", "x.d", "-o", "x.dof"], cwd=tmp_path)
    dof = (tmp_path / "x.dof").read_bytes()
    assert decode(dof).ecbs[0].probe.name == "BEGIN"
    assert dof in (tmp_path / "x.o").read_bytes()


def test_the_requests_of_a_run_are_logged():
    run = run_trapline(["dtrace", "-x", "verbose_ioctl", "-n", "BEGIN { @ = count(); trace(1); exit(0) }"])
    requests = re.findall(r"dtrace_ioctl: DTRACEIOC_(\w+) \((0x\w+)\)", run.stderr)
    names = [name for name, _code in requests]
    assert names[:2] == ["CONF", "PROBEMATCH"]
    assert names.index("ENABLE") < names.index("GO") < names.index("BUFSNAP") < names.index("EPROBE")
    assert ("AGGDESC", "0x8008780f") in requests
    assert names.index("GO") < names.index("STOP")
