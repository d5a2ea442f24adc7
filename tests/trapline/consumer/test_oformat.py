"""-x oformat, --libxo, -O and -d: the structured output of dtrace(1), by its manual page."""

import json
from xml.etree import ElementTree as ET

import pytest

from tests.support.command import run_trapline

_ARGUMENTS = ["--program-output", "stderr", "-c", "cat /etc/motd"]
_FIELDS = ["timestamp", "cpu", "id", "provider", "module", "function", "name", "output"]


def _document(program, *arguments):
    run = run_trapline(["dtrace", "--libxo", "json", *arguments, "-n", program])
    return json.loads(run.stdout)["dtrace"]["probes"]


def test_every_action_is_an_object_with_the_manuals_names():
    program = """BEGIN { printf("%d-%s", 7, "x"); printf("no arguments"); trace(-1); trace("s");
        sym((uintptr_t)&`malloc); sym((uintptr_t)8);
        mod((uintptr_t)&`malloc); print(*curthread); tracemem(`proc0.p_comm, 2);
        printm(2, memref((void *)`proc0.p_comm, 2)); exit(0); }"""
    (probe,) = _document(program)
    assert list(probe) == _FIELDS
    assert (probe["provider"], probe["module"], probe["name"]) == ("dtrace", "", "BEGIN")
    message, number, text, bare, zero, *rest = probe["output"]
    assert [message, number, text] == [{"message": "7-x"}, {"value": 7}, {"value": "x"}]
    assert [bare, zero] == [{"message": "no arguments"}, {"value": 0}]
    assert rest[:5] == [
        {"value": -1},
        {"value": "s"},
        {"sym": "kernel`malloc", "object": "kernel", "name": "malloc"},
        {"sym": "0x8", "offset": "0x8"},
        {"mod": "kernel"},
    ]
    assert rest[5]["type"][0] == {"name": "struct thread"}
    assert list(rest[5]["type"][2]) == ["member-name", "name", "value"]
    assert rest[6:] == [{"tracemem": "0x6b65"}, {"printm": "0x6b65"}]


def test_frames_are_objects():
    (probe,) = _document("fbt::sys_read:entry { stack(1); exit(0); }")
    ((frame,),) = (one["stack-frames"] for one in probe["output"])
    assert frame["symbol"] == f"kernel`{frame['name']}+{frame['offset']}"
    assert frame["module"] == "kernel"


def test_aggregations_have_keys_and_buckets():
    program = """BEGIN { @n[1, "k"] = count(); @a = avg(4); @q = quantize(1); @l = lquantize(-1, 0, 2);
        printa(@n); printa("%@d", @a, @q); exit(0); }"""
    probe, last = _document(program, "-O")
    named = {one["aggregation-name"]: one["aggregation-data"] for one in (*probe["output"], last)}
    assert named["n"] == [{"keys": [{"value": 1}, {"value": "k"}], "count": 1}]
    assert named["a"] == [{"keys": [], "avg": 4}]
    assert named["q"][0]["buckets"][1] == {"value": 1, "count": 1}
    assert named["l"][0]["buckets"][0] == {"value": "< 0", "count": 1}
    assert len(_document(program)) == 1, "without -O, what was not printed is not shown"


def test_a_drop_is_a_probe():
    program = "BEGIN { a[1] = 1; a[2] = 2; a[3] = 3; a[4] = 4; a[5] = 5; } tick-1s { exit(0); }"
    drop = next(one for one in _document(program, "-x", "dynvarsize=256") if one["name"] == "DROP")
    assert (drop["cpu"], drop["id"], drop["provider"], drop["kind"]) == (-1, -1, "dtrace", 2)
    assert drop["msg"].endswith("dynamic variable drop\n")


@pytest.mark.parametrize("style", ["xml", "xml,pretty"])
def test_xml_has_an_element_for_each_object(style):
    program = 'BEGIN { trace("a<b>\\001"); trace(1); exit(0); }'
    run = run_trapline(["dtrace", "-x", f"oformat={style}", "-n", program])
    (probe,) = ET.fromstring(run.stdout.strip())  # noqa: S314  our own text
    assert [one.tag for one in probe] == ["timestamp", "cpu", "id", "provider", "module", "function", "name"] + [
        "output"
    ] * 2
    assert [one.findtext("value") for one in probe.findall("output")] == ["a<b>\\x01", "1"]


def test_html_has_a_line_for_each_record():
    run = run_trapline(["dtrace", "--libxo", "html", "-n", "BEGIN { trace(1); exit(0); }"])
    assert run.stdout.startswith('<div class="line"><div class="data" data-tag="timestamp">')
    assert '<div class="data" data-tag="value">1</div></div>' in run.stdout


def test_text_is_the_usual_output():
    both = [run_trapline(["dtrace", *more, "-n", "BEGIN { exit(0); }"]).stdout for more in ([], ["-x", "oformat=text"])]
    assert both[0] == both[1]


def test_an_unknown_style_is_refused():
    run = run_trapline(["dtrace", "--libxo", "json,warn", "-n", "BEGIN"])
    assert run.returncode == 1
    assert "'warn'" in run.stderr


def test_the_transformed_program_is_shown_and_compiles():
    program = "BEGIN { if (1) trace(2); else trace(3); exit(0); }"
    run = run_trapline(["dtrace", "-d", "-e", "-n", program])
    assert "if" not in run.stdout
    assert run.stdout.count("BEGIN\n") == len(["conditions", "predicate", "test", "then", "otherwise", "rest"])
