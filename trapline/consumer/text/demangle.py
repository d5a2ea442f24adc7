"""C++ names as people write them: option demangle.

The C++ library of this host does it, through cxxfilt.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final

_MANGLED: Final = "_Z"


class DemanglingError(Exception):
    """Names cannot be demangled here; the message says what is missing."""


def demangler() -> Callable[[str], str]:
    """Return what demangles a name; it returns any other name as it is.

    Raises `DemanglingError`.
    """
    try:
        import cxxfilt  # noqa: PLC0415  an extra
    except ImportError:
        raise DemanglingError("-x demangle needs cxxfilt: pip install 'trapline[cxx]'") from None
    except Exception as error:  # noqa: BLE001  (it looks for the library when it is imported)
        raise DemanglingError(f"-x demangle needs the C++ library of this host: {error}") from None

    @cache
    def demangled(name: str) -> str:
        if not name.startswith(_MANGLED):
            return name
        try:
            return str(cxxfilt.demangle(name))
        except Exception:  # noqa: BLE001  (what it does not know it refuses in several ways)
            return name

    return demangled
