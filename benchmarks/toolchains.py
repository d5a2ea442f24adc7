"""Programs of every tool chain with every function probed.

    python -m benchmarks.toolchains [--isa ISA] [--compiler NAME] [--linker NAME] [--jobs N].

The programs of testbins/toolchains count the calls of their own functions.  Each is compiled by gcc
and clang, linked by bfd, lld, gold and mold, at -O0, -O2 and -Os, as a static, a
position-independent and a static position-independent program, and with shared libraries, one of
which is loaded late, for each ISA; one in Rust and one in Go, too.  It runs natively or below
qemu-user, in the guest unprobed, and in the guest with probes of the pid provider at each entry and
return of its functions, with a uprobe at each, with a return uprobe at each, and with its markers
enabled.  All outputs must be the same, the counts of probes those of the program, and the markers
those of `readelf -n`.

The totals go to benchmarks/results/toolchains.json; the exit status says whether all was the same.
What the installed packages cannot build is listed.  A stopped run goes on where it was.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import emu
import providers
import trapline.machine
from benchmarks.ongoing import RESULTS, add_options, command, complete, kept, workers
from benchmarks.provenance import save
from emu.elf.image import Image
from emu.elf.stapsdt import markers
from emu.elf.symbols import Symbol
from emu.guest.base import GuestError
from emu.guest.linux.fs.stdio import Standard
from emu.guest.linux.guest import LinuxGuest
from emu.isa import ISAS
from providers.base import Provider
from providers.fasttrap import Fasttrap, PidProbes, Wanted
from providers.fasttrap.usdt import UsdtProbes
from providers.uprobes import Consumer, UprobeError, Uprobes
from trapline.ftrace.uprobe_events import find_file
from trapline.lab.check.cpu.listener import Listener
from trapline.machine import linux_machine

SOURCES: Final = Path(__file__).parents[1] / "testbins" / "toolchains"
SAVED: Final = RESULTS / "toolchains.json"
PARTS: Final = ("one.c", "two.c")
LINKERS: Final = ("bfd", "lld", "gold", "mold")
LEVELS: Final = ("0", "2", "s")
FORMS: Final = {
    "static": ("-static", "-no-pie"),
    "pie": ("-fPIE", "-pie"),
    "static-pie": ("-fPIE", "-static-pie"),
    "shared": ("-no-pie",),
}
RUST_FORMS: Final = {
    "static": ("-C", "target-feature=+crt-static", "-C", "relocation-model=static"),
    "pie": (),
    "static-pie": ("-C", "target-feature=+crt-static"),
}
# Debian's names: of the compilers' target, and of Go's.
TRIPLES: Final = {
    "x86_64": "x86_64-linux-gnu",
    "i386": "i686-linux-gnu",
    "aarch64": "aarch64-linux-gnu",
    "riscv64": "riscv64-linux-gnu",
}
GO: Final = {"x86_64": "amd64", "i386": "386", "aarch64": "arm64", "riscv64": "riscv64"}
LOADERS: Final = {
    "x86_64": "lib64/ld-linux-x86-64.so.2",
    "aarch64": "lib/ld-linux-aarch64.so.1",
    "riscv64": "lib/ld-linux-riscv64-lp64d.so.1",
    "i386": "lib/ld-linux.so.2",
}
LIBRARIES: Final = ("libc.so.6", "libgcc_s.so.1", "libdl.so.2")
# Code without a return probe: what is not called, or uses its return address for more than a return, as position-
# independent code on i386 does to learn where it is.  The replaced address breaks it on Linux, too.
NO_RETURN: Final = re.compile(r"_start|_dl_start.*|.*(setjmp|longjmp).*|_?_?vfork|_?_?clone\d?|__x86\.get_pc_thunk\..*")
# Markers are in the tables of calls with this mark.
# Lines of a compiler's complaint: why, and that it has failed.
_REASON: Final = re.compile("error|cannot|unrecogni|undefined|No such|relocation")
_SUMMARY: Final = re.compile("collect2: error|linker command failed")
MARKER: Final = "(marker) "
PROVIDER: Final = "toolchain"
SECONDS: Final = 120
# Exit statuses of the programs.
STATUSES: Final = frozenset({0, 3})


class Combination(NamedTuple):
    """One row of the matrix."""

    isa: str
    compiler: str
    linker: str
    level: str
    form: str

    @property
    def name(self) -> str:
        """Its name, and the key of its result."""
        return " ".join(one for one in self if one)


class BuildError(Exception):
    """A combination that the installed packages cannot build, or build wrongly."""


class Outcome(NamedTuple):
    """What a run of a program has given."""

    output: str
    status: int | None


def combinations() -> Iterator[Combination]:
    """Yield the whole matrix."""
    for isa in ISAS:
        for compiler, linker, level, form in product(("gcc", "clang"), LINKERS, LEVELS, FORMS):
            yield Combination(isa, compiler, linker, f"-O{level}", form)
        yield Combination(isa, "go", "", "", "static")
    for linker, level, form in product(LINKERS, LEVELS, RUST_FORMS):
        yield Combination("x86_64", "rustc", linker, f"-O{level}", form)


# -- building


def _call(words: Sequence[str], **options: Any) -> str:
    """Run a compiler.  Raises `BuildError` with the first line of its complaint."""
    if shutil.which(words[0]) is None:
        raise BuildError(f"{words[0]} is not installed")
    done = subprocess.run(words, capture_output=True, text=True, errors="replace", check=False, **options)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if _REASON.search(line) and not _SUMMARY.search(line)]
        raise BuildError((lines or done.stderr.splitlines() or ["it failed"])[0][:160])
    return done.stdout


def build(combination: Combination, folder: Path) -> Path:
    """Build a program into a folder, which becomes its root, with the libraries that it needs."""
    program = folder / "program"
    isa, compiler, linker, level, form = combination
    if compiler == "go":
        environment = {**os.environ, "GOARCH": GO[isa], "GO111MODULE": "off", "CGO_ENABLED": "0"}
        _call(["go", "build", "-o", str(program), str(SOURCES / "counted.go")], env=environment)
        return program
    if compiler == "rustc":
        flags = ["-C", f"opt-level={level[2:]}", "-C", f"link-arg=-fuse-ld={linker}", *RUST_FORMS[form]]
        _call(["rustc", *flags, "-o", str(program), str(SOURCES / "counted.rs")])
    else:
        _compile_c(combination, folder, program)
    if form in {"pie", "shared"}:
        _fill(isa, folder)
    return program


def _compile_c(combination: Combination, folder: Path, program: Path) -> None:
    isa, compiler, linker, level, form = combination
    triple = TRIPLES[isa]
    driver = ["clang", f"--target={triple}"] if compiler == "clang" else [f"{triple}-gcc"]
    if compiler == "clang" and isa == "i386" and Path("/usr", triple, "lib").is_dir():
        driver += [f"-B/usr/{triple}/lib", f"-L/usr/{triple}/lib", "-idirafter", f"/usr/{triple}/include"]
    # gcc looks for other linkers than binutils' beside its own, or in a folder of -B.
    tools = folder / "tools"
    tools.mkdir()
    if path := shutil.which(f"ld.{linker}"):
        (tools / f"ld.{linker}").symlink_to(path)
    if compiler == "gcc" and linker in {"lld", "mold"}:
        driver.append(f"-B{tools}")
    # sys/sdt.h is the same for all ISAs.
    common = [*driver, f"-fuse-ld={linker}", level, "-g0", *FORMS[form]]
    common += [
        "-idirafter",
        "/usr/include",
        "-idirafter",
        "/usr/include/x86_64-linux-gnu",
        "-Wno-unused-command-line-argument",
    ]
    parts = [str(SOURCES / name) for name in PARTS]
    if form != "shared":
        _call([*common, "-o", str(program), str(SOURCES / "main.c"), *parts])
        return
    (folder / "lib").mkdir(exist_ok=True)
    shared = [one for one in common if one != "-no-pie"] + ["-fPIC", "-shared"]
    library, plugin = folder / "lib/libparts.so", folder / "lib/plugin.so"
    # `counts` is the program's.
    _call([*shared, "-Wl,-soname,libparts.so", "-o", str(library), *parts])
    _call([*shared, "-Wl,-Bsymbolic", "-o", str(plugin), str(SOURCES / "plugin.c")])
    _call([*common, "-rdynamic", '-DPLUGIN="/lib/plugin.so"', "-o", str(program), str(SOURCES / "main.c"),
           f"-L{folder}/lib", "-lparts", "-ldl"])  # fmt: skip


def _fill(isa: str, folder: Path) -> None:
    """Put the C library that the compiler links with into a root directory."""
    places = [Path("/usr", TRIPLES[isa], "lib"), Path("/lib", TRIPLES[isa]), Path("/lib64")]
    for name in (*LIBRARIES, LOADERS[isa]):
        found = next((place / Path(name).name for place in places if (place / Path(name).name).exists()), None)
        if found is None:
            raise BuildError(f"no {name} for {isa} on this host")
        target = folder / (name if "/" in name else f"lib/{name}")
        target.parent.mkdir(exist_ok=True)
        shutil.copy(found, target)


# -- running


def natively(combination: Combination, program: Path, folder: Path) -> Outcome | None:
    """Run a program on this host's CPU or below qemu-user; None: neither can."""
    isa, host = combination.isa, os.uname().machine
    if host == isa or (host == "x86_64" and isa == "i386"):
        loader = [str(folder / LOADERS[isa]), "--library-path", str(folder / "lib")]
        words = [*(loader if (folder / LOADERS[isa]).exists() else []), str(program)]
        # The path of the plugin is one of the root.
        done = None if combination.form == "shared" else _run(words)
        if done is not None or host == isa:
            return done
    qemu = shutil.which(f"qemu-{isa}") or shutil.which(f"qemu-{isa}-static")
    return _run([qemu, "-L", str(folder), "-E", "LD_LIBRARY_PATH=/lib", str(program)]) if qemu else None


