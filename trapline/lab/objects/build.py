"""The compilation of a glue's sources, with the package's own headers instead of a kernel's.

The headers are below `headers/<pack>`: those that are there, and the names in the file `names`,
each of which stands for the pack's header of its own name (`freebsd.h`).
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from emu.isa import ISAS, Isa
from emu.support import child

_HEADERS: Final = Path(__file__).with_name("headers")
# The headers of several packs.
_SHARED: Final = "shared"
_SECONDS: Final = 120
# The flags that every object needs: types for the glue, no library, addresses that need no loader.
_OPTIONS: Final = (
    "-c", "-g", "-O1", "-std=gnu11", "-ffreestanding", "-fno-stack-protector", "-fno-pic", "-fno-strict-aliasing",
    "-w", "-Werror=implicit-function-declaration",
)  # fmt: skip


class BuildError(Exception):
    """The sources cannot be compiled; the message says why."""


@dataclass(frozen=True, slots=True)
class Generated:
    """A file that a kernel's build makes with awk, and that a source includes."""

    name: str
    script: str
    """The end of the path of the awk script."""
    data: str
    """The end of the path of the script's input."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """The sources of a glue, and the options for their compilation."""

    pack: str
    """The folder of headers."""
    sources: Sequence[str]
    """The base names of the sources, or the ends of their paths; the required ones come first."""
    required: int = 1
    """The number of sources that must exist, also of an ISA that has other files."""
    options: Sequence[str] = ()
    includes: Sequence[str] = ()
    """Folders of the source tree whose headers are used, too, after the pack's; "{folder}" stands
    for each name of the ISA in source trees."""
    variants: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The sources of ISAs that have other files: a name of the ISA in source trees -> the sources."""
    generated: Sequence[Generated] = ()
    """The generated files, each of which is made if the tree has its script for the ISA."""

    def files(self, isa: Isa) -> tuple[Sequence[str], int]:
        """Return the sources of an ISA, and how many of them must exist."""
        for folder in isa.elf.toolchain.folders:
            if folder in self.variants:
                return self.variants[folder], self.required
        return self.sources, self.required


@dataclass(frozen=True, slots=True)
class Built:
    """A compiled object."""

    source: Path
    object: Path
    command: str


def compiler(isa: Isa) -> tuple[str, ...]:
    """Return the command of a C compiler for an ISA: gcc, a cross gcc or clang.

    Raises `BuildError`: there is none.
    """
    triple = isa.elf.toolchain.triple
    candidates = ((f"{triple}-gcc",), ("clang", f"--target={triple}"))
    found = next((words for words in candidates if shutil.which(words[0])), None)
    if found is None:
        raise BuildError(f"no compiler for {isa.name}: install {triple}-gcc (Debian: gcc-{triple}), or clang")
    return found


def build(recipe: Recipe, isa: Isa, sources: Path, out: Path, command: Sequence[str] = ()) -> Iterator[Built]:
    """Compile the sources found in a folder, and yield each.  Raises `BuildError`."""
    names, required = recipe.files(isa)
    if not names:
        raise BuildError(f"this glue has no sources for {isa.name}: its system has no such code there")
    found = [_find(sources, name, isa) for name in names]
    missing = [name for name, path in zip(names[:required], found, strict=False) if path is None]
    if missing:
        raise BuildError(f"{sources}: no {', '.join(missing)} for {isa.name}")
    # Last: what is wrong with the sources would stay wrong after a compiler was installed.
    words = tuple(command) or compiler(isa)
    out.mkdir(parents=True, exist_ok=True)
    with header_folder(recipe.pack) as headers:
        folders = [name.format(folder=one) for name in recipe.includes for one in isa.elf.toolchain.folders]
        options = [*words, *_OPTIONS, *recipe.options, *isa.elf.toolchain.options]
        for each in recipe.generated:
            _generate(each, isa, sources, headers)
        for path in found:
            if path is not None:
                yield _compile(path, options, headers, folders, sources, out)


@contextmanager
def header_folder(pack: str) -> Iterator[Path]:
    """Yield a folder with all headers of a pack; the `with` statement removes it at its end."""
    with tempfile.TemporaryDirectory(prefix="trapline-headers-") as name:
        folder = Path(name)
        for each in (_SHARED, pack):
            shutil.copytree(_HEADERS / each, folder, dirs_exist_ok=True)
        for line in (folder / "names").read_text("utf-8").split():
            path = folder / line
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f'#include "{pack}.h"\n', "utf-8")
        yield folder


def _find(sources: Path, name: str, isa: Isa) -> Path | None:
    """Return the source of a name for an ISA; its path does not name another ISA."""
    own = {isa.name, *isa.elf.toolchain.folders}
    others = {word for other in ISAS.values() for word in (other.name, *other.elf.toolchain.folders)} - own
    found = sorted(path for path in sources.rglob(Path(name).name) if str(path).endswith(name))
    relative = [(path, set(path.relative_to(sources).parts)) for path in found]
    for wanted in (lambda parts: parts & own, lambda parts: not parts & others):
        chosen = [path for path, parts in relative if wanted(parts)]
        if chosen:
            return chosen[0]
    return None


def _generate(wanted: Generated, isa: Isa, sources: Path, headers: Path) -> None:
    """Make a generated file.  Raises `BuildError`."""
    script, data = _find(sources, wanted.script, isa), _find(sources, wanted.data, isa)
    if script is None or data is None:
        return
    text = _run(["awk", "-f", str(script), str(data)], f"{wanted.name} cannot be made")
    (headers / wanted.name).write_text(text, "utf-8")


def _run(command: Sequence[str], failure: str) -> str:
    """Return a command's output.  Raises `BuildError` with `failure` and the command's first error."""
    try:
        result = child.run(command, timeout=_SECONDS, text=True)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BuildError(f"{failure}: {error}") from None
    if result.returncode:
        first = next((line for line in result.stderr.splitlines() if "error" in line), result.stderr.strip())
        raise BuildError(f"{failure}: {first}")
    return result.stdout


def _compile(
    path: Path, words: Sequence[str], headers: Path, folders: Sequence[str], sources: Path, out: Path
) -> Built:
    target = out / f"{path.stem}.o"
    includes = [f"-I{headers}", *(f"-idirafter{sources / folder}" for folder in folders)]
    command = [*words, *includes, str(path), "-o", str(target)]
    _run(command, f"{path} does not compile")
    return Built(path, target, " ".join(command))
