"""The root file system that a kernel starts with: busybox, or a root of the user's, and /init.

/init mounts the file systems that programs expect, reports that it is ready, and waits for a line
on the console: the command.  It reports which process is about to run the command; when that has
ended, it reports the exit status, and powers off.  Its messages are between two marks that no
program prints by accident; `emu.guest.linux_kernel.machine.console` removes them from the output.
"""

from __future__ import annotations

import stat
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from emu.guest.linux_kernel.errors import KernelFileError
from emu.support import cpio

# The mark at the start and the end of a message of /init to the machine.
MARK: Final = "\x01"
READY: Final = "ready"
LACKS: Final = "lacks"
GO: Final = "go"
DONE: Final = "done"
# MARK in the source of /init: busybox's printf accepts octal numbers.
_ESCAPE: Final = "\\001"

# The place of busybox: in its own root, and in a root of the user, whose own programs are found first.
_BUSYBOX: Final = "bin/busybox"
_ASIDE: Final = ".busybox/busybox"
_FOLDERS: Final = (
    "bin",
    "sbin",
    "usr",
    "usr/bin",
    "usr/sbin",
    "dev",
    "proc",
    "sys",
    "tmp",
    "etc",
    "root",
    "mnt",
    "run",
)
_FILES: Final = {
    "etc/passwd": b"root:x:0:0:root:/root:/bin/sh\n",
    "etc/group": b"root:x:0:\n",
    "etc/motd": b"A Linux kernel, traced by Trapline.\n",
}

_MODULES: Final = ".modules"

# Where programs are looked for, beside the busybox that is added to a root.
_PATH: Final = ("usr/local/sbin", "usr/local/bin", "usr/sbin", "usr/bin", "sbin", "bin")
_INIT: Final = """\
#!/{busybox} sh
PATH={path}:/.busybox
export PATH HOME=/root TERM=${{TERM:-dumb}}
/{busybox} --install -s {folder}
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tracefs tracefs /sys/kernel/tracing
mount -t tmpfs tmp /tmp
stty -echo -opost
cd /root 2>/dev/null || cd /
for module in {modules}; do
    insmod /{folder_of_modules}/$module.ko || printf "{escape}{lacks} $module{escape}"
done
printf '{escape}{ready}{escape}'
read -r command
sh -c 'printf "{escape}{go} %d{escape}" $$; exec sh -c "$0"' "$command"
printf '{escape}{done} %d{escape}' $?
poweroff -f
"""
_NO_MODULES: Final[Mapping[str, bytes]] = MappingProxyType({})
# The largest size of an archive: half of the smallest memory of the machines.
LARGEST: Final = 128 << 20


def _init(busybox: str, modules: Mapping[str, bytes]) -> dict[str, cpio.Entry]:
    """Return /init and the modules that it loads, in their order."""
    folder = f"/{busybox.rpartition('/')[0]}"
    text = _INIT.format(
        busybox=busybox, folder=folder, escape=_ESCAPE, ready=READY, go=GO, done=DONE, lacks=LACKS,
        modules=" ".join(modules), path=":".join(f"/{one}" for one in _PATH), folder_of_modules=_MODULES,
    )  # fmt: skip
    files = {"init": cpio.regular(text.encode(), 0o755)}
    if modules:
        files[_MODULES] = cpio.directory()
    return files | {f"{_MODULES}/{name}.ko": cpio.regular(content) for name, content in modules.items()}


def of_busybox(busybox: bytes, modules: Mapping[str, bytes] = _NO_MODULES) -> bytes:
    """Return an initramfs that has a static busybox and modules, which /init loads in their order."""
    files: dict[str, cpio.Entry] = {folder: cpio.directory() for folder in _FOLDERS}
    files["dev/console"] = cpio.character_device(5, 1)
    files[_BUSYBOX] = cpio.regular(busybox, 0o755)
    files |= {path: cpio.regular(data) for path, data in _FILES.items()}
    files |= _init(_BUSYBOX, modules)
    return cpio.archive(files)


def of_root(root: Path, busybox: bytes, modules: Mapping[str, bytes] = _NO_MODULES) -> bytes:
    """Return an initramfs of a directory of the host.

    If the root has no busybox, one is added in a separate folder: the root's own programs are found
    first. Raises `KernelFileError` if `root` is not a directory, or too big.
    """
    if not root.is_dir():
        raise KernelFileError(f"{root}: not a directory; --root names the directory that the kernel starts with")
    files: dict[str, cpio.Entry] = {}
    size = 0
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        entry = _entry(path)
        if entry is None:
            continue
        size += len(entry.data)
        if size > LARGEST:
            raise KernelFileError(f"{root}: more than {LARGEST >> 20} MiB of files; give a smaller root directory")
        files[name] = entry
    for folder in _FOLDERS:
        files.setdefault(folder, cpio.directory())
    files[".busybox"] = cpio.directory()
    files[_ASIDE] = cpio.regular(busybox, 0o755)
    files.setdefault("dev/console", cpio.character_device(5, 1))
    for path_, data in _FILES.items():
        files.setdefault(path_, cpio.regular(data))
    files |= _init(_ASIDE, modules)
    return cpio.archive({name: files[name] for name in sorted(files)})


def _entry(path: Path) -> cpio.Entry | None:
    """Return an archive's entry for a file of the host; None: this kind of file is not supported."""
    try:
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            return cpio.link(str(path.readlink()))
        if stat.S_ISDIR(status.st_mode):
            return cpio.directory(stat.S_IMODE(status.st_mode))
        return cpio.regular(path.read_bytes(), stat.S_IMODE(status.st_mode)) if stat.S_ISREG(status.st_mode) else None
    except OSError as error:
        raise KernelFileError(f"{path}: {(error.strerror or 'cannot be read').lower()}") from None


def runs_in_shell(archive: bytes, command: str) -> bool:
    """Return whether busybox's shell may run the program of a command itself, without executing it.

    It does so with many of busybox's own programs (FEATURE_SH_NOFORK and FEATURE_SH_STANDALONE).
    """
    word = (command.split() or [""])[0]
    paths = {f"{folder}/{name}".encode("utf-8", "surrogateescape") for folder in _PATH for name in (word, "sh")}
    found = {
        path.rpartition(b"/")[2].decode("utf-8", "surrogateescape")
        for path, mode, content in cpio.entries(archive)
        if path in paths and not (stat.S_ISLNK(mode) and content.endswith(b"busybox"))
    }
    return "/" not in word and not found
