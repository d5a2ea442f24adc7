"""The start of the guest: its root directory, and the program that it runs first."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Final

from emu.guest.base import GuestError
from emu.guest.linux.errno import ENOMEM, LinuxError
from emu.guest.linux.fs import devices
from emu.guest.linux.fs.dir import Directory
from emu.guest.linux.fs.fdtable import Descriptors
from emu.guest.linux.fs.inode import Symlink
from emu.guest.linux.fs.namei import walk
from emu.guest.linux.fs.proc import root as procfs
from emu.guest.linux.fs.proc import sysfs
from emu.guest.linux.fs.regular import RegularFile, host_file
from emu.guest.linux.fs.stdio import Standard
from emu.guest.linux.kernel import Kernel
from emu.guest.linux.mm.mapped_objects import Objects
from emu.guest.linux.process.exec import start
from emu.guest.linux.process.process import Process
from emu.support.immutable import immutable

# The environment of programs, the same on every host.
ENVIRONMENT: Final[dict[str, str]] = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/",
    "LANG": "C",
    "TERM": "dumb",
}
# Directories that are links into /usr in a Debian of today; packages unpacked by hand lack them.
_MERGED = ("bin", "sbin", "lib", "lib64")
# Files of /etc, where the guest has no root directory of the host's: root has a name.
_ETC = {"passwd": b"root:x:0:0:root:/:/bin/sh\n", "group": b"root:x:0:\n"}


@immutable
class Program:
    """The program to run: a path, and the arguments after the program's name."""

    path: str
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=lambda: dict(ENVIRONMENT))
    directory: str | None = None
    """Working directory; None: the root, or this process's own where the guest has no root
    directory of the host's."""


def root_directory(kernel: Kernel, host: Path | None) -> Directory:
    """Return what the guest sees as /: the directory `host` or an empty one, and /dev, /proc, /sys.

    Raises `GuestError`.
    """
    wall = kernel.wall()
    if host is not None and not host.is_dir():
        raise GuestError(f"{host}: not a directory; --root names the directory that the guest sees as /")
    if host is not None and not os.access(host, os.R_OK | os.X_OK):
        raise GuestError(f"{host}: permission denied")
    root = Directory(0o755, wall, host=host.resolve() if host else None)
    usr = root.get("usr")
    for name in _MERGED:
        if root.get(name) is None and isinstance(usr, Directory) and usr.get(name) is not None:
            root.add(name, Symlink(f"usr/{name}", wall))
    if host is None:
        for name, content in _ETC.items():
            root.make("etc").add(name, RegularFile(0o644, wall, content=content))
    devices.populate(root, kernel)
    procfs.populate(root, kernel)
    sysfs.populate(root, len(kernel.schedule.cpus.all))
    if root.get("tmp") is None:
        root.make("tmp", 0o1777)
    return root


class Launcher:
    """Starts the first program of one kernel; `host` is the directory of the host's that is /."""

    def __init__(self, kernel: Kernel, objects: Objects, host: Path | None) -> None:
        self._kernel = kernel
        self._objects = objects
        self._host = host

    def start(self, program: Program, standard: Standard) -> Process:
        """Start the program.  Raises `GuestError`."""
        files = Descriptors(self._kernel.open_files)
        for stream in standard.streams():
            files.add(stream)
        path = self._find(program)
        arguments = tuple(os.fsencode(text) for text in (program.path, *program.arguments))
        environment = tuple(os.fsencode(f"{name}={value}") for name, value in program.environment.items())
        directory = self._directory(program.directory)
        try:
            return start(self._kernel, path, arguments, environment, files, directory)
        except LinuxError as error:
            raise GuestError(self._why(path, error)) from None

    def _directory(self, wanted: str | None) -> Directory:
        if wanted is None:
            return self._kernel.root if self._host is not None else self._kernel.root.make(str(Path.cwd()))
        try:
            directory = walk(self._kernel.root, self._kernel.root, wanted).found()
        except LinuxError:
            directory = None
        if not isinstance(directory, Directory):
            raise GuestError(f"{wanted}: no such directory in the guest")
        return directory

    def _find(self, program: Program) -> str:
        """Return the program's path in the guest; a file of the host is put there."""
        names = [program.path]
        if "/" not in program.path:
            names = [f"{folder}/{program.path}" for folder in program.environment.get("PATH", "").split(":")]
        for name in names:
            try:
                if isinstance(walk(self._kernel.root, self._kernel.root, name).inode, RegularFile):
                    return name
            except LinuxError:
                continue
        host = Path(program.path)
        memory = self._kernel.frames.size
        try:
            if "/" not in program.path and not host.is_file():
                where = f" in {self._host}" if self._host else ""
                raise GuestError(f"{program.path}: no such program{where}; give its path, or a --root that has it")
            if host.exists() and not host.is_file():
                raise GuestError(f"{program.path}: not a file")
            if host.is_file() and not os.access(host, os.R_OK):
                raise GuestError(f"{program.path}: permission denied")
            if host.is_file() and host.stat().st_size > memory:
                raise GuestError(f"{program.path}: larger than the guest's memory, {memory >> 20:,} MiB")
            file = host_file(host)
        except OSError as error:
            raise GuestError(f"{program.path}: {(error.strerror or str(error)).lower()}") from None
        path = Path(os.path.abspath(host))  # noqa: PTH100  (the path may have "..", but links keep their names)
        self._kernel.root.make(str(path.parent)).entries()[path.name] = file
        return str(path)

    def _why(self, path: str, error: LinuxError) -> str:
        """Return why a program cannot be started."""
        file = walk(self._kernel.root, self._kernel.root, path).inode
        if isinstance(file, RegularFile) and not file.permissions & 0o111:
            return f"{path}: not executable (chmod +x it)"
        if isinstance(file, RegularFile) and file.read(0, 2) == b"#!":
            words = file.read(2, 256).split(b"\n", 1)[0].split() or [b""]
            where = f"that {self._host} has" if self._host else "that a --root has"
            isa = self._kernel.isa.name
            return f"{path}: a script: it needs its interpreter {os.fsdecode(words[0])}, for {isa}, {where}"
        if isinstance(file, RegularFile):
            reason = self._objects.refusal(file, self._kernel.isa)
            if reason is not None:
                return f"{path}: {reason}"
            interpreter = self._objects.interpreter(file)
            if interpreter is not None:
                where = f"is not in {self._host}" if self._host else "is not there"
                # The usual wish is a program of this machine.
                here = self._host is None and Path(interpreter).is_file()
                root = "--root / for this machine's" if here else "--root DIR"
                return (
                    f"{path}: its interpreter {interpreter} {where}; give a root directory that has it and the shared "
                    f"libraries: {root}"
                )
        if error.number == ENOMEM:
            return f"{path}: not a Linux program: its segments are outside user space (is it a kernel?)"
        return f"{path}: {os.strerror(error.number).lower()}"
