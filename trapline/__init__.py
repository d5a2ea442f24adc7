"""Trapline: D programs, the framework that runs them, and the commands."""

from __future__ import annotations

__version__: str


def __getattr__(name: str) -> str:
    """Return `__version__`, the tag that was installed; reading it takes longer than most imports."""
    if name != "__version__":
        raise AttributeError(f"module 'trapline' has no attribute '{name}'")
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415  see above

    try:
        return version("trapline")
    except PackageNotFoundError:  # a source tree that is not installed
        return "unknown"