def _run(words: Sequence[str]) -> Outcome | None:
    """Run a program; None: this host cannot."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS, check=False)
    except OSError:
        return None
    return Outcome(done.stdout + done.stderr, done.returncode)


class Counts(Listener):
    """Counts firings by function and name of the probe."""

    def __init__(self) -> None:
        super().__init__()
        self.functions: list[str] = []

    def probe_create(self, provider: Provider, module: str, function: str, name: str, aframes: int, arg: Any) -> int:
        """Take a probe."""
        self.functions.append(function)
        return super().probe_create(provider, module, function, name, aframes, arg)

    def of(self, name: str) -> Counter[str]:
        """Return the firings of the probes of a name, by function."""
        found: Counter[str] = Counter()
        for number, count in self.hits.items():
            if self.created[number - 1][0] == name:
                found[self.functions[number - 1]] += count
        return found


class Run:
    """A run of a program in the guest."""

    def __init__(self, combination: Combination, folder: Path) -> None:
        self.output = bytearray()
        standard = Standard(write=self.output.extend, error=self.output.extend)
        options = linux_machine.LinuxOptions(
            ("/program",), isa=ISAS[combination.isa], root=folder, standard=standard
        )  # fmt: skip
        self.guest: LinuxGuest = linux_machine.start_guest(options)
        self.modules = [f"/lib/{name}" for name in ("libparts.so", "plugin.so") if (folder / "lib" / name).exists()]
        self.counts = Counts()
        self.refusals: list[str] = []

    def finish(self) -> Outcome:
        """Run to the end."""
        try:
            self.guest.run(None)
        except GuestError as error:
            return Outcome(self.output.decode("utf-8", "replace") + str(error), None)
        return Outcome(self.output.decode("utf-8", "replace"), self.guest.exit_status)

    def _fasttrap(self) -> Fasttrap:
        return Fasttrap(self.guest.kernel, self.counts, report=self.refusals.append)

    def pid(self) -> Outcome:
        """Run with pid probes at all entries and returns."""
        fasttrap = self._fasttrap()
        probes = PidProbes(fasttrap, self.counts, self.guest.objects, lambda: self._enable(fasttrap))
        for module, name in product(("a.out", "libparts.so", "plugin.so"), ("entry", "return")):
            probes.provide(self.guest.target, Wanted(module, "", name))
        self._enable(fasttrap)
        return self.finish()

    def _enable(self, fasttrap: Fasttrap) -> None:
        for _, probe in self.counts.created:
            if not probe.enabled:
                fasttrap.enable(probe)

    def markers(self) -> Outcome:
        """Run with all markers enabled."""
        fasttrap = self._fasttrap()
        UsdtProbes(fasttrap, self.counts, self.guest.objects).provide(PROVIDER, self.guest.target)
        self._enable(fasttrap)
        return self.finish()

    def uprobes(self, *, returns: bool) -> tuple[Outcome, Counter[str]]:
        """Run with a uprobe at each function, or a return uprobe."""
        registry = Uprobes(self.guest.kernel)
        found: Counter[str] = Counter()

        def consumer(name: str) -> Consumer:
            if returns:
                return Consumer(ret_handler=lambda _function, _frame: found.update([name]))
            return Consumer(handler=lambda _frame: found.update([name]))

        for path in ("/program", *self.modules):
            file, full = find_file(self.guest, path)
            image = Image(full, content=file.read(0, file.size))
            for symbol in functions(image):
                offset = image.offset_of(symbol.value)
                if offset is None or (returns and NO_RETURN.fullmatch(symbol.name)):
                    continue
                try:
                    registry.register(file, offset, consumer(symbol.name))
                except UprobeError as error:
                    self.refusals.append(f"{symbol.name}: {error}")
        return self.finish(), found


def functions(image: Image) -> Iterator[Symbol]:
    """Yield the functions of a file, one for each address."""
    yield from {one.value: one for one in image.functions if one.section and one.size}.values()


# -- judging


def expected(output: str) -> Counter[str]:
    """Return how often a program says that its functions were called."""
    found: Counter[str] = Counter()
    for name, count in re.findall(r"^called (.+) (\d+)$", output, re.MULTILINE):
        found[name] += int(count)
    return found


def _wrong_counts(what: str, wanted: Mapping[str, int], counted: Mapping[str, int]) -> Iterator[str]:
    for name, count in wanted.items():
        if counted.get(name, 0) != count:
            yield f"{what} of {name}: {counted.get(name, 0)}, not {count}"


def noted(path: Path) -> list[tuple[str, str, int, int, str]]:
    """Return the markers that `readelf -n` shows: provider, name, location, semaphore, arguments."""
    text = subprocess.run(["readelf", "-nW", path], capture_output=True, text=True, check=True).stdout
    form = r"Provider: (\S+)\s+Name: (\S+)\s+Location: 0x(\w+), Base: 0x\w+, Semaphore: 0x(\w+)\s+Arguments: (.*)"
    return sorted((one, two, int(at, 16), int(semaphore, 16), rest.strip())
                  for one, two, at, semaphore, rest in re.findall(form, text))  # fmt: skip


def _differences(combination: Combination, folder: Path, count: Callable[..., None]) -> Iterator[str]:
    program = folder / "program"
    reference = natively(combination, program, folder)
    if reference is not None and reference.status not in STATUSES:
        raise BuildError(f"the program does not run natively or below qemu-user either (status {reference.status})")
    plain = Run(combination, folder).finish()
    reference = reference or plain
    if plain != reference:
        yield f"unprobed: {plain} is not {reference}"
        return
    wanted = expected(plain.output)
    calls = {name: number for name, number in wanted.items() if not name.startswith(MARKER)}
    if not calls:
        yield f"the program says nothing: {plain}"
        return
    run = Run(combination, folder)
    outcome = run.pid()
    count(probes=len(run.counts.created), fired=run.counts.fired, refused=len(run.refusals))
    if outcome != plain:
        yield f"pid: {outcome} is not {plain}"
    for what in ("entry", "return"):
        yield from _wrong_counts(f"pid {what}", calls, run.counts.of(what))
    for returns in (False, True):
        if returns and combination.compiler == "go":
            continue  # Go moves its stacks, and finds a return address there that is not its own
        run = Run(combination, folder)
        outcome, counted = run.uprobes(returns=returns)
        count(uprobes=len(counted), fired=counted.total(), refused=len(run.refusals))
        what = "return uprobe" if returns else "uprobe"
        if outcome != plain:
            yield f"{what}: {outcome} is not {plain}"
        yield from _wrong_counts(what, calls, counted)
    files = [program, *(path for path in (folder / "lib/libparts.so",) if path.exists())]
    for path in files:
        ours = sorted((one.provider, one.name, one.raw[0], one.raw[2], one.arguments) for one in markers(Image(path)))
        if ours != noted(path):
            yield f"markers of {path.name}: {ours} are not {noted(path)}"
        count(markers=len(ours))
    named = {name.removeprefix(MARKER): number for name, number in wanted.items() if name.startswith(MARKER)}
    if named:
        run = Run(combination, folder)
        outcome = run.markers()
        if outcome != plain:
            yield f"markers: {outcome} is not {plain}"
        yield from _wrong_counts("marker", named, run.counts.by_name())


def one(*words: str) -> dict[str, Any]:
    """Build and run a combination; return its row."""
    combination = Combination(*words)
    row: dict[str, Any] = {"name": combination.name}
    totals: Counter[str] = Counter()
    with TemporaryDirectory(prefix="trapline-toolchains-") as name:
        folder = Path(name)
        try:
            build(combination, folder)
            differences = list(_differences(combination, folder, lambda **numbers: totals.update(numbers)))
        except BuildError as error:
            return row | {"not_built": str(error).replace(name, "")}
        except GuestError as error:
            differences = [str(error)]
    return row | {"differences": [text[:400] for text in differences], **totals}


def main(words: Sequence[str] | None = None) -> int:
    """Try the matrix; 1 if anything differed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.toolchains", description="Probe what others compile.")
    parser.add_argument("--isa", choices=list(ISAS), action="append")
    parser.add_argument("--compiler", choices=("gcc", "clang", "rustc", "go"), action="append")
    parser.add_argument("--linker", choices=LINKERS, action="append")
    add_options(parser)
    arguments = parser.parse_args(words)
    units = {
        one.name: tuple(one)
        for one in combinations()
        if one.isa in (arguments.isa or ISAS)
        and one.compiler in (arguments.compiler or [one.compiler])
        and one.linker in (arguments.linker or [one.linker])
    }
    sources = "".join(path.read_text() for path in sorted(SOURCES.iterdir()) if path.is_file())
    done = kept("toolchains", emu, providers, trapline.machine, sources, Path(__file__).read_text("utf-8"))
    with workers(arguments) as make:
        rows = complete("tool chains", units, one, done, make, arguments.jobs)
    built = [row for row in rows if "not_built" not in row]
    different = {row["name"]: row["differences"] for row in built if row["differences"]}
    absent = {row["name"]: row["not_built"] for row in rows if "not_built" in row}
    totals = {
        key: sum(row.get(key, 0) for row in built) for key in ("probes", "uprobes", "markers", "refused", "fired")
    }
    if not (arguments.isa or arguments.compiler or arguments.linker):
        save(SAVED, {"programs": len(built), "different": different, "not_built": absent, **totals})
    print(f"{len(built)} programs, {len(different)} different; {len(absent)} not built; {totals['fired']:,} firings")
    for name, texts in different.items():
        print(f"{name}: {'; '.join(texts)}")
    for name, why in absent.items():
        print(f"not built: {name}: {why}", file=sys.stderr)
    return bool(different)


if __name__ == "__main__":
    command(main)
