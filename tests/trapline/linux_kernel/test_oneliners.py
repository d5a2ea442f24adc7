"""Every one-liner of docs/oneliners.md on a real Linux kernel: how it is written there, or why it is refused.

A row says the program, if another one says the same of a Linux kernel, the command, if busybox
needs another one, and what the output has; or what is refused, and the reason.  Every sixth row
runs, the ISAs in turn; TRAPLINE_ONELINERS=all runs all rows on all of them.  These tests need
kernels: `make kernels` fetches them.
"""

from __future__ import annotations

import io
import os
import re
from dataclasses import dataclass

import pytest

from tests.test_oneliners import ONE_LINERS
from tests.trapline.linux_kernel.test_traced import kernel_params
from trapline.commands.dtrace import open_machine
from trapline.consumer.command import main
from trapline.consumer.environment import CommandEnvironment

SPIN = "sh -c 'i=0; while [ $i -lt 1000 ]; do i=$((i+1)); done'"
NO_PROVIDER = "does not match any probes"


@dataclass(frozen=True)
class Runs:
    """A one-liner that runs."""

    shows: str
    """A regular expression that the output has."""
    program: str = ""
    command: str = ""


@dataclass(frozen=True)
class Refused:
    """A one-liner that does not."""

    because: str
    says: str = NO_PROVIDER


FREEBSD = Refused("Linux has no such function or probe")
LOCKSTAT = Refused("lockstat is not there for Linux kernels")
ABSENT = Refused("busybox does not have this library, function or marker", "does not match any probes")
# By the place of the one-liner on the page.
ROWS = (
    Runs(r"  ls +write +\d"),
    Runs(r"\d  sort +\d"),
    Runs(
        r"openat:return cat /etc/motd",
        "syscall::openat:entry { self->path = arg1; } "
        'syscall::openat:return /self->path/ { printf("%s %s", execname, copyinstr(self->path)); self->path = 0; }',
    ),
    Runs(r"4096 \|@+ 5"),
    Runs(r"4000 \|@+ +5", command="dd if=/dev/zero of=/zeros bs=4096 count=5"),
    Runs(r"  wc +36"),
    Runs(r"  init +1 +8"),
    Runs(r"  cat +openat +2 +\d"),
    Runs(r"8388608 \|@+ +1"),
    Runs(r"  sleep +(clock_)?nanosleep"),
    Runs(r"0x\w+\n +1"),
    Runs(r"exec-success +wc -l"),
    Runs(
        r"sh \(\d+\) makes \d+",
        'proc:::create { printf("%s (%d) makes %d", execname, pid, args[0]->pr_pid); }',
    ),
    Runs(r"exec-failure sh: error 13", command="/etc/motd"),
    Runs(r":exit sh: killed", command="true; sh -c 'kill -SEGV $$'"),
    Runs(r"16384 \|@+ 1"),
    Runs(
        r"sh sends 9 to sh",
        'proc:::signal-send { printf("%s sends %d to %s", execname, args[2], args[1]->pr_fname); }',
        "sh -c 'kill -9 $$'",
    ),
    Runs(r"  vfs_\w+ +\d", "fbt::vfs_*:entry { @[probefunc] = count(); }"),
    Runs(r"  kernel +\d{4}", command="true"),
    Runs(r"\w+ +\d{3}"),
    Runs(
        r"ns *\n +value",
        'fbt::ksys_read:entry { self->ts = timestamp; } fbt::ksys_read:return /self->ts/ { @["ns"] = '
        "quantize(timestamp - self->ts); self->ts = 0; }",
        "dd if=/etc/motd of=/dev/null",
    ),
    Runs(r"  cat +-2 +1", "fbt::do_sys_openat2:return { @[execname, (int)arg1] = count(); }"),
    Runs(r"kernel`\w+.*\n.*kernel`", "fbt::kmem_cache_free:entry { @[stack(3)] = count(); }"),
    Runs(
        r"-> ksys_read *\n(.*\n)*.*-> vfs_read",
        'fbt::ksys_read:entry /execname == "dd"/ { self->on = 1; } fbt::ksys_read:,fbt::vfs_read: /self->on/ { } '
        "fbt::ksys_read:return /self->on/ { exit(0); }",
        "dd if=/etc/motd of=/dev/null",
    ),
    Runs(r"\n  \d+ +\d", "kinst::vfs_read: { @[probename] = count(); }", "dd if=/etc/motd of=/dev/null"),
    FREEBSD,
    FREEBSD,
    Runs(r"cat *\n +value", "fbt::__kmalloc*:entry { @[execname] = quantize(arg0); }"),
    Runs(r"  sh +\d", "fbt::handle_mm_fault:entry { @[execname] = count(); }", "sh -c :"),
    Runs(r"  sh +\d", command=SPIN),
    Runs(r"kernel`\w+", command="sleep 0.05"),
    Runs(r"  sh *\n +0x\w+", command=SPIN),
    Runs(r"  sh *\n +value", command=f"{SPIN} & {SPIN} & wait"),
    Runs(r"  sleep *\n +value"),
    Runs(r"kernel`\w*sched\w*"),
    Runs(r"  sh +\d", command=f"{SPIN} & {SPIN} & wait"),
    Runs(
        r"  seq +wc +\d|  wc +seq +\d|  \w+ +\w+ +\d",
        "sched:::wakeup { @[execname, args[1]->pr_fname] = count(); }",
        "seq 1 3000 | wc",
    ),
    FREEBSD,
    Runs(r"tick-10ms \d+ ms: \w+", command=SPIN),
    Runs(r"\d calls", command="ls -l /"),
    LOCKSTAT,
    LOCKSTAT,
    LOCKSTAT,
    LOCKSTAT,
    Refused("the bufinfo_t of Linux is made of a struct bio", "no translator from"),
    Runs("", command="true"),
    Runs(
        r"  dd +/etc +motd +\d",
        "syscall::read:entry { @[execname, fds[arg0].fi_dirname, fds[arg0].fi_name] = sum(arg2); }",
        "dd if=/etc/motd of=/dev/null",
    ),
    FREEBSD,
    FREEBSD,
    FREEBSD,
    FREEBSD,
    FREEBSD,
    FREEBSD,
    ABSENT,
    ABSENT,
    ABSENT,
    ABSENT,
    Refused("busybox has no symbols", "failed to lookup 'main' in module 'a.out'"),
    ABSENT,
    ABSENT,
)
KERNELS = list(kernel_params())
_SOME = 6


