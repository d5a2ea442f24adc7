"""Tables by name whose modules are imported when a row is looked up."""

from __future__ import annotations

import sys

import pytest

from emu.isa import AARCH64, I386, ISAS, RISCV64, X86_64, isa_of_machine
from emu.support.by_name import ByName
from providers import fasttrap, fbt, kinst, uprobes
from providers.linux_kernel import port as linux_kernel


def test_a_module_is_imported_when_its_row_is_looked_up(tmp_path, monkeypatch):
    package = tmp_path / "rows_by_name"
    package.mkdir()
    for name in ("one", "two"):
        (package / f"{name}.py").write_text(f"ROW = ['{name}']\n{name.upper()} = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    rows = ByName("rows_by_name", ("one", "two"), "ROW")
    assert (list(rows), len(rows), "two" in rows, "three" in rows) == (["one", "two"], 2, True, False)
    assert not any(name.startswith("rows_by_name.") for name in sys.modules)
    assert rows["two"] == ["two"]
    assert rows["two"] is rows["two"]
    assert "rows_by_name.one" not in sys.modules
    with pytest.raises(KeyError, match="three"):
        rows["three"]
    assert dict(rows) == {"one": ["one"], "two": ["two"]}
    assert ByName("rows_by_name", ("one",))["one"] == 1
    for name in ("rows_by_name", "rows_by_name.one", "rows_by_name.two"):
        monkeypatch.delitem(sys.modules, name)


def test_every_isa_and_every_port_is_found():
    assert list(ISAS.values()) == [X86_64, AARCH64, RISCV64, I386]
    assert [isa.name for isa in ISAS.values()] == list(ISAS)
    assert [isa_of_machine(isa.elf.number) for isa in ISAS.values()] == list(ISAS.values())
    assert isa_of_machine(4) is None  # EM_68K
    for provider in (fasttrap, fbt, kinst, linux_kernel, uprobes):
        assert len({id(port) for port in provider.PORTS.values()}) == len(provider.PORTS) > 2
