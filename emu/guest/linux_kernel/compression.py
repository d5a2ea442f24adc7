"""Compressed kernels: recognized by their first bytes, unpacked by Python or the host."""

from __future__ import annotations

import bz2
import importlib
import lzma
import shutil
import subprocess
import zlib
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from emu.guest.linux_kernel.errors import KernelFileError

_GZIP_WINDOW: Final = 31
_TIMEOUT: Final = 120


class _Format(NamedTuple):
    magic: bytes
    name: str
    unpack: Callable[[bytes], bytes] | None
    """None: this format is not supported."""


def _zstd(data: bytes) -> bytes:
    """Unpack one zstd frame, and ignore the data after it.

    Raises OSError if neither Python's package `zstandard` nor the program zstd is there, or if the
    data are damaged.
    """
    try:
        package = importlib.import_module("zstandard")
    except ImportError:
        program = shutil.which("zstd")
        if program is None:
            raise OSError("install the program zstd (Debian's package zstd) or Python's zstandard") from None
        # The data after the frame make the program fail at the end, after its output.
        run = subprocess.run([program, "-dcq"], input=data, capture_output=True, check=False, timeout=_TIMEOUT)  # noqa: S603  a program by its path
        if not run.stdout:
            raise OSError("damaged data") from None
        return run.stdout
    unpacked: bytes = package.ZstdDecompressor().decompressobj().decompress(data)
    return unpacked


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
    _Format(b"\x02\x21\x4c\x18", "lz4", None),
    _Format(b"\x89LZO\0\r\n\x1a\n", "lzo", None),
)


def is_compressed(data: bytes) -> bool:
    """Return whether data begin as a known format does."""
    return any(data.startswith(each.magic) for each in _FORMATS)


def unpack(data: bytes, name: str) -> bytes:
    """Return the content of compressed data; `name` is their name in messages.

    Raises `KernelFileError`.
    """
    known = next((each for each in _FORMATS if data.startswith(each.magic)), None)
    if known is None:
        raise KernelFileError(f"{name}: unknown compression ({data[:4].hex(' ')}); unpack it first")
    if known.unpack is None:
        raise KernelFileError(f"{name}: compressed with {known.name}, which is not supported; unpack it first")
    try:
        return known.unpack(data)
    except (OSError, EOFError, zlib.error, lzma.LZMAError, subprocess.SubprocessError) as error:
        raise KernelFileError(f"{name}: cannot be unpacked ({known.name}): {error}") from None
