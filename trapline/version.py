"""The version of the package that is installed."""

from __future__ import annotations


def installed_version() -> str:
    """Return the version; "unknown" for a source tree that is not installed.

    Reading it takes longer than most imports.
    """
    from importlib import metadata  # noqa: PLC0415  see above

    try:
        return metadata.version("trapline")
    except metadata.PackageNotFoundError:
        return "unknown"
