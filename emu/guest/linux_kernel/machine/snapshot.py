"""A booted machine, kept on disk between runs.

A snapshot is a file in the cache (`emu.support.disk_cache`), named after the hash of everything
that it depends on: the kernel, the initramfs, the command line, the size of the memory, the
versions of Unicorn and of Trapline's own sources.  So it never has to be updated.  Memory is stored
page by page, without blank pages; `load` takes little more time than reading a file.

    magic, length of the facts, facts (JSON), registers, pages
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import mmap
import os
import struct
import tempfile
from contextlib import suppress
from functools import lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Final

from emu.engine.engine import Engine
from emu.engine.state import Word
from emu.guest.linux_kernel.machine.machine import LinuxKernelMachine, MachineParts
from emu.support import disk_cache
from emu.unicorn_layout import library

_MAGIC: Final = b"traplinesnap1\n"
_PAGE: Final = 4096
_BLANK: Final = bytes(_PAGE)
_SOURCES: Final = ("emu.guest.linux_kernel", "emu.engine", "emu.isa")
# Sources among them that only read a booted machine, or the file of a kernel.
_READERS: Final = frozenset(
    f"{name}.py"
    for name in (
        "areas", "btf", "compression", "executable", "facts", "guest", "image_files", "kallsyms", "kernel_calls",
        "kernel_file", "linux_text", "module_file", "modules", "native_parts", "native_stacks", "orc_modules",
        "program_cpu", "programs", "stacks", "store", "tables", "tasks",
    )
)  # fmt: skip
# The number of snapshots that are kept; each has some 60 MiB.
_MOST: Final = 12
_BYTES: Final = "bytes"


@lru_cache(1)
def _version() -> str:
    """Return a text that identifies the sources that make a machine."""
    digest = hashlib.sha256(library.this().version.encode())
    for package in _SOURCES:
        _add(files(package), digest)
    return digest.hexdigest()


def _add(folder: Traversable, digest: Any) -> None:
    for entry in sorted(folder.iterdir(), key=lambda one: one.name):
        if entry.name in _READERS:
            continue
        if entry.is_dir():
            _add(entry, digest)
        elif entry.name.endswith((".py", ".ll")):
            digest.update(entry.name.encode() + b"\0" + entry.read_bytes())


def place(parts: MachineParts) -> Path | None:
    """Return the path of a machine's snapshot, which may not exist; None: there is no cache."""
    folder = disk_cache.folder()
    if folder is None:
        return None
    made_from = (parts.kernel.digest, hashlib.sha256(parts.initramfs).hexdigest(), parts.ram, parts.append, parts.quiet,
                 parts.rate, parts.accelerated, _version())  # fmt: skip
    return folder / f"kernel-{hashlib.sha256(repr(made_from).encode()).hexdigest()[:32]}"


def booted(machine: LinuxKernelMachine) -> bool:
    """Boot a machine, or restore it from a snapshot; return whether it was restored.

    Raises `emu.guest.linux_kernel.errors.LinuxKernelError`.
    """
    path = place(machine.parts)
    if path is not None and load(machine, path):
        with suppress(OSError):
            path.touch()
        return True
    machine.load()
    machine.boot()
    if path is not None:
        with suppress(OSError):
            save(machine, path)
            _make_room(path.parent)
        # The run from here on must not depend on whether a snapshot existed.
        if path.is_file():
            _settle(machine)
    return False


def _settle(machine: LinuxKernelMachine) -> None:
    """Forget the state that a restored machine does not have: translated code, block sizes."""
    machine.engine.cpu.forget_blocks()
    machine.engine.counter.code_written()


def _make_room(folder: Path) -> None:
    """Remove the least recently used snapshots."""
    known = sorted(folder.glob("kernel-*"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in known[_MOST:]:
        path.unlink(missing_ok=True)


# -- the file


def save(machine: LinuxKernelMachine, path: Path) -> None:
    """Write a snapshot of a machine that does not run.  Raises OSError."""
    engine = machine.engine
    ram = engine.memory.ram
    runs: list[list[int]] = []
    for start in range(0, len(ram), _PAGE):
        if ram[start : start + _PAGE] == _BLANK:
            continue
        if runs and sum(runs[-1]) == start:
            runs[-1][1] += _PAGE
        else:
            runs.append([start, _PAGE])
    registers = _registers(engine)
    facts = {
        "registers": len(registers),
        "runs": runs,
        "instructions": engine.instructions,
        "total": engine.counter.state[Word.TOTAL],
        "clock": machine.clock.state(),
        "machine": machine.state(),
    }
    head = json.dumps(facts, default=_encoded).encode()
    descriptor, aside = tempfile.mkstemp(dir=path.parent, prefix=".")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(_MAGIC + struct.pack("<Q", len(head)) + head + registers)
            for start, size in runs:
                file.write(ram[start : start + size])
        Path(aside).replace(path)
    except OSError:
        Path(aside).unlink(missing_ok=True)
        raise


def load(machine: LinuxKernelMachine, path: Path) -> bool:
    """Restore a new machine from its snapshot; False: there is no complete snapshot."""
    try:
        with disk_cache.opened(path) as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return _load(machine, memoryview(content))
    except (OSError, ValueError, KeyError, TypeError, struct.error):
        return False


def _load(machine: LinuxKernelMachine, content: memoryview) -> bool:
    with content:
        at = len(_MAGIC) + 8
        if bytes(content[: len(_MAGIC)]) != _MAGIC:
            return False
        (size,) = struct.unpack_from("<Q", content, len(_MAGIC))
        facts = json.loads(bytes(content[at : at + size]), object_hook=_decoded)
        at += size
        length = facts["registers"]
        if len(content) != at + length + sum(run[1] for run in facts["runs"]):
            return False
        engine = machine.engine
        _set_registers(engine, bytes(content[at : at + length]))
        at += length
        ram = engine.memory.ram
        for start, size in facts["runs"]:
            ram[start : start + size] = content[at : at + size]
            at += size
    engine.counter.state[Word.TOTAL] = facts["total"]
    engine.counter.state[Word.BLOCK] = 0
    machine.clock.set_state(tuple(facts["clock"]))
    machine.set_state(facts["machine"])
    return True


def _encoded(value: Any) -> Any:
    if isinstance(value, bytes | bytearray):
        return {_BYTES: bytes(value).hex()}
    raise TypeError(f"{value!r} has a type that snapshots do not support")


def _decoded(value: dict[str, Any]) -> Any:
    return bytes.fromhex(value[_BYTES]) if value.keys() == {_BYTES} else value


def _registers(engine: Engine) -> bytes:
    """Return all registers in Unicorn's form."""
    context = engine.cpu.new_context()
    return ctypes.string_at(context.context, context.size)


def _set_registers(engine: Engine, data: bytes) -> None:
    context = engine.cpu.new_context()
    if context.size != len(data):
        raise ValueError("registers of another build of unicorn")
    ctypes.memmove(context.context, data, len(data))
    engine.cpu.restore(context)
