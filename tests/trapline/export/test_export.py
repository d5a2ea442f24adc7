"""Traces in other tools' formats, read back."""

import csv
import json
import re
import shutil
import subprocess

import pytest

from emu.guest.kernel.boot import images
from emu.isa import ISAS
from tests.support.command import run_trapline
from trapline.export import chrome, folded, perfetto, tables, text
from trapline.export.events import Count, Event, ExportError, Phase, Recording, Stack, slices
from trapline.export.formats import FORMATS, export, format_of


def event(time, phase, function="f", tid=1, **values):
    name = phase.value if phase is not Phase.INSTANT else "tick"
    return Event(time, 0, 7, tid, "sh", phase, "pid7", "a.out", function, name, values)


def recording(*events, counts=(), end=100):
    return Recording("x86_64", list(events), list(counts), end)


NESTED = recording(
    event(10, Phase.ENTRY, "f", value1=1),
    event(15, Phase.ENTRY, "f", tid=2),
    event(20, Phase.ENTRY, "g"),
    event(30, Phase.INSTANT, "", value1=b"\x01", stack=Stack(("a.out`g+0x4", "a.out`f"))),
    event(40, Phase.RETURN, "g"),
    event(50, Phase.RETURN, "f", value1=-1),
    event(60, Phase.RETURN, "f", tid=3),
)
COUNTED = recording(
    counts=[
        Count("a", "count", ("sh", Stack(("m`g+0x4", "m`f"))), 3),
        Count("a", "count", ("sh", Stack(("m`g+0x8", "m`f"))), 4),
        Count("q", "quantize", ("sh",), {0: 1, 8: 2}),
    ]
)


def test_entries_and_returns_are_slices_of_their_threads():
    found = {(one.entry.function, one.entry.tid): (one.entry.time, one.end, one.depth) for one in slices(NESTED)}
    assert found == {("f", 1): (10, 50, 0), ("g", 1): (20, 40, 1), ("f", 2): (15, 100, 0)}


def test_a_function_that_did_not_return_ends_with_the_one_around_it():
    found = list(slices(recording(event(1, Phase.ENTRY, "f"), event(2, Phase.ENTRY, "g"), event(9, Phase.RETURN, "f"))))
    assert [(one.entry.function, one.end) for one in found] == [("g", 9), ("f", 9)]


def test_a_recursive_function_is_a_slice_each_time():
    events = [event(time, Phase.ENTRY) for time in (1, 2)] + [event(time, Phase.RETURN) for time in (3, 4)]
    assert [(one.entry.time, one.end) for one in slices(recording(*events))] == [(2, 3), (1, 4)]


def nested(rows):
    """Return whether the slices of each thread lie in one another or apart."""
    for one in rows:
        for other in rows:
            if (one["pid"], one["tid"]) == (other["pid"], other["tid"]) and one["ts"] < other["ts"]:
                apart = other["ts"] >= one["ts"] + one["dur"]
                inside = other["ts"] + other["dur"] <= one["ts"] + one["dur"] + 1e-6
                if not apart and not inside:
                    return False
    return True


def switch(time, name, pid):
    return Event(time, 0, pid, pid, f"p{pid}", Phase.INSTANT, "sched", "kernel", "mi_switch", name, {})


SWITCHES = [switch(5, "off-cpu", 1), switch(10, "on-cpu", 2), switch(30, "on-cpu", 3), switch(40, "off-cpu", 3)]


def test_context_switches_are_slices_of_their_cpu():
    rows = json.loads(chrome.document(recording(*SWITCHES, switch(90, "on-cpu", 2))))["traceEvents"]
    found = [(row["name"], row["ts"], row["dur"]) for row in rows if row["ph"] == "X"]
    assert found == [("p2", 0.01, 0.02), ("p3", 0.03, 0.01), ("p2", 0.09, 0.01)]
    assert nested([row for row in rows if row["ph"] == "X"])


def test_perfetto_reads_its_own_format_back():
    protos = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    trace = protos.Trace.FromString(perfetto.data(NESTED))
    names, depth, deepest = [], {}, 0
    times = [packet.timestamp for packet in trace.packet if packet.HasField("track_event")]
    assert times == sorted(times)
    for packet in trace.packet:
        event = packet.track_event
        if event.type == protos.TrackEvent.TYPE_SLICE_BEGIN:
            names.append((event.name, packet.timestamp))
            depth[event.track_uuid] = depth.get(event.track_uuid, 0) + 1
        elif event.type == protos.TrackEvent.TYPE_SLICE_END:
            depth[event.track_uuid] -= 1
        deepest = max([deepest, *depth.values()])
        assert min([0, *depth.values()]) == 0
    assert names == [("f", 10), ("f", 15), ("g", 20)]
    assert deepest == 2
    assert not any(depth.values())
    counted = protos.Trace.FromString(perfetto.data(COUNTED))
    values = [one.track_event.counter_value for one in counted.packet if one.HasField("track_event")]
    assert values == [3, 4, 3]


