"""The package's glues by their names, and the glues in the user's own files."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from emu.support.did_you_mean import did_you_mean
from trapline.lab.objects.glue import Glue
from trapline.lab.objects.kernels.fasttrap import FasttrapGlue, IllumosFasttrapGlue
from trapline.lab.objects.kernels.fbt_check import FbtGlue
from trapline.lab.objects.kernels.illumos_fbt import IllumosFbtGlue
from trapline.lab.objects.kernels.linux_kprobes import LinuxKprobesGlue
from trapline.lab.objects.kernels.linux_uprobes import LinuxUprobesGlue
from trapline.lab.objects.prototypes import PrototypeError

GLUES: Final[Mapping[str, type[Glue]]] = {
    "fasttrap": FasttrapGlue,
    "fbt": FbtGlue,
    "illumos-fasttrap": IllumosFasttrapGlue,
    "illumos-fbt": IllumosFbtGlue,
    "linux-kprobes": LinuxKprobesGlue,
    "linux-uprobes": LinuxUprobesGlue,
}


class GlueError(Exception):
    """A glue that cannot be used; the message says why, on one line."""


def find(name: str, known: Mapping[str, type[Glue]] = GLUES) -> type[Glue]:
    """Return the glue of a name, or of FILE.py:CLASS.  Raises `GlueError`."""
    if name in known:
        return known[name]
    file, colon, wanted = name.rpartition(":")
    if not colon or not file.endswith(".py"):
        hint = did_you_mean(name, known)
        raise GlueError(f"no glue '{name}'{hint}: there are {', '.join(known)}, and FILE.py:CLASS")
    path = Path(file)
    if not path.is_file():
        raise GlueError(f"{file}: no such file")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except OSError as error:
        raise GlueError(f"{error.filename or file}: {(error.strerror or str(error)).lower()}") from None
    except PrototypeError as error:
        raise GlueError(f"{file}: {error}") from None
    except Exception as error:  # noqa: BLE001  the user's file may raise anything
        raise GlueError(f"{file} does not load: {type(error).__name__}: {error}") from None
    found = getattr(module, wanted, None)
    if not isinstance(found, type) or not issubclass(found, Glue):
        classes = [each for each, one in vars(module).items() if isinstance(one, type) and issubclass(one, Glue)]
        listed = f"; it has {', '.join(one for one in classes if one != 'Glue') or 'none'}"
        raise GlueError(f"{file}: '{wanted}' is not a class derived from trapline.lab.objects.glue.Glue{listed}")
    return found
