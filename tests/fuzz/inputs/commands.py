"""Whole commands: random options and words, odd characters, damaged files.

A command must end with a documented status, and give the reason when it refuses.
"""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path
from random import Random
from typing import Final

from emu.guest.kernel.boot import images
from emu.isa import ISAS
from tests.fuzz.case import Fuzzer
from tests.fuzz.inputs.d_programs import DPrograms
from tests.fuzz.mutation import damage, damage_words
from tests.support.template import warm_up
from trapline.cli import main
from trapline.options import OPTIONS

_D: Final = (
    "BEGIN { trace(1); exit(0); }", "fbt::sys_read:entry { @[execname] = count(); }", "syscall:::entry { i++; }",
    "BEGIN { @a[1] = quantize(3); } tick-1ms /i > 2/ { printa(@a); }", "pid$target::main:entry { ustack(); }",
    'BEGIN { printf("%s %d\\n", execname, $1); }', "dtrace:::ERROR {} BEGIN { *(int *)8; exit(3); }",
    "fbt::malloc:return /arg1/ { print(curthread); exit(0); }", "#pragma D option quiet\nEND { stack(); }",
)  # fmt: skip
_DESCRIPTIONS: Final = ("fbt::sys_*:entry", "BEGIN", "syscall:::", "pid$target:::entry", ":::", "profile-97", "1",
                        "fbt:kernel:mallox:entry", "kinst::malloc:", "dtrace:::BEGIN", "myprov$target:::")  # fmt: skip
_ODD: Final = ("", "-", "--", "²", "é", "\udcff", "a" * 5000, "9" * 5000, "%s%n", "../..", "/dev/null", "/", "\n", "'",
               '"', "0x", "-1", "1e9", "*", "[", "[!", "::", ":", "=", "@", "$", "\\", "f", "./f", "nosuch", "0", "1",
               "testbins:tiny", "testbins:zoo", "testbins:kernel", "testbins:nosuch", "testbins:", "x\0y")  # fmt: skip
