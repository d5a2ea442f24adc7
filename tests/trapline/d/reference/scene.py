"""A small scene that D programs trace: a kernel whose types are written in D, two processes, and what they do.

The command is the real one, run in this process; only the guest is scripted, so that a session
takes milliseconds and every number in it is known.
"""

from __future__ import annotations

import io
from functools import cache
from typing import Any, ClassVar

from emu.displaced.cpu_core import CpuCore
from emu.guest.base import Abilities, RunState
from emu.guest.timers import Timers
from emu.isa import X86_64
from providers.base import ArgumentDescription
from providers.profile import Profile
from tests.support.fake_guest import KERNEL, FakeGuest, FakeProvider
from trapline import dof
from trapline.consumer.command import main
from trapline.consumer.environment import CommandEnvironment, TracedMachine
from trapline.d.check.scopes import Globals
from trapline.d.compiler import CompileContext, compile_program
from trapline.d.types.data_models import LP64
from trapline.d.types.names import Symbol
from trapline.framework.device.dtrace import DTrace
from trapline.options import Options

MICROSECOND = 1_000
MILLISECOND = 1_000_000

# What the kernel of the scene has for types.
TYPES = """
typedef unsigned int uid_t_;
enum vtype { VNON, VREG, VDIR = 5 };
typedef struct list { struct list *next; int value; } list_t;
struct vnode { enum vtype v_type; unsigned int v_flag : 3; int v_kind : 5; char v_name[8]; struct vnode *v_parent; };
struct session { int s_sid; };
struct pgrp { struct session *pg_session; int pg_id; };
struct vmspace { unsigned long vm_size; };
struct pmap { unsigned long pm_resident; };
struct ps_strings { unsigned long ps_argvstr; int ps_nargvstr; unsigned long ps_envstr; };
struct prison { int pr_id; char pr_name[8]; };
struct ucred { int cr_uid, cr_ruid, cr_gid, cr_rgid; struct prison *cr_prison; };
struct pargs { unsigned ar_ref, ar_length; char ar_args[16]; };
struct proc {
    int p_pid; char p_comm[16]; int p_numthreads; struct vnode *p_textvp; long p_times[2];
    union { int u_int; char u_char[4]; } p_u; struct proc *p_pptr; struct ucred *p_ucred; struct pargs *p_args;
    long p_spare; int p_flag, p_xexit, p_nice; struct pgrp *p_pgrp; struct vmspace *p_vmspace; struct pmap *p_pmap;
    struct ps_strings p_psstrings; unsigned long p_starttime; struct thread *p_threads;
};
enum td_states { TDS_INACTIVE, TDS_INHIBITED, TDS_CAN_RUN, TDS_RUNQ, TDS_RUNNING };
struct syscall_args { int code; };
struct thread {
    struct proc *td_proc; int td_tid; int td_flags; enum td_states td_state; struct syscall_args td_sa;
    void *td_wchan; char td_name[20]; unsigned long td_runtime;
};
struct pcpu { struct thread *pc_curthread, *pc_idlethread; };
struct tdq { int tdq_load; };
struct read_args { int fd; char *buf; unsigned long nbyte; };
"""

ROOT = KERNEL + 0x10_0000
VNODE = KERNEL + 0x10_0100
PROC = KERNEL + 0x10_0200
THREAD = KERNEL + 0xABC0
LIST = KERNEL + 0x10_0400
READ_ARGS = KERNEL + 0x10_0500
CREDENTIALS = KERNEL + 0x10_0580
TICKS = KERNEL + 0x10_0600
VERSION = KERNEL + 0x10_0700
PCPU = KERNEL + 0x10_0900
QUEUE = KERNEL + 0x10_0A00
ARGUMENTS = KERNEL + 0x10_0800
PATH = 0x40_5000
BUFFER = 0x40_6000


