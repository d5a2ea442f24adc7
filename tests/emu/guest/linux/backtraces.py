"""Stacks of programs: those that the guest finds, and those that gdb finds under qemu-user.

A frame is (object's base name, address in the file), so that it does not matter where objects are
loaded.
"""

import json
import shutil
import socket
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from emu.elf.image import Image
from emu.guest.linux.fs.stdio import Standard
from emu.guest.linux.launch import ENVIRONMENT
from emu.isa import ISAS
from tests.support.qemu import below
from trapline.consumer.tracer import Tracer
from trapline.machine import linux_machine

QEMU = {isa: shutil.which(f"qemu-{isa}") for isa in ISAS}
GDB = shutil.which("gdb-multiarch")
DEEPEST = 60
# Environment variables that remove randomness from programs.
CONSTANT = {**ENVIRONMENT, "PERL_HASH_SEED": "0", "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", "LC_ALL": "C"}


@dataclass(frozen=True)
class Case:
    """A program, and the function at whose entry stacks are taken."""

    words: tuple[str, ...]
    function: str
    object: str
    root: Path | None = None
    most: int = 20
    """Stacks to take."""

    @property
    def program(self):
        """The program's file on the host."""
        place = Path(self.words[0])
        if self.root is None:
            return place
        inside = self.root / self.words[0].lstrip("/")
        return self.root / str(inside.readlink()).lstrip("/") if inside.is_symlink() and not inside.exists() else inside


ZOO = Path(__file__).parents[4] / "testbins" / "built"
DEBIAN = Path(__file__).parents[4] / ".debian"
# What zoo's cases say is said by one function; `signals` says it in handlers of several depths.
ZOO_CASES = ("recursion", "signals", "cxx", "setjmp", "switchcase", "tailcalls")
PERL = (
    "sub f { my @a = sort { print STDERR qq(x\\n); $a <=> $b } (3, 2, 1) } sub g { eval { f(); die 1 }; warn $@ } "
    "g(); $_ = q(abab); s/(b)/print qq(y\\n); uc $1/ge; print; $SIG{ALRM} = sub { print qq(alarm\\n) }; kill ALRM => $$"
)
PYTHON = (
    "import json, re\ndef f(n): return f(n - 1) if n else print(json.dumps([n]), flush=True)\n"
    "f(4); re.sub('a', lambda m: print(m, flush=True) or '', 'aba'); sorted([3, 1], key=lambda n: print(n, flush=True))"
)
BASH = (
    "f() { local x=$1; echo $x; [ $x -gt 0 ] && f $((x-1)); }; f 3; for i in 1 2; do echo $i; done; "
    "trap 'echo usr1' USR1; kill -USR1 $$; eval 'echo \"$(f 1)\"'"
)
SQL = "create table t(a); insert into t values (1), (2); select a, count(*) from t group by a order by a;"
# Debian's programs by name: their words, and where their stacks are taken in the C library.
DEBIAN_CASES = {
    "perl": (("/usr/bin/perl", "-e", PERL), "write"),
    "perl allocates": (("/usr/bin/perl", "-e", PERL), "realloc"),
    "python": (("/usr/bin/python3.13", "-c", PYTHON), "write"),
    "bash": (("/usr/bin/bash", "-c", BASH), "write"),
    "bash allocates": (("/usr/bin/bash", "-c", BASH), "sigprocmask"),
    "sqlite3": (("/usr/bin/sqlite3", ":memory:", SQL), "write"),
    "lua": (("/usr/bin/lua5.4", "-e", "for w in ('a b'):gmatch('%a') do pcall(print, w) io.flush() end"), "fflush"),
    "factor": (("/usr/bin/factor", "360", "1000001"), "write"),
    "jq": (("/usr/bin/jq", "-n", "-c", "[1, {a: 2}] | .[1].a"), "realloc"),
    "awk": (("/usr/bin/mawk", 'BEGIN { while (i++ < 3) print substr("abc", i) | "cat" }'), "malloc"),
}


def zoo(isa, case, most=20):
    """Return a case of the zoo, which the repository brings."""
    return Case((str(ZOO / isa / "linux" / "zoo"), case), "say", "zoo", most=most)


def debian(isa, name):
    """Return a case of Debian's programs."""
    words, function = DEBIAN_CASES[name]
    return Case(words, function, "libc.so.6", (DEBIAN / isa).resolve(), most=30)


# Cases without significance, with the reasons.
NOT_COMPARED = {
    ("i386", "signals"): "gdb 13 does not go on from a signal's frame here",
    ("i386", "python"): "qemu-i386 does not run this python",
    ("riscv64", "signals"): "static C libraries of Debian's cross compiler say nothing of pthread_sigmask's frame",
}
# A CPU that does not sign return addresses: this gdb does not know which bits are the signature.
CPU = {"aarch64": ["-cpu", "cortex-a72"]}

