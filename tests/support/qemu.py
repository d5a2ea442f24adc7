"""Options of qemu-user for programs of another directory than the host's."""

from __future__ import annotations

from pathlib import Path


def below(root: Path) -> list[str]:
    """Return the options with which a program finds its libraries below a root directory.

    Without the second one the host's /etc/ld.so.cache names the libraries of the host, if it has
    some for this ISA.
    """
    libraries = ":".join("/" + str(path.relative_to(root)) for path in sorted(root.glob("usr/lib/*-linux-gnu")))
    return ["-L", str(root), "-E", f"LD_LIBRARY_PATH={libraries}"]
