"""What a clause asks Python for: a survey of every built-in variable, subroutine and action of D.

Each is a clause of its own, at probes of every provider of a guest, in machine code from the first
firing on.  A clause asks Python if it makes at least one upcall in two firings: a few first ones
are made everywhere, such as that of the first stack at a place.

    python -m tests.support.survey [x86_64 ...]     prints the table
"""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from io import BytesIO, TextIOWrapper
from typing import Any, NamedTuple
from unittest import mock

import click

from emu.engine.handlers import Handlers
from emu.isa import ISAS
from tests.support.command import ROOT
from trapline import cli
from trapline.d.check.builtins import vocabulary
from trapline.framework.device.enabling import Enabling
from trapline.framework.native.upcall_code import Upcall
from trapline.framework.native.upcalls import Upcalls

NUMBER, STRING = "@{name} = sum((int64_t)({}));", "@{name}[{}] = count();"
_STACK_TOP = "(uintptr_t)uregs[R_SP]"
# What is surveyed: by name, the bodies of clauses that use it.
_SCALARS = (
    "curthread timestamp vtimestamp epid id stackdepth caller pid tid walltimestamp ustackdepth ucaller ppid uid gid"
    " errno jid cpu"
)
_TEXTS = "probeprov probemod probefunc probename execname execargs jailname"
_EXPRESSIONS = {
    **{f"arg{number}": f"arg{number}" for number in range(10)},
    **{name: name for name in _SCALARS.split()},
    "regs": "regs[R_SP]",
    "uregs": "uregs[R_SP]",
    "rand": "rand()",
    "progenyof": "progenyof(1)",
    "strlen": "strlen(probename)",
    "index": 'index(probename, "e")',
    "rindex": 'rindex(probename, "e", 9)',
    "strtoll": 'strtoll("123")',
    "alloca": "(uintptr_t)alloca(16)",
    "copyin": f"*(int *)copyin({_STACK_TOP}, 4)",
    "memref": "*memref(alloca(8), 8)",
    **{name: f"{name}(0x1234)" for name in "htons htonl htonll ntohs ntohl ntohll".split()},
}
_TEXT_EXPRESSIONS = {
    **{name: name for name in _TEXTS.split()},
    "strjoin": "strjoin(probeprov, probename)",
    "lltostr": "lltostr(arg0, 16)",
    "basename": 'basename("/usr/lib/x")',
    "dirname": 'dirname("/usr/lib/x")',
    "cleanpath": 'cleanpath("/usr/../lib//x")',
    "strchr": "strchr(\"text\", 'x')",
    "strrchr": "strrchr(\"text\", 'x')",
    "strstr": 'strstr("text", "x")',
    "strtok": 'strtok("a:b", ":")',
    "substr": "substr(probefunc, 1, 3)",
    "toupper": "toupper(probename)",
    "tolower": "tolower(probename)",
    "json": 'json("{\\"a\\": 1}", "a")',
    "copyinstr": f"copyinstr({_STACK_TOP}, 4)",
    "inet_ntop": "inet_ntop(2, alloca(4))",
    "inet_ntoa": "inet_ntoa((ipaddr_t *)alloca(4))",
    "inet_ntoa6": "inet_ntoa6((in6_addr_t *)alloca(16))",
    "memstr": "memstr(alloca(8), ' ', 8)",
}
_STATEMENTS = {
    "bcopy": ("this->p = alloca(8); bcopy(probename, this->p, 4);",),
    "copyinto": (f"this->p = alloca(8); copyinto({_STACK_TOP}, 8, this->p);",),
    "trace": ("trace(arg0);",),
    "print": ("print(arg0);",),
    "printm": ("printm(8, memref(alloca(8), 8));",),
    "printf": ('printf("%d %s %Y", arg0, probename, walltimestamp);',),
    "printa": ("@{name} = count(); printa(@{name});",),
    "tracemem": ("tracemem(alloca(16), 16); tracemem(alloca(16), 16, arg0 & 15);",),
    "stack": ("stack(); @{name}[stack(4)] = count();",),
    "ustack": ("ustack(); @{name}[ustack(4)] = count();",),
    "jstack": ("jstack(4, 64);",),
    **{name: (f"{name}(caller);",) for name in "sym func mod".split()},
    **{name: (f"{name}(ucaller);",) for name in "usym ufunc umod uaddr".split()},
    **{name: (f"{name}(@f);",) for name in "clear trunc normalize denormalize".split()},
    "normalize": ("normalize(@f, 2);",),
    "speculate": ("this->s = speculation();", "speculate(this->s); trace(arg0);", "discard(this->s);"),
    "commit": ("this->s = speculation();", "speculate(this->s); trace(arg0);", "commit(this->s);"),
    "setopt": ('setopt("quiet");',),
    "ftruncate": ("ftruncate();",),
    "count": ("@{name} = count();",),
    **{name: (f"@{{name}}[execname, pid] = {name}(arg0);",) for name in "min max avg sum stddev quantize".split()},
    "lquantize": ("@{name} = lquantize(arg0 & 255, 0, 256, 16);",),
    "llquantize": ("@{name} = llquantize(arg0 & 255, 10, 0, 4, 10);",),
    # What is no name of D's: variables.
    "globals": ("g = arg0; h = g + 1; t = probename; @{name}[t] = sum(h);",),
    "thread-local": ("self->a = arg0; self->t = probename; @{name}[self->t] = sum(self->a); self->a = 0;",),
    "associative": ("a[pid, probename] = timestamp; @{name} = sum(a[pid, probename]); a[pid, probename] = 0;",),
    "self associative": ("self->b[probename] = 1; @{name} = sum(self->b[probename]); self->b[probename] = 0;",),
    "this": ("this->n = arg0; this->t = execname; @{name}[this->t] = sum(this->n);",),
    "ternary": ('@{name}[arg0 ? "yes" : "no"] = count();',),
}
# A program's memory: not of kernel threads.
_OF_PROGRAMS = {"copyin", "copyinstr", "copyinto"}
# Names that the items of others use.
_WITH = {"speculation": "speculate", "discard": "speculate"}
# What ends a trace or a program, or changes it: each of these is an action in Python.
EFFECTS = "exit stop raise breakpoint panic chill system freopen copyout copyoutstr".split()
# They need an object of the guest: a lock, a message, a device, a file, types, an interrupt level.
OBJECTS = (
    "mutex_owned mutex_owner mutex_type_adaptive mutex_type_spin rw_read_held rw_write_held rw_iswriter"
    " sx_shared_held sx_exclusive_held sx_isexclusive msgdsize msgsize getmajor getminor ddi_pathname getf args"
    " vmregs ipl zonename"
).split()


