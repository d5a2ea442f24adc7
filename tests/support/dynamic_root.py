"""A root directory with the dynamic test programs and the libraries that this host has for them.

The C library is that of Debian's cross compilers, or this host's.
"""

import shutil
from pathlib import Path

from emu.guest.kernel.boot import images
from emu.isa import ISAS

LIBRARIES = ("libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "libdl.so.2", "libpthread.so.0")
LOADERS = {
    "x86_64": "lib64/ld-linux-x86-64.so.2",
    "aarch64": "lib/ld-linux-aarch64.so.1",
    "riscv64": "lib/ld-linux-riscv64-lp64d.so.1",
    "i386": "lib/ld-linux.so.2",
}
# Where a PC has them itself (Debian: libc6-i386, lib32stdc++6).
OWN = {
    "x86_64": ("/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64"),
    "i386": ("/lib/i386-linux-gnu", "/usr/lib/i386-linux-gnu", "/lib32", "/usr/lib32"),
}
PROGRAMS = ("zoo-dyn", "libzoo.so", "plugin.so")


def fill(root, isa):
    """Put the programs and their libraries into a directory; return what this host lacks, "" if nothing."""
    for name in ("bin", "lib", "lib64"):
        (root / name).mkdir(exist_ok=True)
    sources = [*map(Path, OWN.get(isa, ())), Path(f"/usr/{isa}-linux-gnu/lib")]
    for name in (*LIBRARIES, LOADERS[isa]):
        found = next((place / Path(name).name for place in sources if (place / Path(name).name).exists()), None)
        if found is None:
            return f"no {name} for {isa} on this host (Debian: libstdc++6-{isa.replace('_', '-')}-cross)"
        shutil.copy(found, root / (name if "/" in name else f"lib/{name}"))
    for name in PROGRAMS:
        shutil.copy(images.linux(ISAS[isa], name), root / "bin" / name)
    return ""
