"""The formats of --export, by name and by suffix."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from emu.support.did_you_mean import counted, did_you_mean
from trapline.export import chrome, ctf, flame, folded, jsonl, perfetto, tables, text
from trapline.export.events import ExportError, Recording


class Format(NamedTuple):
    """A format of files."""

    suffixes: tuple[str, ...]
    """Endings of file names that mean it; the longest that fits counts."""
    make: Callable[[Recording, str], str | bytes]
    """(recording, title) -> the file's content; raises `ExportError`."""
    what: str
    counts: bool = True
    """Whether aggregations are in it."""


def _flame(page: bool) -> Callable[[Recording, str], str]:
    return lambda recording, title: (flame.page if page else flame.svg)(folded.fold(recording), title)


FORMATS: Final = {
    "chrome": Format((".json", ".trace.json"), lambda one, _: chrome.document(one), "Chrome's and Perfetto's trace"),
    "perfetto": Format((".pftrace", ".perfetto-trace"), lambda one, _: perfetto.data(one), "Perfetto's own format"),
    "jsonl": Format((".jsonl", ".ndjson"), lambda one, _: jsonl.lines(one), "JSON lines"),
    "folded": Format((".folded",), lambda one, _: folded.lines(one), "folded stacks"),
    "speedscope": Format((".speedscope.json", ".speedscope"), lambda one, _: folded.speedscope(one), "speedscope"),
    "svg": Format((".svg",), _flame(page=False), "a flame graph"),
    "html": Format((".html", ".htm"), _flame(page=True), "a flame graph as a page"),
    "ctf": Format((".ctf",), lambda _one, _: "", "a CTF 1.8 trace, which is a folder", counts=False),
    "perf": Format((".perf", ".perf.txt"), lambda one, _: text.perf_script(one), "perf script's layout", counts=False),
    "ftrace": Format((".ftrace", ".trace"), lambda one, _: text.ftrace(one), "ftrace's layout", counts=False),
    "csv": Format((".csv",), lambda one, _: tables.as_csv(one), "a table"),
    "parquet": Format((".parquet",), lambda one, _: tables.as_parquet(one), "a table (needs pyarrow)"),
}

# The formats whose frames are as wide as their weight.
_OF_STACKS: Final = {"folded", "speedscope", "svg", "html"}


def format_of(path: str, name: str | None) -> str:
    """Return the format of a file: the one that is named, else by its suffix.

    Raises `ExportError`.
    """
    if name is not None:
        if name not in FORMATS:
            hint = did_you_mean(name, FORMATS)
            raise ExportError(f"--export-format {name}: no such format{hint}; the formats are {', '.join(FORMATS)}")
        return name
    fitting = [(len(suffix), one) for one, form in FORMATS.items() for suffix in form.suffixes if path.endswith(suffix)]
    if not fitting:
        raise ExportError(f"--export {path}: the suffix names no format; add --export-format, of {', '.join(FORMATS)}")
    return max(fitting)[1]


def export(recording: Recording, path: str, form: str, title: str) -> list[str]:
    """Write a recording to a file; return what is left out, a line each.

    Raises `ExportError`.
    """
    left_out = []
    if recording.counts and not FORMATS[form].counts:
        count = len(recording.counts)
        left_out.append(f"{path}: {counted(count, 'element')} of aggregations left out: "
                        f"{form} has no place for them")  # fmt: skip
    if form in _OF_STACKS and (count := folded.weightless(recording)):
        left_out.append(f"{path}: {counted(count, 'stack')} left out: the weight is not above 0")
    try:
        if form == "ctf":
            ctf.write(recording, Path(path))
        else:
            content = FORMATS[form].make(recording, title)
            if isinstance(content, str):
                content = content.encode("utf-8", "surrogateescape")
            Path(path).write_bytes(content)
    except OSError as error:
        raise ExportError(f"{path}: {(error.strerror or str(error)).lower()}") from None
    except ExportError as error:
        raise ExportError(str(error) if str(error).startswith(path) else f"{path}: {error}") from None
    return left_out