def items() -> dict[str, tuple[str, ...]]:
    """Return what is surveyed: the bodies of its clauses, by name."""
    found = {name: (NUMBER.replace("{}", text),) for name, text in _EXPRESSIONS.items()}
    found |= {name: (STRING.replace("{}", text),) for name, text in _TEXT_EXPRESSIONS.items()}
    found |= _STATEMENTS
    return {
        name: tuple(body.replace("{name}", f"a{number}") for body in bodies)
        for number, (name, bodies) in enumerate(found.items())
    }


def unknown() -> set[str]:
    """Return the names of D that are neither surveyed nor listed as left out."""
    known = vocabulary()
    names = {*known.variables, *known.subroutines, *known.actions, *known.aggregating}
    return names - items().keys() - _WITH.keys() - {*EFFECTS, *OBJECTS}


@dataclass
class Survey:
    """What the clauses of one run asked for."""

    firings: Counter[str] = field(default_factory=Counter)
    """By probe."""
    upcalls: dict[tuple[str, str], Counter[str]] = field(default_factory=dict)
    """By item and probe: the upcalls."""
    callbacks: Counter[str] = field(default_factory=Counter)
    """The engine's callbacks, by name."""

    def asks(self) -> dict[tuple[str, str], str]:
        """Return which items ask Python at which probes, and for what."""
        found = {}
        for (item, probe), upcalls in self.upcalls.items():
            often = [name for name, count in upcalls.items() if 2 * count >= self.firings[probe]]
            if often:
                found[item, probe] = ", ".join(often)
        return found