def cases():
    """Yield a row with the ISA that it runs on, by its place."""
    everywhere = os.environ.get("TRAPLINE_ONELINERS") == "all"
    for place, row in enumerate(ROWS):
        if not everywhere and place % _SOME:
            continue
        for isa in KERNELS if everywhere else [KERNELS[place // _SOME % len(KERNELS)]]:
            name = isa if isinstance(isa, str) else isa.values[0]
            marks = () if isinstance(isa, str) else isa.marks
            yield pytest.param(place, row, name, marks=marks, id=f"{place}-{name}")


def test_each_one_liner_of_the_page_has_a_row():
    assert len(ROWS) == len(ONE_LINERS)


@pytest.mark.parametrize(("place", "row", "isa"), list(cases()))
def test_a_one_liner_runs_or_is_refused_with_its_reason(place, row, isa):
    *flags, program, _, command = ONE_LINERS[place].arguments
    if isinstance(row, Runs):
        program, command = row.program or program, row.command or command
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    arguments = ["--guest", "linux-kernel", "--isa", isa, *flags, program, "-c", command]
    status = main(arguments, CommandEnvironment(open_machine, out, err))
    out.flush()
    shown = out.buffer.getvalue().decode()
    if isinstance(row, Runs):
        assert status == 0, err.getvalue()
        assert re.search(row.shows, shown), shown + err.getvalue()
    else:
        assert status == 1
        assert row.says in err.getvalue()
