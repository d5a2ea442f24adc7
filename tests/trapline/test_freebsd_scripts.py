"""What FreeBSD's own D scripts name: dwatch(1) and /usr/share/dtrace read arguments, mounts and names of files."""

from __future__ import annotations

import re

import pytest

from emu.isa import ISAS
from tests.support.command import run_trapline

# As dwatch does: the arguments one after another, and the path from the mount's name to the file's.
ARGUMENTS = """
syscall::unlink:entry {
    this->args = curthread->td_proc->p_args;
    this->first = (char *)this->args->ar_args;
    this->second = this->first + strlen(this->first) + 1;
    printf("%s %s %d\\n", stringof(this->first), stringof(this->second), this->args->ar_length);
}
vfs:vop:vop_remove:entry {
    this->mount = ((struct vnode *)arg0)->v_mount;
    printf("%s %s %s %s\\n", stringof(this->mount->mnt_stat.f_fstypename), stringof(this->mount->mnt_stat.f_mntonname),
        stringof(args[0]->v_cache_dd->nc_name), stringof(args[1]->a_cnp->cn_nameptr));
}
vfs:vop:vop_read:entry /((struct vnode *)arg0)->v_rdev != NULL/ {
    printf("%s\\n", stringof(args[0]->v_mount->mnt_stat.f_mntonname));
}
io:::done { printf("%d %d %d\\n", args[0]->bio_pblkno, args[0]->bio_length, args[0]->bio_completed); }
io:::start { this->flags = xlate <bufinfo_t *> (args[0])->b_flags;
    printf("%s, flags of bio.h: %s\\n", this->flags & B_READ ? "read" : "write", this->flags &
        (BIO_ERROR | BIO_DONE | BIO_ONQUEUE | BIO_ORDERED | BIO_UNMAPPED | BIO_VLIST) ? "some" : "none"); }
"""
# The scripts name these, and none of them can fire here.
ABSENT = """
lockstat:::lockmgr-block, lockstat:::rw-block { trace(((struct lock_object *)arg0)->lo_name); trace(args[0]); }
sched:::change-pri, sched:::lend-pri { trace(args[0]->td_priority); trace(args[0]->td_inhibitors); }
proc:::signal-clear { trace(((ksiginfo_t *)args[1])->ksi_info.si_pid); }
syscall::pread:entry, syscall::kevent:return, syscall::sendmsg:entry, syscall::aio_read:entry { trace(arg0); }
tick-10ms { exit(0); }
"""


@pytest.mark.parametrize("isa", ISAS)
def test_arguments_mounts_and_transfers_have_freebsds_names(isa):
    command = "sh -c 'mkdir /d; echo x > /d/f; rm /d/f; dd if=/dev/md0 of=/dev/null bs=512 count=2'"
    ran = run_trapline(["dtrace", "--isa", isa, "-qn", ARGUMENTS, "-c", command])
    lines = ran.stdout.splitlines()
    assert "rm /d/f 8" in lines, ran.stdout + ran.stderr
    assert "memfs / d f" in lines
    assert "/dev" in lines
    assert [line for line in lines if line.endswith(" 512 512")] == ["0 512 512", "1 512 512"]
    assert lines.count("read, flags of bio.h: none") == 2


@pytest.mark.parametrize("isa", ISAS)
def test_a_script_may_name_what_the_kernel_lacks(isa):
    ran = run_trapline(["dtrace", "--isa", isa, "-qn", ABSENT, "-c", "ls /"])
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize("isa", ISAS)
def test_a_kernel_thread_has_no_frame_of_a_program(isa):
    program = 'sched:::off-cpu /execname == "idle"/ { printf("user:"); ustack(); printf("end\\n"); exit(0); }'
    ran = run_trapline(["dtrace", "--isa", isa, "-qn", program, "-c", "sleep 0.1"])
    assert re.search(r"^user:\s+end$", ran.stdout, re.MULTILINE), ran.stdout + ran.stderr