def survey(probes: dict[str, str], *arguments: str) -> Survey:
    """Trace by `trapline dtrace` with some arguments; `probes` are descriptions by a name."""
    found, surveyed = Survey(), items()
    clauses = [(name, body) for name, bodies in surveyed.items() for body in bodies]
    at = ", ".join(probes.values())
    text = "BEGIN { @f = count(); }\n" + "\n".join(
        f"{at} {'/pid > 1/ ' if name in _OF_PROGRAMS else ''}{{ {body} }}" for name, body in clauses
    )
    order: dict[int, tuple[str, str]] = {}
    called, added = Upcalls._called, Enabling.add

    def counted(self: Upcalls, which: int, *operands: int) -> int:
        ecbs = self._runtime.enabled.ecbs
        name = order.get(id(ecbs[self.firing.epid - 1].clause))
        if name:
            found.upcalls.setdefault(name, Counter())[Upcall(which).name] += 1
        return called(self, which, *operands)

    def enabled(self: Enabling, *given: Any) -> Sequence[int]:
        matched = added(self, *given)
        for place, clause in enumerate(self.clauses[1:]):
            if place < len(clauses) * len(probes):
                order[id(clause)] = clauses[place // len(probes)][0], list(probes)[place % len(probes)]
        return matched

    def of_engine(name: str) -> mock._patch:
        plain = getattr(Handlers, name)

        def call(self: Handlers, *operands: int) -> int:
            found.callbacks[name] += 1
            return plain(self, *operands)

        return mock.patch.object(Handlers, name, call)

    options = "quiet", "bufsize=64m", "dynvarsize=16m", "aggsize=16m", "nspec=4", "zdefs"
    counting = "".join(f'\n{where} {{ @n["<{name}>"] = count(); }}' for name, where in probes.items())
    counting += '\nEND { clear(@f); printa("<%s=%@d>\\n", @n); }'
    command = ["trapline", "dtrace", *(part for one in options for part in ("-x", one)), *arguments]
    command[2:2] = ["-n", text + counting]
    out = TextIOWrapper(BytesIO(), write_through=True)
    with (
        mock.patch.object(Upcalls, "_called", counted),
        mock.patch.object(Enabling, "add", enabled),
        mock.patch.object(sys, "argv", command),
        mock.patch.dict(os.environ, {"TRAPLINE_ENGINE": "native"}),
        of_engine("breakpoint"), of_engine("late"), of_engine("load"), of_engine("left"),
        redirect_stdout(out), redirect_stderr(out), suppress(SystemExit),
    ):  # fmt: skip
        cli.main()
    found.text = out.buffer.getvalue().decode(errors="replace")
    found.firings.update({name: int(count) for name, count in re.findall(r"<<(.*?)>=(\d+)>", found.text)})
    return found


KERNEL = {
    "fbt entry": "fbt::sys_getpid:entry",
    "fbt return": "fbt::sys_getpid:return",
    "syscall entry": "syscall::getpid:entry",
    "syscall return": "syscall::getpid:return",
    "kinst": "kinst::sys_read:",
    "sdt": "test:::sdttest",
    "vfs": "vfs:::",
    "dtmalloc": "dtmalloc:::malloc",
    "profile": "profile-997",
    "tick": "tick-997",
    "cpc": "cpc:::branches-all-5000",
}
KERNEL_COMMAND = "getpid 40; " + "cat /etc/motd; sysctl debug.dtracetest.sdttest=1; " * 10
# Without timers: they go off while no program runs, and Python knows the thread.
LINUX = {
    "pid entry": "pid$target:zoo:fib:entry",
    "pid return": "pid$target:zoo:fib:return",
    "pid offset": "pid$target:zoo:fib:0",
    "syscall entry": "syscall:::entry",
    "syscall return": "syscall:::return",
}


def kernel_survey(isa: str) -> Survey:
    """Survey the providers of the teaching kernel."""
    return survey(KERNEL, "--isa", isa, "-c", KERNEL_COMMAND)


def linux_survey(isa: str) -> Survey:
    """Survey the providers of Linux programs."""
    return survey(LINUX, "-c", f"{ROOT / 'testbins' / 'built' / isa / 'linux' / 'zoo'} recursion")


class Reason(NamedTuple):
    """Why items ask Python at some probes."""

    why: str
    items: frozenset[str]
    probes: frozenset[str]

    @classmethod
    def of(cls, why: str, items: str, probes: Iterable[str]) -> Reason:
        """Return a reason; `items` are names with blanks between them."""
        return cls(why, frozenset(items.split()), frozenset(probes))

    def explains(self, item: str, probe: str) -> bool:
        """Return whether this is why an item asks Python at a probe."""
        return item in self.items and probe in self.probes


TIMERS = ("profile", "tick", "cpc")
CALLS = ("syscall entry", "syscall return")
_USER_STACKS = "ustackdepth ucaller ustack jstack usym ufunc umod uaddr"
_ALWAYS = (
    Reason.of("the arguments of a process are put together in Python", "execargs", {*KERNEL, *LINUX}),
    Reason.of("only Python has them", "json cleanpath strtok inet_ntoa inet_ntoa6 inet_ntop", {*KERNEL, *LINUX}),
    Reason.of("there is no trap: it is a fault", "regs", ("sdt", "vfs", "dtmalloc", *CALLS, *TIMERS)),
)
OF_KERNEL = (
    *_ALWAYS,
    Reason.of("SDT has six arguments: it is a fault", "arg6 arg7 arg8 arg9", ("sdt", "vfs")),
    Reason.of("the stack of an interrupted function begins with arg0", "stackdepth caller stack sym func mod", TIMERS),
    Reason.of("each pc is met for the first time", _USER_STACKS, TIMERS),
)
OF_LINUX = (*_ALWAYS, Reason.of("the first who asks for the thread leaves it to the others", "curthread", CALLS))
# An interrupted thread's memory may not be mapped: it is a fault.
UNMAPPED = Reason.of("it is a fault", " ".join(_OF_PROGRAMS), TIMERS)


def main(isas: list[str]) -> None:
    """Print what asks Python."""
    for isa in isas or ISAS:
        for kind, run in (("kernel", kernel_survey), ("linux", linux_survey)):
            found = run(isa)
            click.echo(f"{isa} {kind}: firings {dict(found.firings)}, callbacks {dict(found.callbacks)}")
            click.echo(found.text[-1500:] if not found.firings else "")
            rows: dict[tuple[str, str], list[str]] = {}
            for (item, probe), what in found.asks().items():
                rows.setdefault((item, what), []).append(probe)
            for (item, what), probes in rows.items():
                click.echo(f"  {item:18}{what:30}{', '.join(probes)}")


if __name__ == "__main__":
    main(sys.argv[1:])
