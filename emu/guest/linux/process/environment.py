"""The default environment of a program."""

from __future__ import annotations

from typing import Final

# The environment of programs, the same on every host.
ENVIRONMENT: Final[dict[str, str]] = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/",
    "LANG": "C",
    "TERM": "dumb",
}
