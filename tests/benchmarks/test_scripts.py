"""The counts of public D scripts."""

from __future__ import annotations

import pytest

from benchmarks import scripts


def test_a_scripts_first_line_and_arguments_are_obeyed(tmp_path):
    asks = tmp_path / "asks.d"
    asks.write_text("#!/usr/sbin/dtrace -Cs\n#define N 1\nBEGIN { trace($2 + N); trace($$1); }\n")
    assert scripts.command(asks) == ["-C", "-e", "-s", str(asks), "1", "1"]
    asks.write_text("#!/usr/sbin/dtrace -qs\n#pragma\tD option defaultargs\nBEGIN { trace($1); }\n")
    assert scripts.command(asks) == ["-e", "-s", str(asks)]
    asks.write_text("pid$target:::entry { }\n")
    assert scripts.command(asks) == ["-c", "true", "-e", "-s", str(asks)]


@pytest.mark.exhaustive
def test_scripts_are_counted_by_what_becomes_of_them(tmp_path):
    for name, text in {
        "good.d": "BEGIN { exit(0); }",
        "lenient.d": "smb:::op-Read-start { @ = count(); }",
        "probe.d": "fsinfo:::open { trace(args[0]->fi_name); }",
        "symbol.d": "BEGIN { trace(`devnamesp[0]); }",
        "member.d": "BEGIN { trace(curthread->t_lwp); }",
        "type.d": "BEGIN { trace(sizeof (uf_entry_t)); }",
        "other.d": "BEGIN { trace(); }",
    }.items():
        (tmp_path / name).write_text(text)
    found = scripts.measured(tmp_path)
    assert (found["scripts"], found["compile"], found["with -Z"]) == (7, 1, 2)
    assert found["reasons"] == {
        "a member of another kernel's structures": 1,
        "a probe that the kernel guest does not have": 1,
        "a type of another kernel": 1,
        "a variable of another kernel": 1,
        "another error": 1,
    }


def test_a_folder_without_scripts_is_refused(tmp_path):
    with pytest.raises(ValueError, match="has no"):
        scripts.measured(tmp_path)
