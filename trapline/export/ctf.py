"""A trace of the Common Trace Format 1.8: a folder with a description and one stream.

Each probe is an event class, whose fields are the recorded values.  Aggregations have no place in
this format and are left out.

Source: EfficiOS, "Common Trace Format", version 1.8.3; babeltrace2 reads it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from emu.support.words import WORD_MASK
from trapline.export.events import ExportError, Recording, Value, cell

_MAGIC: Final = 0xC1FC1FC1
_HEADER: Final = struct.Struct("<IIQQQQ")  # magic, stream, content and packet size in bits, first and last time
_EVENT: Final = struct.Struct("<IQIIi")  # id, time, cpu, pid, tid

_TRACE: Final = """/* CTF 1.8 */
typealias integer { size = 8; align = 8; signed = false; } := uint8_t;
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 32; align = 8; signed = true; } := int32_t;
typealias integer { size = 64; align = 8; signed = false; } := uint64_t;
typealias integer { size = 64; align = 8; signed = true; } := int64_t;
trace {
	major = 1; minor = 8; byte_order = le;
	packet.header := struct { uint32_t magic; uint32_t stream_id; };
};
env { domain = "user"; tracer_name = "trapline"; architecture = "%s"; };
clock { name = virtual; freq = 1000000000; offset = 0; };
typealias integer { size = 64; align = 8; signed = false; map = clock.virtual.value; } := clock_t;
stream {
	id = 0;
	packet.context := struct {
		uint64_t content_size; uint64_t packet_size; clock_t timestamp_begin; clock_t timestamp_end;
	};
	event.header := struct { uint32_t id; clock_t timestamp; };
	event.context := struct { uint32_t cpu; uint32_t pid; int32_t tid; string process; };
};
"""


def write(recording: Recording, folder: Path) -> None:
    """Write the trace to a folder, which must not be there yet or must be empty.

    Raises `ExportError`, and OSError.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ExportError(f"{folder}: it is there already; a CTF trace needs a new or an empty folder")
    folder.mkdir(parents=True, exist_ok=True)
    kinds: dict[tuple[str, tuple[tuple[str, str], ...]], int] = {}
    body = bytearray()
    for event in recording.events:
        shape = tuple((name, _kind(value)) for name, value in event.values.items())
        number = kinds.setdefault((event.probe, shape), len(kinds))
        body += _EVENT.pack(number, event.time, event.cpu, event.pid, event.tid) + _text(event.process)
        for value in event.values.values():
            body += _packed(value)
    size = 8 * (_HEADER.size + len(body))
    times = [event.time for event in recording.events] or [0]
    header = _HEADER.pack(_MAGIC, 0, size, size, times[0], times[-1])
    (folder / "stream").write_bytes(header + bytes(body))
    classes = "".join(_class(number, probe, shape) for (probe, shape), number in kinds.items())
    (folder / "metadata").write_text(_TRACE % recording.isa + classes, "utf-8", "backslashreplace")


def _class(number: int, probe: str, shape: Iterable[tuple[str, str]]) -> str:
    fields = "".join(f" {kind} _{name};" for name, kind in shape)
    name = probe.replace("\\", "\\\\").replace('"', '\\"')
    return f'event {{ name = "{name}"; id = {number}; stream_id = 0; fields := struct {{{fields} }}; }};\n'


def _kind(value: Value) -> str:
    return "int64_t" if isinstance(value, int) else "string"


def _text(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape").replace(b"\0", b"?") + b"\0"


def _packed(value: Value) -> bytes:
    if isinstance(value, int):
        return (value & WORD_MASK).to_bytes(8, "little")
    return _text(str(cell(value)))