# Run in gdb.  Breakpoints stand on the function itself: gdb would put them behind its prologue.
# Objects are found by the program's own list: gdb does not find it where qemu tells it where the text is.
_SCRIPT = """
import gdb, json, os, re, struct
for line in ("set pagination off", "set confirm off", "set width 0", "set backtrace past-main on",
             "set backtrace past-entry on", "set backtrace limit {deepest}", "set debuginfod enabled off",
             "set auto-load off", "handle all nostop noprint pass", "set osabi GNU/Linux", "target remote :{port}"):
    gdb.execute(line, to_string=True)

def memory(address, size):
    return bytes(gdb.selected_inferior().read_memory(address, size))

def words(address, count):
    return struct.unpack("<%d" % count + "{letter}", memory(address, count * {word}))

def text(address):
    found = b""
    while not found.endswith(bytes(1)):
        found += memory(address + len(found), 1)
    return found[:-1].decode()

def stop_at(address):
    return gdb.Breakpoint("*" + hex(address), internal=True)

auxiliary = gdb.execute("info auxv", to_string=True)
bias = int(re.search("AT_ENTRY.*?(0x[0-9a-f]+)", auxiliary)[1], 16) - {entry}
gdb.execute("symbol-file {program} -o %#x" % bias, to_string=True)
stop = stop_at(bias + {start})
gdb.execute("continue", to_string=True)
stop.delete()

biases = dict()
biases[{program!r}] = bias
place = {dynamic}
while place and words(place + bias, 1)[0] != 21:  # DT_DEBUG
    place += 2 * {word}
at = words(place + bias, 2)[1] if place else 0
at = words(at + {word}, 1)[0] if at else 0
while at:
    base, name, _, following = words(at, 4)
    path = {root!r} + text(name)
    if text(name) and os.path.exists(path):
        biases[path] = base
        gdb.execute("add-symbol-file %s -o %#x" % (path, base), to_string=True)
    at = following

stop_at(next(at for path, at in biases.items() if os.path.basename(path) == {object!r}) + {offset})
stacks = []
try:
    while len(stacks) < {most}:
        gdb.execute("continue", to_string=True)
        frame, pcs = gdb.newest_frame(), []
        while frame is not None and len(pcs) < {deepest}:
            pcs.append(frame.pc())
            try:
                frame = frame.older()
            except gdb.error:
                break
        stacks.append(pcs)
except gdb.error:
    pass  # the program has ended
json.dump([stacks, biases], open({output!r}, "w"))
gdb.execute("kill", to_string=True)
"""


def _port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def _start(image):
    return image.symbol("main").value if image.defines("main") else image.entry


def gdb_stacks(isa, case):
    """Return the stacks that gdb finds."""
    program, image = str(case.program), Image(case.program)
    dynamic = image.section(".dynamic")
    owner = case.program if case.object == case.program.name else _library(case)
    with tempfile.TemporaryDirectory() as folder:
        output, port = f"{folder}/stacks.json", _port()
        (script := Path(folder) / "script.py").write_text(
            _SCRIPT.format(
                deepest=DEEPEST, program=program, port=port, most=case.most, object=case.object, output=output,
                root=str(case.root or ""), letter="Q" if image.isa.word == 8 else "I", word=image.isa.word,
                entry=image.entry, start=_start(image), offset=Image(owner).symbol(case.function).value,
                dynamic=dynamic.address if dynamic else 0,
            )
        )  # fmt: skip
        qemu = [QEMU[isa], *CPU.get(isa, []), "-g", str(port), "-0", case.words[0]]
        if case.root:
            qemu += below(case.root)
        running = subprocess.Popen(
            [*qemu, program, *case.words[1:]], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env=CONSTANT, cwd="/",
        )  # fmt: skip
        try:
            told = subprocess.run(
                [GDB, "-nx", "-batch", "-x", str(script)], capture_output=True, text=True, timeout=120, check=False,
                stdin=subprocess.DEVNULL,
            )  # fmt: skip
        finally:
            running.kill()
            running.wait()
        assert Path(output).exists(), told.stdout + told.stderr
        stacks, biases = json.loads(Path(output).read_text())
    objects = sorted((bias, Path(path).resolve().name, _end(path)) for path, bias in biases.items())
    return [[_named(pc, objects) for pc in pcs] for pcs in stacks]


def _end(path):
    return max(segment.vaddr + segment.memsz for segment in Image(path).segments)


def _library(case):
    return next(path for path in case.root.glob(f"usr/lib/*-linux-gnu/{case.object}"))


def _named(pc, objects):
    return next(((name, pc - bias) for bias, name, end in objects if 0 <= pc - bias < end), ("", 0))


def guest_stacks(isa, case):
    """Return the stacks that the guest finds."""
    options = linux_machine.LinuxOptions(
        case.words, isa=ISAS[isa], root=case.root, report=lambda _text: None,
        standard=Standard(read=lambda _size: b"", write=len, error=len), evaltime=linux_machine.EvalTime.MAIN,
        environment=tuple(CONSTANT.items()),
    )  # fmt: skip
    machine = linux_machine.start(options)
    with Tracer(machine.guest, machine.dtrace, target=machine.target, provide=machine.probes.provide) as tracer:
        tracer.enable(
            f"pid$target:{case.object}:{case.function}:entry /pid == $target/ {{ ustack({DEEPEST}); }}"
            f"pid$target:{case.object}:{case.function}:entry /pid == $target && ++n == {case.most}/ {{ exit(0); }}"
        )
        return [
            [_located(machine.guest, frame.pc) for frame in event.values[0]]
            for event in tracer.events()
            if event.values and isinstance(event.values[0], tuple)
        ]


def _located(guest, pc):
    process = guest.kernel.processes.get(guest.target)
    loaded = guest.objects.at(process, pc) if process is not None and process.alive else None
    if loaded is None:
        loaded = next((one for one in guest.objects._last.get(guest.target, ()) if one.holds(pc)), None)
    return (loaded.name, pc - loaded.bias) if loaded is not None else ("", 0)