def test_chrome_reads_slices_instants_and_counters():
    rows = json.loads(chrome.document(NESTED))["traceEvents"]
    assert {row["ph"] for row in rows} == {"M", "X", "i"}
    outer = next(row for row in rows if row["ph"] == "X" and row["name"] == "f" and row["tid"] == 1)
    assert (outer["ts"], outer["dur"], outer["args"]) == (0.01, 0.04, {"value1": 1, "return": {"value1": -1}})
    counters = [row for row in json.loads(chrome.document(COUNTED))["traceEvents"] if row["ph"] == "C"]
    assert sum(row["args"].get("sh", 0) for row in counters) == 3


def test_stacks_are_folded_by_function_from_the_outermost_on():
    assert folded.lines(COUNTED) == "sh;m`f;m`g 7\n"
    assert folded.fold(NESTED) == {("sh", "a.out`f", "a.out`g"): 1}
    assert folded.read("a;b 2\n\na;b 3\n", "x") == {("a", "b"): 5}


def test_without_stacks_the_time_of_functions_is_folded():
    plain = recording(*(one for one in NESTED.events if one.phase is not Phase.INSTANT))
    assert folded.fold(plain) == {("sh", "f"): 20 + 85, ("sh", "f", "g"): 20}


def test_a_trace_without_stacks_cannot_be_folded(tmp_path):
    with pytest.raises(ExportError, match=r"a\.folded: no stacks: record"):
        export(recording(), str(tmp_path / "a.folded"), "folded", "t")


def test_stacks_without_a_weight_are_left_out_and_counted(tmp_path):
    negative = [Count("a", "sum", ("sh", Stack((name,))), value) for name, value in (("f", -2), ("g", 0))]
    with pytest.raises(ExportError, match="no stack has a weight above 0"):
        folded.fold(recording(counts=negative))
    path = tmp_path / "a.folded"
    assert export(recording(counts=[*negative, *COUNTED.counts]), str(path), "folded", "t") == [
        f"{path}: 2 stacks left out: the weight is not above 0"
    ]
    assert path.read_text() == folded.lines(COUNTED)


@pytest.mark.parametrize("wrong", ["a;b", "a;b x", "1", "a;b -1", "a;b \u00b2"])
def test_a_line_that_is_no_folded_stack_is_refused_with_its_number(wrong):
    with pytest.raises(ExportError, match="x:2: not a folded stack"):
        folded.read(f"a 1\n{wrong}\n", "x")


def test_tables_have_a_row_for_each_event_or_each_bucket():
    columns, found = tables.rows(NESTED)
    assert columns[-2:] == ["value1", "stack"]
    assert len(found) == len(NESTED.events)
    rows = list(csv.DictReader(tables.as_csv(COUNTED).splitlines()))
    assert [(row["aggregation"], row["bucket"], row["value"]) for row in rows] == [
        ("@a", "", "3"), ("@a", "", "4"), ("@q", "0", "1"), ("@q", "8", "2")
    ]  # fmt: skip


def test_parquet_is_read_back():
    parquet = pytest.importorskip("pyarrow.parquet")
    import io

    table = parquet.read_table(io.BytesIO(tables.as_parquet(NESTED)))
    assert table.column("time").to_pylist() == [one.time for one in NESTED.events]


def test_perf_and_ftrace_lines_have_their_layouts():
    lines = text.perf_script(NESTED).splitlines()
    assert re.fullmatch(r"sh +7/1 +\[000\] 0\.000000: pid7:f_entry: value1=1", lines[0])
    assert "\t               0 g+0x4 (a.out)" in lines
    blocks = text.perf_script(NESTED).split("\n\n")
    assert [len(block.splitlines()) for block in blocks] == [1, 1, 1, 3, 1, 1, 1, 0]
    stackless = recording(*(one for one in NESTED.events if not one.stack))
    assert "" not in text.perf_script(stackless).splitlines()
    traced = [line for line in text.ftrace(NESTED).splitlines() if not line.startswith(("#", " =>"))]
    form = re.compile(r"^\s*(.{1,16})-(\d+) +\[(\d{3})\] .{5} +\d+\.\d{6}: ")
    assert all(form.match(line) for line in traced)


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("a.json", "chrome"),
        ("a.pftrace", "perfetto"),
        ("a.speedscope.json", "speedscope"),
        ("b/a.perf", "perf"),
        ("a.jsonl", "jsonl"),
        ("a.ctf", "ctf"),
    ],
)
def test_the_suffix_tells_the_format(path, form):
    assert format_of(path, None) == form
    assert format_of("anything", form) == form


