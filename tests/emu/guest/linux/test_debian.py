"""Debian's own programs, static and dynamic: `make debian` gets them; without them these tests are skipped."""

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from emu.engine.time.clock import NANOSECONDS
from emu.guest.linux.launch import ENVIRONMENT
from emu.isa import ISAS
from tests.emu.guest.linux.support import run, start
from trapline.machine.linux_machine import EvalTime

DEBIAN = Path(__file__).parents[4] / ".debian"
QEMU = {isa: shutil.which(f"qemu-{isa}") for isa in ISAS}

pytestmark = [
    pytest.mark.debian,
    pytest.mark.skipif(
        not (DEBIAN / "riscv64/usr/bin/busybox").exists(),
        reason="Debian's programs are not there: `make debian` gets them",
    ),
]

SCRIPTS = {
    "pipes": "seq 1 100 | sort -r | head -3; echo a b c | tr a-c x-z | rev | wc -c",
    "files": "cd /tmp; mkdir d; echo one > d/f; cp d/f d/g; ln -s f d/l; cat d/*; ls d; mv d/g d/h; rm -r d; ls",
    "text": "printf '%s\\n' b a c b | sort | uniq -c; echo foobar | sed s/o/0/g; echo 1 2 3 | awk '{print $1+$3}'",
    "loops": "i=0; while [ $i -lt 20 ]; do i=$((i+1)); done; echo $i; for x in a b; do (echo $x; exit 3); echo $?; done",  # noqa: E501
    "archives": "cd /tmp; seq 1 500 > n; gzip -k n; gunzip -c n.gz | md5sum; tar cf t.tar n; tar tf t.tar; sha256sum n",
    "signals": "trap 'echo term' TERM; kill -TERM $$; (sleep 5; echo late) & wait; echo done",
    "find": "mkdir -p /tmp/x/y; touch /tmp/x/y/z; find /tmp/x | sort; expr 3 + 4; basename /a/b.c .c",
    "bytes": "dd if=/dev/zero bs=3 count=5 2>/dev/null | od -c; printf abc | hexdump -C",
}


def busybox(isa):
    return DEBIAN / isa / "usr/bin/busybox"


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("name", SCRIPTS)
def test_busybox_runs_a_script_as_qemu_does(isa, name, tmp_path):
    if QEMU[isa] is None:
        pytest.skip(f"qemu-{isa} (Debian: qemu-user) is not installed")
    script = SCRIPTS[name].replace("/tmp", str(tmp_path))  # noqa: S108  a name to be replaced
    told = subprocess.run(
        [QEMU[isa], busybox(isa), "sh", "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    ran = run(isa, [busybox(isa), "sh", "-c", f"mkdir -p {tmp_path}; {script}"], evaltime=EvalTime.EXEC)
    if "not found" in told.stderr or "can't execute" in told.stderr:
        pytest.skip("this host's kernel does not run programs of that ISA for qemu's children")
    assert ran.output == told.stdout + told.stderr + f"exit {told.returncode}\n"


def applets():
    """Yield the commands of applets.txt, split as a shell does."""
    text = ""
    for line in (Path(__file__).parent / "applets.txt").read_text().splitlines()[1:]:
        text += ("\n" if text else "") + line
        try:
            yield shlex.split(text)
        except ValueError:  # a quote is open
            continue
        text = ""


@pytest.mark.parametrize("isa", ISAS)
def test_applets_do_what_they_do_under_qemu(isa):
    if QEMU[isa] is None:
        pytest.skip(f"qemu-{isa} (Debian: qemu-user) is not installed")
    different, reports = [], []
    for words in applets():
        told = subprocess.run(
            [QEMU[isa], "-0", busybox(isa), busybox(isa), *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, timeout=60, check=False, cwd="/", env=ENVIRONMENT,
        )  # fmt: skip
        status = told.returncode if told.returncode >= 0 else 128 - told.returncode
        ran = run(isa, [busybox(isa), *words], evaltime=EvalTime.EXEC, report=reports.append)
        wanted = told.stdout.decode("utf-8", "replace") + f"exit {status}\n"
        if ran.output != wanted:
            different.append((words, ran.output, wanted))
    assert not different
    assert not reports, "system calls that are not there"


@pytest.mark.parametrize("isa", ISAS)
def test_dynamic_programs_run_in_their_own_root(isa):
    ran = run(isa, ["/usr/bin/ls", "/"], root=DEBIAN / isa, evaltime=EvalTime.EXEC)
    assert {"bin", "dev", "proc", "tmp", "usr"} <= set(ran.output.split())
    assert ran.output.endswith("exit 0\n")


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("script", ["ls /usr | sort -r; date; seq 3 | tac; cat /etc/nosuch; echo $?", "kill -9 $$"])
def test_dash_and_coreutils_are_the_same_with_libc_probed(isa, script):
    words = ["/usr/bin/dash", "-c", script]
    plain = run(isa, words, root=DEBIAN / isa)
    probed = run(isa, words, "pid$target:libc.so.6::entry { @ = count(); }", root=DEBIAN / isa)
    assert probed.output == plain.output
    assert probed.instructions == plain.instructions
    assert probed.fired > 50


@pytest.mark.parametrize("isa", ISAS)
def test_every_instruction_of_a_libc_function_is_a_probe(isa):
    words = ["/usr/bin/ls", "/"]
    plain = run(isa, words, root=DEBIAN / isa)
    probed = run(isa, words, "pid$target:libc.so.6:getenv: { @ = count(); }", root=DEBIAN / isa)
    assert probed.output == plain.output
    assert probed.fired > 100


@pytest.mark.parametrize("isa", ISAS)
def test_threads_on_several_cpus_compress_the_same_whatever_is_traced(isa):
    root = DEBIAN / isa
    if not (root / "usr/bin/xz").exists():
        pytest.skip("Debian's xz is not there")
    command = ("/usr/bin/sh", "-c", "seq 1 400 | xz -T4 --block-size=512 -0 -c | cksum")

    def ran(program=None, **options):
        return run(isa, command, program, root=root, evaltime=EvalTime.EXEC, **options)

    one, four = ran(), ran(cpus=4, seed=3)
    traced = ran("profile-4999 { @[cpu] = count(); } syscall:::entry { @calls[cpu] = count(); }", cpus=4, seed=3)
    assert one.output == four.output == traced.output
    assert traced.machine.guest.now() == four.machine.guest.now() < one.machine.guest.now()
    assert set(traced.of("calls")) == {(cpu,) for cpu in range(4)}


POLLING = """
import select, threading, time
done = []
def work():
    for _ in range(100):
        time.sleep(0.0001)
    done.append(True)
threading.Thread(target=work).start()
while not done:
    select.select([], [], [], 0)
print("done")
"""


@pytest.mark.parametrize("isa", ISAS)
def test_a_thread_that_polls_lets_another_one_have_its_lock(isa):
    """Each turn ended where the thread had it, for ever: all turns were of one length."""
    words = ["/usr/bin/python3.13", "-I", "-S", "-c", POLLING]
    machine, output = start(isa, words, root=DEBIAN / isa, evaltime=EvalTime.EXEC)
    machine.guest.run(20 * NANOSECONDS)
    assert bytes(output) == b"done\n"