class SceneNames:
    """The kernel's names.  Implements `trapline.d.types.names.Foreign`."""

    model = LP64

    def __init__(self) -> None:
        options = Options()
        names = Globals()
        compile_program(TYPES, CompileContext(options, names=names))
        self._names = names
        types = Globals(typedefs=names.typedefs, tags=names.tags)
        compile_program(
            "struct proc proc0; struct vnode rootvnode; int ticks; char version[16]; list_t head; int many[4];"
            "struct pcpu pcpu0; struct tdq tdq_cpu[1];",
            CompileContext(options, names=types),
        )
        places = {"proc0": PROC, "rootvnode": ROOT, "ticks": TICKS, "version": VERSION, "head": LIST, "many": LIST}
        places |= {"pcpu0": PCPU, "tdq_cpu": QUEUE}
        self._symbols = {
            variable.name: Symbol(places[variable.name], variable.type) for variable in types.variables.values()
        } | {"untyped": Symbol(TICKS, None)}

    def has_module(self, name: str) -> bool:
        return name == "kernel"

    def typedef(self, name: str) -> Any:
        module, mark, plain = name.rpartition("`")
        known = self._names.typedefs.get(plain)
        return known if not mark or module == "kernel" else None

    def tag(self, keyword: str, tag: str) -> Any:
        module, mark, plain = tag.rpartition("`")
        return self._names.tags.get((keyword, plain)) if not mark or module == "kernel" else None

    def symbol(self, name: str) -> Symbol | None:
        module, _, plain = name.rpartition("`")
        return self._symbols.get(plain) if module in {"", "kernel"} else None


@cache
def scene_names() -> SceneNames:
    """Return the kernel's names, compiled once: programs cannot change them."""
    return SceneNames()


class SceneGuest(FakeGuest):
    """A scripted guest that has timers, and time on the CPU."""

    def __init__(self) -> None:
        super().__init__(
            time=1_000_000,
            symbols={
                KERNEL + 0x1000: ("kernel", "sys_read"),
                KERNEL + 0x2000: ("kernel", "malloc"),
                KERNEL + 0x3000: ("kernel", "syscall"),
                KERNEL + 0x9000: ("zfs.ko", "zfs_read"),
                PROC: ("kernel", "proc0"),
                ROOT: ("kernel", "rootvnode"),
            },
            user_symbols={0x40_1000: ("/bin/sh", "main"), 0x40_2000: ("/lib/libc.so.7", "read")},
            stack=[KERNEL + 0x1010, KERNEL + 0x3020, KERNEL + 0x9004],
            ustack=[0x40_2008, 0x40_1010],
        )
        self.abilities = Abilities(thread_time=self.thread_time, parent=self.parent)
        self.timers = Timers()
        self.poke_kernel()

    def poke_kernel(self) -> None:
        def word(value: int, size: int = 8) -> bytes:
            return (value & (1 << 8 * size) - 1).to_bytes(size, "little")

        self.poke(ROOT, word(5, 4) + word(0b101, 1) + word(0b11101, 1) + b"root".ljust(10, b"\0") + word(0))
        self.poke(VNODE, word(1, 4) + word(0b010, 1) + word(0b00011, 1) + b"cat".ljust(10, b"\0") + word(ROOT))
        proc = (word(42, 4), b"kernel".ljust(16, b"\0"), word(0, 4), word(VNODE), word(7), word(-9))
        rest = (b"abc\0", word(0, 4), word(0), word(CREDENTIALS), word(ARGUMENTS), word(9))
        self.poke(PROC, b"".join((*proc, *rest)).ljust(0x1C0, b"\0"))
        self.poke(CREDENTIALS, word(1001, 4) + word(1001, 4) + word(20, 4) + word(20, 4) + word(0))
        self.poke(ARGUMENTS, word(1, 4) + word(9, 4) + b"sh\0-c\0ls\0")
        thread = (word(PROC), word(100_001, 4), word(6, 4), word(4, 4), word(3, 4), word(0), b"worker".ljust(24, b"\0"))
        self.poke(THREAD, b"".join(thread).ljust(128, b"\0"))
        self.poke(LIST, word(LIST + 16) + word(10, 4) + word(0, 4) + word(0) + word(20, 4) + word(0, 4))
        self.poke(READ_ARGS, word(3, 4) + word(0, 4) + word(BUFFER) + word(512))
        self.poke(TICKS, word(1234, 4) + word(0, 4))
        self.poke(VERSION, b"Scene 1.0".ljust(16, b"\0"))
        self.poke_user(PATH, b"/etc/motd\0".ljust(4096, b"\0"))
        self.poke_user(BUFFER, b"hello, world\0".ljust(64, b"\0"))

    def thread_time(self) -> int:
        return self.time // 2

    def parent(self, pid: int) -> int | None:
        return {42: 1, 43: 42, 1: 0}.get(pid)

    def pc(self) -> int:
        return KERNEL + 0x1004

    def run(self, deadline: int | None) -> RunState:
        return self.timers.run(super().run, self.now, deadline)

    def interrupt(self) -> None:
        super().interrupt()
        self.timers.interrupt()