def test_an_unknown_format_is_refused_with_the_known_ones():
    with pytest.raises(ExportError, match=r"the suffix names no format; add --export-format"):
        format_of("trace.xyz", None)
    with pytest.raises(ExportError, match=r"did you mean 'folded'"):
        format_of("x", "foldet")


@pytest.mark.parametrize("isa", ISAS)
def test_a_program_is_exported_on_every_isa(isa, tmp_path):
    zoo = images.linux(ISAS[isa], "zoo")
    program = "pid$target:zoo:ackermann:entry, pid$target:zoo:ackermann:return { trace(arg1); } syscall::write:entry { @[ustack()] = count(); }"  # noqa: E501
    file = tmp_path / "a.json"
    result = run_trapline(["dtrace", "-qn", program, "--export", str(file), "-c", f"{zoo} recursion"])
    assert result.returncode == 0, result.stderr
    rows = [row for row in json.loads(file.read_text())["traceEvents"] if row["ph"] == "X"]
    assert len(rows) > 5
    assert nested(rows)
    assert {row["name"] for row in rows} == {"ackermann"}
    assert all(row["pid"] == row["tid"] > 0 for row in rows)


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_is_written_by_the_command(form, tmp_path):
    if form == "parquet":
        pytest.importorskip("pyarrow")
    zoo = images.linux(ISAS["x86_64"], "zoo")
    program = "pid$target:zoo:ackermann:entry { ustack(); @[ustack()] = count(); }"
    place = tmp_path / "out"
    result = run_trapline(
        ["dtrace", "-qn", program, "--export", str(place), "--export-format", form, "-c", f"{zoo} recursion"]
    )
    assert result.returncode == 0, result.stderr
    assert place.exists()
    left_out = "left out" in result.stderr
    assert left_out is not FORMATS[form].counts
    if form == "ctf" and shutil.which("babeltrace2"):
        told = subprocess.run(["babeltrace2", place], capture_output=True, text=True, check=True)
        assert told.stdout.count("ackermann:entry") > 5
        assert "tid = " in told.stdout


def test_the_programs_output_leaves_standard_output_to_json_lines(tmp_path):
    zoo = images.linux(ISAS["x86_64"], "zoo")
    arguments = ["dtrace", "-x", "format=json", "-n", "pid$target::ackermann:entry { trace(arg0); }"]
    result = run_trapline([*arguments, "--program-output", "stderr", "-c", f"{zoo} recursion"])
    assert result.returncode == 0
    assert all(json.loads(line)["type"] == "record" for line in result.stdout.splitlines())
    assert "fib(10) = 55" in result.stderr
    file = tmp_path / "printed"
    run_trapline([*arguments, "--program-output", str(file), "-c", f"{zoo} recursion"])
    assert "fib(10) = 55" in file.read_text()


def test_a_uprobe_is_exported_with_its_stack(tmp_path):
    file = tmp_path / "a.jsonl"
    result = run_trapline(
        ["uprobe", "-s", "--export", str(file), "-c", "testbins:zoo recursion", "p:testbins:zoo:ackermann n=%di"]
    )
    assert result.returncode == 0, result.stderr
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(rows) > 5
    assert rows[0]["values"]["n"].startswith("0x")
    assert rows[0]["values"]["stack"][-1] == "zoo`_start"


@pytest.mark.parametrize("suffix", [".html", ".svg"])
def test_folded_stacks_are_drawn(suffix, tmp_path):
    (stacks := tmp_path / "a.folded").write_text("a;b<c 3\na;d 1\n")
    result = run_trapline(["flame", str(stacks), "-o", str(tmp_path / f"a{suffix}")])
    assert result.returncode == 0, result.stderr
    drawn = (tmp_path / f"a{suffix}").read_text()
    assert "b&lt;c: 3 (75.00 %)" in drawn
    assert "b<c" not in drawn


def test_wrong_stacks_are_one_line(tmp_path):
    (stacks := tmp_path / "a.folded").write_text("nothing\n")
    result = run_trapline(["flame", str(stacks)])
    assert result.returncode == 1
    assert "a.folded:1: not a folded stack" in result.stderr
    result = run_trapline(["dtrace", "-n", "BEGIN", "--export", "x.unknown"])
    assert result.returncode == 1
    assert "the suffix names no format" in result.stderr
