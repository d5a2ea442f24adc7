"""The names that exist under -C: those of cpp(1) on the traced system and its ISA."""

from __future__ import annotations

import pytest

from tests.support.command import run_trapline

SCRIPT = """\
#ifdef {name}
inline int FOUND = 1;
#else
inline int FOUND = 0;
#endif
BEGIN {{ printf("%d\\n", FOUND); exit(0); }}
"""

NAMES = {
    "x86_64": {"__amd64__", "__amd64", "__x86_64__", "__x86_64", "__LP64__", "_LP64"},
    "i386": {"__i386__", "__i386", "i386", "__ILP32__"},
    "aarch64": {"__aarch64__", "__LP64__", "_LP64"},
    "riscv64": {"__riscv", "__LP64__", "_LP64"},
}
EVERY = sorted(set().union(*NAMES.values()))


def defined(arguments, names, tmp_path):
    """Return which names exist."""
    lines = [SCRIPT.format(name=name).replace("FOUND", f"F{number}") for number, name in enumerate(names)]
    tests, clauses = [], []
    for text in lines:
        test, _, clause = text.partition("BEGIN")
        tests.append(test)
        clauses.append("BEGIN" + clause.replace(" exit(0);", ""))
    path = tmp_path / "names.d"
    path.write_text("".join((*tests, *clauses, "BEGIN { exit(0); }\n")))
    run = run_trapline(["dtrace", *arguments, "-C", "-q", "-s", str(path)])
    assert (run.returncode, run.stderr) == (0, "")
    return {name for name, found in zip(names, run.stdout.split(), strict=True) if found == "1"}


@pytest.mark.parametrize("isa", NAMES)
def test_the_names_are_those_of_freebsd_on_the_guests_isa(isa, tmp_path):
    system = {"__FreeBSD__", "__unix__", "__ELF__", "__SUNW_D", "__STDC__"}
    found = defined(["--isa", isa], [*EVERY, *sorted(system), "__linux__", "__sparc"], tmp_path)
    assert found == NAMES[isa] | system


def test_32_bits_on_x86_64_are_those_of_i386(tmp_path):
    assert defined(["-32"], EVERY, tmp_path) == NAMES["i386"]


def test_versions_have_their_values(tmp_path):
    path = tmp_path / "version.d"
    path.write_text('BEGIN { printf("%d %d\\n", __FreeBSD__ >= 14, __SIZEOF_POINTER__); exit(0); }\n')
    assert run_trapline(["dtrace", "-C", "-q", "-s", str(path)]).stdout == "1 8\n\n"
