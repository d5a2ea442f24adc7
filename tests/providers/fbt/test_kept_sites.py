"""Sites that are kept on disk: those of a scan, as long as nothing that decides has changed."""

from __future__ import annotations

import os

import pytest

from emu.elf.image import image_of_file
from emu.guest.kernel.boot.images import built
from emu.isa import ISAS, X86_64
from emu.support.disk_cache import signature
from providers.fbt import fbt, kept_sites
from providers.fbt.port import ENTRY, RETURN, Site
from providers.fidelity import Fidelity
from trapline.machine.kernel_machine import KernelOptions, kernel_guest

FOUND = [
    (3, (Site(ENTRY, 1 << 63, b"\xcc", 0x55, 1), Site(RETURN, (1 << 64) - 1, b"\x02\x90", 7, 2, 9))),
    (9, (Site(ENTRY, 16, b"\x00", 0, 0),)),
]


def _kept(isa="riscv64", symbols=(), text=b"code", fidelity=Fidelity.EXACT):
    calls = []
    found = kept_sites.kept_sites(isa, symbols, text, fidelity, lambda: calls.append(1) or FOUND)
    assert [(number, tuple(sites)) for number, sites in found] == FOUND
    assert all(type(site) is Site for _, sites in found for site in sites)
    return not calls


def test_a_scan_is_kept_until_something_that_it_depends_on_changes(monkeypatch, tmp_path):
    monkeypatch.setenv("TRAPLINE_CACHE", str(tmp_path))
    symbol = image_of_file(built(X86_64) / "kernel", X86_64).functions[0]
    assert [_kept(), _kept()] == [False, True]
    for other in ({"isa": "aarch64"}, {"symbols": (symbol,)}, {"text": b"other"}, {"fidelity": Fidelity.FREEBSD}):
        assert [_kept(**other), _kept(**other), _kept()] == [False, True, True]
    monkeypatch.setattr(kept_sites, "signature", lambda *_: b"sources that have changed")
    assert [_kept(), _kept()] == [False, True]
    monkeypatch.setattr(kept_sites, "signature", lambda *_: None)
    assert [_kept(), _kept()] == [False, False]


@pytest.mark.parametrize("isa", ISAS)
def test_what_is_kept_of_a_kernel_is_what_the_scan_finds(isa, monkeypatch, tmp_path):
    scan, scans = fbt._probed, []
    monkeypatch.setattr(fbt, "_probed", lambda *given: scans.append(1) or scan(*given))
    guest = kernel_guest(KernelOptions(isa=ISAS[isa]))
    monkeypatch.setenv("TRAPLINE_CACHE", str(tmp_path))  # not before: the guest's machine code is in the usual one
    functions, read = tuple(guest.image.functions), guest.engine.read
    port = fbt.PORTS[isa]
    start, text = fbt._text(functions, read, port.lookahead)
    given = (port, functions, start, text, Fidelity.EXACT, isa)
    found = [fbt._remembered.__wrapped__(*given) for _ in range(2)]
    assert len(scans) == 1
    assert found[0] == found[1] == scan(port, functions, read, Fidelity.EXACT)
    assert [one.name.partition("-")[0] for one in tmp_path.iterdir()] == ["fbt"]


def test_a_signature_is_that_of_the_files_and_imports_nothing(monkeypatch, tmp_path):
    package = tmp_path / "signed" / "inner"
    package.mkdir(parents=True)
    (tmp_path / "signed" / "__init__.py").write_text("raise RuntimeError")
    monkeypatch.syspath_prepend(str(tmp_path))
    states = []
    for change in (
        lambda: None,
        lambda: (package / "new.py").write_text("1"),
        lambda: (package / "new.py").write_text("12"),
        lambda: os.utime(package / "new.py", ns=(5, 5)),
        lambda: (package / "new.py").rename(package / "newer.py"),
    ):
        change()
        signature.cache_clear()
        states.append(signature("signed"))
    assert None not in states
    assert len({*states}) == len(states)
    assert signature("no_such_package") is None
    signature.cache_clear()
