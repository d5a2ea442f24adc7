r"""A kernel's file: its format, its ISA, and the part of it that goes into memory.

| file | found by | what is loaded |
| --- | --- | --- |
| Image of AArch64 | "ARM\x64" at 56 | the file, at any multiple of 2 MiB |
| Image of RISC-V | "RSC\x05" at 56 | the file, at any multiple of 2 MiB |
| bzImage of x86-64 | "HdrS" at 0x202 | the ELF file that is its compressed payload |
| EFI zboot | "MZ", "zimg" at 4 | its compressed payload, one of those above |
| vmlinux | an ELF file | its segments, at their physical addresses |

Each may be compressed once more as a whole.

Source: Linux Documentation/arch/{arm64/booting,riscv/boot-image-header,x86/boot}.rst,
drivers/firmware/efi/libstub/zboot-header.S.
"""

from __future__ import annotations

import re
import struct
from pathlib import Path
from typing import Final

from emu.guest.linux_kernel.errors import KernelFileError
from emu.guest.linux_kernel.files.compression import is_compressed, unpack
from emu.guest.linux_kernel.image import KernelImage
from emu.guest.linux_kernel.platforms.boards import BOARDS
from emu.isa import ISAS, isa_of_machine

_MAGIC_AT: Final = 56
_FLAT: Final = {board.magic: name for name, board in BOARDS.items() if board.magic}
# ELFCLASS64.
_CLASS_64: Final = 2
_PT_LOAD: Final = 1
_SETUP_SECTORS, _HEADER_MAGIC, _PAYLOAD = 0x1F1, 0x202, 0x248
_SECTOR: Final = 512
_VERSION: Final = re.compile(rb"Linux version (\S+)")
# More segments than any kernel has.
_LARGEST: Final = 512 << 20


def read_kernel(path: Path, isa: str | None = None) -> KernelImage:
    """Read a kernel's file.

    Raises `KernelFileError` if it is not a kernel, or one for another ISA than `isa`.
    """
    if path.is_fifo():
        raise KernelFileError(f"{path}: a FIFO, not a kernel's file")
    try:
        data = path.read_bytes()
    except OSError as error:
        raise KernelFileError(f"{path}: {(error.strerror or 'cannot be read').lower()}") from None
    return for_isa(kernel_of(data, str(path)), path, isa)


def for_isa(image: KernelImage, path: Path, isa: str | None) -> KernelImage:
    """Return a kernel.  Raises `KernelFileError` if it is for another ISA than `isa`."""
    if isa is not None and image.isa != isa:
        raise KernelFileError(
            f"{path}: a kernel for {ISAS[image.isa].title}, but {ISAS[isa].title} was asked for; name {image.isa}"
        )
    return image


def kernel_of(data: bytes, name: str) -> KernelImage:
    """Return the kernel in a file's bytes; `name` is its name in messages.

    Raises `KernelFileError`.
    """
    if is_compressed(data):
        data = unpack(data, name)
    if data[:2] == b"MZ" and data[4:8] == b"zimg":
        start, size = struct.unpack_from("<II", data, 8)
        data = unpack(data[start : start + size], name)
    flat = _FLAT.get(data[_MAGIC_AT : _MAGIC_AT + 4])
    if flat is not None:
        return KernelImage(flat, _release(data, name), lambda: data)
    if data[_HEADER_MAGIC : _HEADER_MAGIC + 4] == b"HdrS":
        return _bzimage(data, name)
    if data[:4] == b"\x7fELF":
        return _elf(data, name)
    raise KernelFileError(f"{name}: not a Linux kernel (no Image, bzImage or vmlinux)")


def is_kernel(head: bytes) -> bool:
    """Return whether a file that begins so is a kernel's, not compressed as a whole."""
    zboot = head[:2] == b"MZ" and head[4:8] == b"zimg"
    return zboot or head[_MAGIC_AT : _MAGIC_AT + 4] in _FLAT or head[_HEADER_MAGIC : _HEADER_MAGIC + 4] == b"HdrS"


def _release(data: bytes, name: str) -> str:
    found = _VERSION.search(data)
    if found is None:
        raise KernelFileError(f"{name}: not a Linux kernel: it contains no version string")
    return found[1].decode("ascii", "replace")


def _bzimage(data: bytes, name: str) -> KernelImage:
    start, size = struct.unpack_from("<II", data, _PAYLOAD)
    start += ((data[_SETUP_SECTORS] or 4) + 1) * _SECTOR
    if start + size > len(data):
        raise KernelFileError(f"{name}: truncated: its payload ends after the end of the file")
    elf = _elf(unpack(data[start : start + size], name), name)
    setup = data[_SETUP_SECTORS : data[0x201] + _HEADER_MAGIC]
    return KernelImage(elf.isa, elf.release, elf.read, elf.base, elf.entry, setup)


def _elf(data: bytes, name: str) -> KernelImage:
    (machine,) = struct.unpack_from("<H", data, 18)
    found = isa_of_machine(machine)
    isa = None if found is None else found.name
    board = None if isa is None else BOARDS.get(isa)
    if isa is None or board is None or data[4] != _CLASS_64:
        title = "" if isa is None else f" ({ISAS[isa].title})"
        there = ", ".join(ISAS[one].title for one in BOARDS)
        raise KernelFileError(f"{name}: a kernel for another CPU{title}; there are machines for {there}")
    if board.magic:
        raise KernelFileError(f"{name}: an ELF file for {ISAS[isa].title}; give the kernel's Image (arch/*/boot/Image)")
    try:
        (entry, headers), (size, count) = struct.unpack_from("<QQ", data, 24), struct.unpack_from("<HH", data, 54)
        segments = []
        for number in range(count):
            kind, _, offset, _, physical, filesz, _, _ = struct.unpack_from("<IIQQQQQQ", data, headers + size * number)
            if kind == _PT_LOAD:
                segments.append((physical, data[offset : offset + filesz]))
    except struct.error:
        raise KernelFileError(f"{name}: a damaged ELF file") from None
    if not segments:
        raise KernelFileError(f"{name}: an ELF file without loadable segments: not a kernel")
    base = min(physical for physical, _ in segments)
    end = max(physical + len(content) for physical, content in segments)
    if end - base > _LARGEST:
        raise KernelFileError(f"{name}: its segments are {end - base >> 20} MiB apart: not a kernel")
    flat = bytearray(end - base)
    for physical, content in segments:
        flat[physical - base : physical - base + len(content)] = content
    content = bytes(flat)
    return KernelImage(isa, _release(content, name), lambda: content, base, entry)