_ISAS: Final = (*ISAS, "x86_64", "mips", "")
# Option -> what its values look like; None: it has none.  Those that go on for long or leave this machine are left out.
_Options = dict[str, tuple[str, ...] | None]
_UPROBE: Final[_Options] = {
    "-l": ("f", "testbins:tiny"), "-c": ("testbins:tiny", "./f", "testbins:zoo recursion"), "--root": (".", "/nosuch"),
    "--isa": _ISAS, "-F": None, "-d": ("0.01", "nan", "inf", "-1", "x"), "-H": None, "-s": None, "-v": None,
    "-p": ("100", "1"), "--fidelity": ("exact", "linux", "x"), "-L": ("100", "f"), "-i": None, "-t": ("1",),
}  # fmt: skip
_COMMANDS: Final[dict[str, tuple[_Options, tuple[str, ...]]]] = {
    "dtrace": (
        {
            "-n": (*_D, *_DESCRIPTIONS), "-P": ("fbt", "x"), "-m": ("kernel",), "-f": ("sys_read", "kernel:malloc"),
            "-i": ("1", "99999999"), "-s": ("f",), "-c": ("ls /", "testbins:tiny", "true", "./f"), "-p": ("1", "4"),
            "-b": ("1k", "1t", "x"), "-D": ("A=1", "1"), "-I": (".",), "-L": (".",), "-o": ("out", "."), "-U": ("A",),
            "-X": ("a", "c", "s", "t", "x"), "--isa": _ISAS, "--guest": ("kernel", "linux", "x"), "--root": (".",),
            "--trap": ("host", "guest", "x"), **dict.fromkeys("-a -A -C -e -F -G -h -H -l -q -S -v -V -Z".split()),
            "-32": None, "-64": None, "--console": None, "--help": None,
        },
        ("f", "1", "abc"),
    ),
    "lockstat": (
        {
            "-e": ("0", "1,4-7", "0-99999999", "x"), "-i": ("97", "0"), "-s": ("3",), "-n": ("1", "0"), "-d": ("100",),
            "-l": ("proc_list", "0x1,99"), "-f": ("malloc",), "-D": ("3",), "-o": ("out",), "--isa": _ISAS,
            "--trap": ("host", "guest"),
            **dict.fromkeys("-C -E -H -I -A -b -t -h -T -c -k -g -w -W -R -p -P -V".split()),
        },
        ("true", "ls", "nosuch"),
    ),
    "uprobe": (_UPROBE, ("p:tiny:main", "r:zoo:fib $retval", "p ./f:0x10 a=%ax", "testbins:tiny", "p:f:main")),
    "usdt": (_UPROBE, ("zoo:request", "f:a:b", "zoo:string $arg1", "testbins:zoo:x:y")),
    "bench": (
        {
            "--isa": (*_ISAS, "all", "x86_64,i386"), "--mechanism": ("fbt", "pid,uprobe", "x"), "--models": None,
            "--model": ("intel-2025", "kunpeng-916,x"), "--hz": ("3e9", "0", "-1", "nan", "x"), "--json": ("-",),
            "--program": ("testbins:tiny", "testbins:zoo recursion", "./f", "'"), "--root": (".",),
            "--probes": ("pid$target:a.out::entry", "x", "BEGIN"), "--compare": ("f", "nosuch"),
            "--threshold": ("0", "-1", "nan"),
        },
        (),
    ),
    "sites": (
        {
            "--function": ("*", "sys_*", "nosuch"), "--isa": _ISAS, "--provider": ("fbt", "pid", "uprobe", "kinst"),
            "--fidelity": ("exact", "freebsd", "linux"), "--summary": None, "--syntax": ("intel", "att"),
            "--json": ("-",), "--root": (".",),
        },
        ("f", "testbins:tiny"),
    ),
    "step": (
        {"-n": (*_D[:3], *_DESCRIPTIONS), "-c": ("true", "ls"), "--isa": _ISAS, "--trap": ("host", "guest"),
         "--json": ("-",), "--syntax": ("intel",)},
        ("x",),
    ),
    "check": (
        {
            "--isa": _ISAS, "--provider": ("fbt", "pid", "uprobe"), "--function": ("main", "nosuch"), "--no-run": None,
            "--states": ("1", "0", "10001"), "--root": (".",), "--rules": ("f:x", "os:nosuch", "nosuch", "json:loads"),
            "--fidelity": ("exact", "linux"), "--report": ("r.json", "r.html", "r.xml", "r.txt", "r", "./nosuch/r.txt"),
            "--results": ("f", "db", "."), "--museum": ("list", "nosuch"), "--every-instruction": None,
            "--syntax": ("intel", "att"),
        },
        ("f", "testbins:tiny", "testbins:nosuch"),
    ),
    "plockstat": (
        {"-n": ("3",), "-e": ("1",), "-s": ("2",), "-x": ("bufsize=1k",), "--isa": _ISAS,
         **dict.fromkeys("-v -A -C -H -V".split()), "-p": ("1",)},
        ("contend", "true"),
    ),
    "kldstat": ({"-v": None, "--isa": _ISAS}, ("sumcall", "echo", "nosuch")),
}  # fmt: skip
# True command lines: every other case is one of them, damaged.
_LINES: Final = (
    ("dtrace", "-qn", "pid$target::main:return { trace(arg1); }", "-c", "testbins:zoo recursion"),
    ("dtrace", "-s", "f", "1", "abc"), ("dtrace", "-CZ", "-s", "f"), ("dtrace", "-ln", "fbt::sys_*:entry"),
    ("dtrace", "-n", "syscall::read:entry { @[execname] = quantize(arg2); }", "-c", "cat /etc/motd"),
    ("step", "-n", "fbt::malloc:entry", "--isa", "aarch64"), ("step", "-n", "fbt::sys_read:return", "--trap", "guest"),
    ("uprobe", "r:zoo:fib $retval:s32", "-c", "testbins:zoo recursion"), ("uprobe", "-l", "testbins:tiny"),
    ("uprobe", "p:a/b ./f:0x1000 a=%di", "-c", "./f"), ("uprobe", "p:tiny:main", "a == 1", "-c", "testbins:tiny"),
    ("usdt", "-L", "testbins:zoo"), ("usdt", "zoo:string", "-c", "testbins:zoo markers"), ("usdt", "-l", "f"),
    ("check", "testbins:tiny", "--isa", "riscv64", "--states", "1", "--no-run"), ("check", "f", "--states", "1"),
    ("sites", "f", "--provider", "uprobe"), ("sites", "testbins:tiny", "--summary", "--json", "-"),
    ("lockstat", "-H", "-D", "3", "true"), ("plockstat", "-A", "contend"), ("kldstat", "-v", "sumcall"),
)  # fmt: skip
# The beginning of each command line, so that no case runs forever.
_BOUNDED: Final = {"dtrace": ("-x", "timeout=5ms"), "plockstat": ("-e", "1")}
_TIME_OPTIONS: Final = frozenset({"timeout", "hosttimeout"})
_STATUSES: Final = frozenset({0, 1, 2, 3, 127, 139})