class SceneProvider(FakeProvider):
    """FBT-like probes with typed arguments."""

    TYPES: ClassVar = {
        "sys_read": ("struct thread *", "struct read_args *"),
        "malloc": ("unsigned long", "void *", "int"),
        "namei": ("char *", "struct vnode *"),
    }

    def argument_description(self, probe_id: int, arg: Any, index: int) -> ArgumentDescription | None:
        function, _, name = arg.partition(":")
        if function == "odd":
            described = ArgumentDescription(index, "nosuch_t" if name == "entry" else "int", "struct vnode *")
            renamed = ArgumentDescription(index, "userland char *", "string", 0)
            return {0: described, 1: renamed if name == "return" else None}.get(index)
        types = self.TYPES.get(function, ()) if name == "entry" else ("int", "int")
        return ArgumentDescription(index, types[index]) if index < len(types) else None


def scene() -> tuple[SceneGuest, DTrace]:
    """Set the scene: sh reads and forks cat, which reads twice; a few milliseconds in all."""
    guest = SceneGuest()
    dtrace = DTrace(guest, CpuCore(), dof)
    Profile(dtrace, guest)
    fbt = SceneProvider(dtrace, "fbt")
    probes = {
        (function, name): fbt.create("kernel", function, name)
        for function in ("sys_read", "malloc", "namei", "dofileread", "odd")
        for name in ("entry", "return")
    }
    at = guest.time

    def happens(after: int, function: str, name: str, *args: int, **thread: Any) -> None:
        nonlocal at
        at += after * MICROSECOND

        def fire() -> None:
            guest.become(**thread)
            dtrace.probe(probes[function, name], *args)

        guest.script.append((at, fire))

    sh = {"pid": 42, "ppid": 1, "tid": 100_001, "execname": "sh", "execargs": "sh\0-c\0ls", "errno": 0, "uid": 0}
    cat = {"pid": 43, "ppid": 42, "tid": 100_002, "execname": "cat", "execargs": "cat\0/etc/motd", "uid": 100}
    happens(500, "sys_read", "entry", THREAD, READ_ARGS, **sh)
    happens(10, "dofileread", "entry", THREAD, 3)
    happens(5, "malloc", "entry", 64, 0, 1)
    happens(5, "malloc", "return", 0x20, KERNEL + 0x20_0000)
    happens(30, "dofileread", "return", 0x10, 0)
    happens(10, "sys_read", "return", 0x30, 512)
    happens(440, "namei", "entry", PATH, VNODE, **cat)
    happens(100, "namei", "return", 0x40, 0)
    for size, taken in ((1024, 250), (93, 30), (0, 10)):
        happens(300, "sys_read", "entry", THREAD, READ_ARGS)
        happens(20, "malloc", "entry", size or 8, 0, 1)
        happens(taken, "malloc", "return", 0x20, KERNEL + 0x20_0000 + size)
        happens(taken, "sys_read", "return", 0x30, size, errno=0 if size else 9)
    guest.script.append((at + MILLISECOND, lambda: None))
    return guest, dtrace


def run_scene(arguments: list[str]) -> tuple[str, str, int]:
    """Run dtrace on the scene; return its output, what it said on standard error, and its status."""
    stdout, stderr = io.StringIO(), io.StringIO()

    def open_machine(_wanted: Any) -> TracedMachine:
        guest, dtrace = scene()
        return TracedMachine(guest, dtrace, foreign=scene_names(), libraries=("common", "kernel", X86_64.name))

    environment = CommandEnvironment(open_machine, stdout, stderr, lambda command: stdout.write(f"[{command}]\n"))
    status = main(arguments, environment)
    return stdout.getvalue(), stderr.getvalue(), status
