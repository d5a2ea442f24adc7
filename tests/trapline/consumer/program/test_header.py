"""Headers of -h, and scripts that go through the preprocessor."""

import os
import shutil
import subprocess

import pytest

from tests.support.command import run_trapline
from trapline.consumer.program.preprocess import PreprocessorError, preprocess
from trapline.options import Options

WEB = "provider web { probe request__start(int number, char *path); probe idle(void); };\n"
PROGRAM = '#include "web.h"\nint main(void) { if (WEB_IDLE_ENABLED()) WEB_REQUEST_START(1, "/"); return 0; }\n'


def test_a_header_gives_a_c_program_its_probes(tmp_path):
    (tmp_path / "web.d").write_text(WEB)
    run = run_trapline(["dtrace", "-h", "-s", "web.d"], cwd=tmp_path)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
    text = (tmp_path / "web.h").read_text()
    assert "#ifndef\t_WEB_H\n" in text
    assert "#define\tWEB_REQUEST_START(arg0, arg1) \\\n\t__dtrace_web___request__start(arg0, arg1)\n" in text
    assert "extern void __dtrace_web___request__start(int, char *);\n" in text


@pytest.mark.parametrize(
    ("flags", "symbols"),
    [
        (["-D_DTRACE_VERSION=1"], {"__dtrace_web___request__start", "__dtraceenabled_web___idle"}),
    ],
)
def test_a_compiler_takes_it(tmp_path, flags, symbols):
    if shutil.which("gcc") is None or shutil.which("nm") is None:
        pytest.skip("gcc and nm (Debian: gcc) are not installed")
    (tmp_path / "web.d").write_text(WEB)
    (tmp_path / "main.c").write_text(PROGRAM)
    run_trapline(["dtrace", "-h", "-s", "web.d", "-o", "web.h"], cwd=tmp_path)
    subprocess.run(["gcc", "-Wall", "-Werror", *flags, "-c", "main.c"], cwd=tmp_path, check=True)
    found = subprocess.run(["nm", "-u", "main.o"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert {line.split()[-1] for line in found.splitlines()} == symbols


STAP = "/usr/include/sys/sdt.h", "/usr/include/x86_64-linux-gnu/sys/sdt.h", "/usr/include/aarch64-linux-gnu/sys/sdt.h"


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_the_probes_are_markers_where_systemtaps_sdt_h_is(tmp_path, compiler):
    if shutil.which(compiler) is None or not any(map(os.path.exists, STAP)):
        pytest.skip(f"{compiler} and SystemTap's sys/sdt.h (Debian: {compiler}, systemtap-sdt-dev) are not installed")
    (tmp_path / "web.d").write_text(WEB)
    (tmp_path / "main.c").write_text(PROGRAM)
    run_trapline(["dtrace", "-h", "-s", "web.d", "-o", "web.h"], cwd=tmp_path)
    subprocess.run([compiler, "-Wall", "-Werror", "-static", "-o", "main", "main.c"], cwd=tmp_path, check=True)
    program = 'web$target:::request-start { printf("%d %s", arg0, copyinstr(arg1)); }'
    run = run_trapline(["dtrace", "-qn", program, "-c", "./main"], cwd=tmp_path)
    assert run.stdout.strip() == "1 /"


def options(**values):
    chosen = Options()
    for name, texts in values.items():
        for text in texts:
            chosen.set(name, text)
    return chosen


def test_macros_come_from_the_command_line_and_from_files(tmp_path):
    (tmp_path / "deep.h").write_text("#define TWICE(x) ((x) * 2)\n")
    text = (
        '#!/usr/sbin/dtrace -s\n#include "deep.h"\n'
        "BEGIN { trace(TWICE(N)); trace(M) } // comment\n#pragma D option quiet\n"
    )
    found, included = preprocess(
        text, str(tmp_path / "x.d"), options(define=["N=4", "M", "GONE=1"], undef=["GONE"], incdir=[str(tmp_path)])
    )
    assert "trace(((4) * 2)); trace(1)" in found
    assert "#pragma D option quiet" in found
    assert "comment" not in found
    assert included == [str(tmp_path / "deep.h")]


def test_a_file_that_is_not_there_is_named_with_its_place():
    with pytest.raises(PreprocessorError, match=r'"x.d", line 2: .*nosuch.h'):
        preprocess('\n#include "nosuch.h"\n', "x.d", Options())


def test_a_script_is_preprocessed_with_c_and_errors_keep_their_lines(tmp_path):
    (tmp_path / "x.d").write_text('#define GREETING "hello"\nBEGIN { printf("%s", GREETING); exit(0) }\n')
    run = run_trapline(["dtrace", "-q", "-C", "-s", "x.d"], cwd=tmp_path)
    assert run.stdout == "hello\n"
    (tmp_path / "y.d").write_text("#define A nosuch\n\nBEGIN { trace(A) }\n")
    run = run_trapline(["dtrace", "-C", "-s", "y.d"], cwd=tmp_path)
    assert "script y.d: line 3: failed to resolve nosuch" in run.stderr
    (tmp_path / "bad.h").write_text("inline int BAD = nosuch;\n")
    (tmp_path / "z.d").write_text('#include "bad.h"\nBEGIN { trace(BAD) }\n')
    run = run_trapline(["dtrace", "-C", "-s", "z.d"], cwd=tmp_path)
    assert 'script z.d: "bad.h", line 1: failed to resolve nosuch' in run.stderr
    assert run.returncode == 1