class Commands(Fuzzer):
    """Commands of `trapline`, each a process as the user has it."""

    name = "commands"
    seconds = 60.0
    megabytes = 2048
    forks = True
    quick = 3
    compared = 2

    def __init__(self) -> None:
        self._warm = False
        self._d = DPrograms()
        self._elf: list[bytes] = []

    def warm(self) -> None:
        """Load every command, and run one on each ISA."""
        super().warm()
        if self._warm:
            return
        self._warm = True
        warm_up()

    def make(self, random: Random) -> bytes:
        """Make the words of a command, and the content of a file that they may name."""
        if not self._elf:
            self._elf = [images.linux(isa, "tiny").read_bytes() for isa in ISAS.values()]
        words = self._true(random) if random.random() < 0.5 else self._any(random)
        command = words[0]
        content = self._file(random, command)
        shown = [word.replace("\0", "") for word in words]  # no command line has a NUL
        return json.dumps(shown).encode() + b"\n" + content

    @staticmethod
    def _true(random: Random) -> list[str]:
        command, *words = random.choice(_LINES)
        if random.random() < 0.5:
            at = random.randrange(len(words))
            words[at] = "".join(damage_words(random, list(words[at]), (*_ODD, *_D), 2))
        if random.random() < 0.7:
            words = damage_words(random, words, (*_ODD, *_COMMANDS[command][0]), 2)
        return [command, *_BOUNDED.get(command, ()), *words]

    def _any(self, random: Random) -> list[str]:
        command = random.choice(list(_COMMANDS))
        options, operands = _COMMANDS[command]
        words = [command, *_BOUNDED.get(command, ())]
        for _ in range(random.choice((0, 1, 2, 2, 3, 5))):
            words += self._option(random, options)
        words += [
            random.choice(operands if operands and random.random() < 0.8 else _ODD)
            for _ in range(random.choice((0, 1, 1, 2)))
        ]
        if random.random() < 0.15:
            words[1:] = damage_words(random, words[1:], (*_ODD, *options), 2)
        return words

    def _option(self, random: Random, options: _Options) -> list[str]:
        if "-x" in options or ("-n" in options and random.random() < 0.3):
            name = random.choice([name for name in OPTIONS if name not in _TIME_OPTIONS])
            value = random.choice(("", "=", "=1", "=0", "=4k", "=1t", "=abc", "=-1", "=²", "=9" * 30, "=100hz", "=on"))
            return ["-x", name + value]
        option = random.choice(list(options))
        values = options[option]
        if values is None:
            return [option]
        value = random.choice(_ODD if random.random() < 0.08 else values)
        if random.random() < 0.08:
            value = "".join(damage_words(random, list(value[:200]), _ODD[:30], 2))
        return [option, value]

    def _file(self, random: Random, command: str) -> bytes:
        if command == "dtrace" and random.random() < 0.7:
            return self._d.make(random)
        choice = random.randrange(5)
        if choice == 0:
            return random.randbytes(random.choice((0, 1, 100, 5000)))
        if choice == 1:
            return b"SQLite format 3\0" + random.randbytes(200)
        return damage(random, random.choice(self._elf), 3, range(64 + 56 * 4))

    def run(self, case: bytes) -> str:
        """Be the command."""
        words, content = case.split(b"\n", 1)
        arguments: list[str] = json.loads(words)
        Path("f").write_bytes(content)
        Path("f").chmod(0o755)
        for number, (name, flags) in enumerate((("in", os.O_RDONLY), ("out", os.O_WRONLY), ("err", os.O_WRONLY))):
            Path(f".{name}").write_bytes(b"")
            os.dup2(os.open(f".{name}", flags), number)
        sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), "utf-8")  # as the interpreter makes them
        sys.stderr = io.TextIOWrapper(
            io.FileIO(2, "w", closefd=False), "utf-8", "backslashreplace", line_buffering=True
        )
        status = _become(arguments)
        sys.stdout.flush()
        sys.stderr.flush()
        said = Path(".err").read_text("utf-8", "replace")
        shown = Path(".out").read_text("utf-8", "replace")
        assert "Traceback" not in said + shown, said[-300:]
        assert status in _STATUSES or arguments[0] == "dtrace", f"status {status}: {said[-200:]}"
        assert not status or said or shown, f"status {status} without a word"
        return f"{arguments[0]} ends with {status if status in _STATUSES else 'another status'}: {said[:300]}"


def _become(arguments: list[str]) -> int:
    """Run a command as the console script does; return its exit status.  Raises what escapes it."""
    sys.argv = ["trapline", *arguments]
    try:
        main(arguments, prog_name="trapline")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    return 0
