"""Debian's kernels for any ISA, fetched with apt and unpacked.

apt gets a state folder of its own, with one source: Debian's archive as this host's apt knows it.
Nothing is installed, and the host's own state does not change.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from emu.elf.file import ElfError, ElfKind
from emu.elf.image import Image
from emu.guest.linux_kernel.errors import KernelFileError
from emu.guest.linux_kernel.files import store
from emu.guest.linux_kernel.files.image_file import kernel_of, read_kernel
from emu.guest.linux_kernel.platforms.boards import BOARDS
from emu.isa import ISAS
from emu.isa.base import Isa
from emu.support import child

DEFAULT_SUITE: Final = "trixie"
BUSYBOX: Final = "busybox-static"
_KEYRING: Final = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_SOURCES: Final = Path("/etc/apt")
_URI: Final = re.compile(r"https?://\S+/debian/?(?=\s|$)")
_ARCHIVE: Final = "http://deb.debian.org/debian"
_TIMEOUT: Final = 900


@dataclass(frozen=True, slots=True)
class _Apt:
    """apt with a folder of its own, for one architecture."""

    folder: Path
    architecture: str

    def _options(self) -> Iterator[str]:
        folder = self.folder
        for name, value in (
            ("APT::Architecture", self.architecture),
            ("APT::Architectures", self.architecture),
            ("APT::Sandbox::User", "root"),
            ("Dir::State::Lists", f"{folder}/lists"),
            ("Dir::Etc::sourcelist", f"{folder}/sources.list"),
            ("Dir::Etc::sourceparts", "/dev/null"),
            ("Dir::State::status", f"{folder}/status"),
            ("Dir::Cache", f"{folder}/cache"),
        ):
            yield f"-o{name}={value}"

    def run(self, tool: str, *words: str) -> str:
        """Run apt-get or apt-cache; return what it prints.  Raises `KernelFileError`."""
        command = [tool, "-qq", *self._options(), *words]
        return _run(command, cwd=self.folder)


def _run(command: Sequence[str], cwd: Path) -> str:
    try:
        done = child.run(command, timeout=_TIMEOUT, cwd=cwd, text=True, errors="replace")
    except FileNotFoundError:
        raise KernelFileError(
            f"{command[0]} is not installed: fetching kernels needs Debian or a derivative; give one with --image FILE"
        ) from None
    except subprocess.TimeoutExpired:
        raise KernelFileError(f"{command[0]} did not finish within {_TIMEOUT} s") from None
    if done.returncode:
        words = " ".join(word for word in command[1:] if word[:1] != "-")
        raise KernelFileError(f"{command[0]} {words}: {_reason(done.stderr)}")
    return done.stdout


def _reason(messages: str) -> str:
    """Return the line that tells why a program of Debian's failed.

    apt names the file in its first error; its last one only says that some file failed.
    """
    lines = [line.strip() for line in messages.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("E:")]
    return next(iter(errors or lines[-1:]), "no reason given")


def _archive() -> str:
    """Return the address of Debian's archive as this host's apt has it."""
    for path in (_SOURCES / "sources.list", *sorted((_SOURCES / "sources.list.d").glob("*"))):
        found = _URI.search(path.read_text(errors="replace")) if path.is_file() else None
        if found:
            return found[0]
    return _ARCHIVE


@contextmanager
def _apt(isa: Isa, suite: str) -> Iterator[_Apt]:
    """Prepare apt, with the lists of a suite read.  Raises `KernelFileError`."""
    if BOARDS.get(isa.name) is None:
        raise KernelFileError(f"there is no machine for Linux kernels of {isa.title}")
    with tempfile.TemporaryDirectory(prefix="trapline-kernel-") as name:
        folder = Path(name)
        for subfolder in ("lists/partial", "cache/archives/partial"):
            (folder / subfolder).mkdir(parents=True)
        (folder / "status").touch()
        signed = f"[signed-by={_KEYRING}] " if _KEYRING.is_file() else ""
        (folder / "sources.list").write_text(f"deb {signed}{_archive()} {suite} main\n")
        apt = _Apt(folder, BOARDS[isa.name].debian[0])
        apt.run("apt-get", "update")
        yield apt


def _unpacked(apt: _Apt, package: str) -> Path:
    """Fetch a package and unpack it; return the folder.  Raises `KernelFileError`."""
    unpacked = apt.folder / f"package-{package}"
    unpacked.mkdir()
    before = set(apt.folder.glob("*.deb"))
    apt.run("apt-get", "download", package)
    for file in set(apt.folder.glob("*.deb")) - before:
        _run(["dpkg-deb", "-x", str(file), str(unpacked)], cwd=apt.folder)
        file.unlink()
    return unpacked


def _kernel_package(apt: _Apt, isa: Isa) -> str:
    """Return the package that the package of the newest kernel depends on."""
    newest = BOARDS[isa.name].debian[1]
    shown = apt.run("apt-cache", "show", "--no-all-versions", newest)
    found = re.search(r"^Depends:.*?\b(linux-image-\d\S*)", shown, re.MULTILINE)
    if found is None:
        raise KernelFileError(f"{newest}: none of the packages that it depends on is a kernel")
    return found[1]


def _busybox(apt: _Apt) -> bytes:
    folder = _unpacked(apt, BUSYBOX)
    for path in ("usr/bin/busybox", "bin/busybox"):
        if (folder / path).is_file():
            return (folder / path).read_bytes()
    raise KernelFileError(f"{BUSYBOX}: the package contains no busybox")


def get(
    isa: Isa,
    *,
    suite: str = DEFAULT_SUITE,
    package: str | None = None,
    report: Callable[[str], object] = lambda _text: None,
) -> store.StoredKernel:
    """Fetch a kernel and busybox with apt, and keep them.

    `package`: None for the suite's newest.  Raises `KernelFileError`.
    """
    report(f"reading the lists of Debian {suite} for {isa.title}")
    with _apt(isa, suite) as apt:
        name = package or _kernel_package(apt, isa)
        report(f"fetching {name}")
        folder = _unpacked(apt, name)
        images = sorted((folder / "boot").glob("vmlinu*")) if (folder / "boot").is_dir() else []
        if not images:
            raise KernelFileError(f"{name}: the package contains no kernel")
        image = kernel_of(images[0].read_bytes(), f"{name}: {images[0].name}")
        if ISAS[image.isa] is not isa:
            raise KernelFileError(f"{name}: a kernel of {image.isa}")
        report(f"fetching {BUSYBOX}")
        modules = next(
            (modules for modules in (folder / "usr/lib/modules", folder / "lib/modules") if modules.is_dir()), None
        )
        return store.keep(image, _busybox(apt), f"Debian {suite}: {name}", modules)


def take(
    isa: Isa,
    path: Path,
    *,
    busybox: Path | None = None,
    modules: Path | None = None,
    suite: str = DEFAULT_SUITE,
    report: Callable[[str], object] = lambda _text: None,
) -> store.StoredKernel:
    """Store a kernel of the user, with the user's own static busybox or Debian's.

    `modules`: the folder with its modules, such as /lib/modules/RELEASE.

    Raises `KernelFileError`.
    """
    image = read_kernel(path, isa.name)
    if modules is not None and not modules.is_dir():
        raise KernelFileError(f"{modules}: not a directory; --modules names the folder of the kernel's modules")
    if busybox is not None:
        program = _static_program(busybox, isa)
    else:
        report(f"fetching {BUSYBOX} of Debian {suite} for {isa.title}")
        with _apt(isa, suite) as apt:
            program = _busybox(apt)
    return store.keep(image, program, str(path.resolve()), modules)


def _static_program(path: Path, isa: Isa) -> bytes:
    """Return a program that the kernel can start, alone as it is.  Raises `KernelFileError`."""
    try:
        image = Image(path, isa=isa)
        interpreter = image.interpreter
    except ElfError as error:
        raise KernelFileError(f"{error}; --busybox names a static program for {isa.title}") from None
    if image.kind is ElfKind.RELOCATABLE:
        raise KernelFileError(f"{path}: not linked; --busybox names a static program for {isa.title}")
    if interpreter is not None:
        raise KernelFileError(f"{path}: needs {interpreter}, which is not there; --busybox names a static program")
    return path.read_bytes()
