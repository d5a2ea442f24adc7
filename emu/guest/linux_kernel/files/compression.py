"""Compressed kernels: known by their first bytes, unpacked by Python or by programs of the host."""

from __future__ import annotations

import bz2
import importlib
import lzma
import shutil
import subprocess
import zlib
from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple

from emu.guest.linux_kernel.errors import KernelFileError
from emu.support import child

_GZIP_WINDOW: Final = 31
_TIMEOUT: Final = 120
# The bytes of the size at the end.
_SIZE: Final = 4


class _Format(NamedTuple):
    magic: bytes
    name: str
    unpack: Callable[[bytes], bytes]


def _by_program(program: str, data: bytes) -> bytes:
    """Unpack by a program of the host.

    A kernel's makefile appends the size of the content to what it compresses (`size_append`); after
    the output the program complains about these four bytes.

    Raises OSError if the program is not installed, or the data are damaged or cut short.
    """
    path = shutil.which(program)
    if path is None:
        raise OSError(f"install the program {program}")
    run = child.run([path, "-dc"], timeout=_TIMEOUT, given=data)
    size = int.from_bytes(data[-_SIZE:], "little")
    if run.returncode and len(run.stdout) != size:
        raise OSError("damaged, or cut short")
    return bytes(run.stdout)


def _zstd(data: bytes) -> bytes:
    """Unpack one zstd frame, by Python's package `zstandard` or by a program.  Raises OSError."""
    try:
        package = importlib.import_module("zstandard")
    except ImportError:
        return _by_program("zstd", data)
    return _whole(package.ZstdDecompressor().decompressobj(), data)


def _whole(decompressor: Any, data: bytes) -> bytes:
    """Unpack one stream; the file may have data after it.  Raises OSError if its end is missing."""
    unpacked: bytes = decompressor.decompress(data)
    if not decompressor.eof:
        raise OSError("cut short")
    return unpacked


_FORMATS: Final = (
    _Format(b"\x1f\x8b", "gzip", lambda data: _whole(zlib.decompressobj(_GZIP_WINDOW), data)),
    _Format(b"\xfd7zXZ\0", "xz", lambda data: _whole(lzma.LZMADecompressor(lzma.FORMAT_XZ), data)),
    _Format(b"\x5d\0\0", "lzma", lambda data: _whole(lzma.LZMADecompressor(lzma.FORMAT_ALONE), data)),
    _Format(b"BZh", "bzip2", lambda data: _whole(bz2.BZ2Decompressor(), data)),
    _Format(b"\x28\xb5\x2f\xfd", "zstd", _zstd),
    _Format(b"\x02\x21\x4c\x18", "lz4", partial(_by_program, "lz4")),  # the old format, which Linux uses
    _Format(b"\x04\x22\x4d\x18", "lz4", partial(_by_program, "lz4")),
    _Format(b"\x89LZO\0\r\n\x1a\n", "lzo", partial(_by_program, "lzop")),
)


def is_compressed(data: bytes) -> bool:
    """Return whether data begin as a known format does."""
    return any(data.startswith(each.magic) for each in _FORMATS)


def unpack(data: bytes, name: str) -> bytes:
    """Return the content of compressed data; `name` is their name in messages.

    Raises `KernelFileError`.
    """
    if not data:
        raise KernelFileError(f"{name}: damaged: its compressed part is empty")
    known = next((each for each in _FORMATS if data.startswith(each.magic)), None)
    if known is None:
        raise KernelFileError(f"{name}: unknown compression ({data[:4].hex(' ')}); unpack it first")
    try:
        return known.unpack(data)
    except (OSError, EOFError, zlib.error, lzma.LZMAError, subprocess.SubprocessError) as error:
        raise KernelFileError(f"{name}: cannot be unpacked ({known.name}): {error}") from None
