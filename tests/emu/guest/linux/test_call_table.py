"""Every system call of Linux 6.12 is there, or refused as `docs/linux.md` says; none is forgotten."""

import errno
import re
import socket
from pathlib import Path

import pytest

from emu.guest.linux.calls import HANDLERS
from emu.guest.linux.calls.net import families
from emu.guest.linux.calls.sys_ni import REFUSED
from emu.guest.linux.errno import LinuxError
from emu.isa import ISAS

DOCS = Path(__file__).parents[4] / "docs/linux.md"


def documented():
    """Return the rows of the table: call -> error."""
    rows = re.findall(r"^\| `(E\w+)` +\| [^|]+ \| ([^|]+)\|", DOCS.read_text(), re.MULTILINE)
    return {name: error for error, names in rows for name in re.findall(r"`(\w+)`", names)}


@pytest.mark.parametrize("isa", ISAS)
def test_every_call_is_there_or_refused(isa):
    assert not {name for name in ISAS[isa].linux.calls.values() if name not in HANDLERS}


def test_the_document_lists_the_refusals():
    assert documented() == {name: errno.errorcode[number] for name, (number, _) in REFUSED.items()}


def test_the_document_names_the_families_of_sockets_and_no_other_page_does():
    sentence = re.search(r"\*\*Sockets\*\* are those of ([^.]+)\.", DOCS.read_text())[1]
    numbers = {getattr(socket, name) for name in re.findall(r"`(AF_\w+)`", sentence)}
    assert numbers == {int(number) for number in families.FAMILIES}
    pages = [page for page in (*DOCS.parent.glob("*.md"), *DOCS.parents[1].glob("*.md")) if page.name != "CHANGELOG.md"]
    assert [page.name for page in pages if re.search(r"\bAF_[A-Z]", page.read_text())] == [DOCS.name]


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_gives_its_error(name):
    with pytest.raises(LinuxError) as caught:
        HANDLERS[name](None, None, [0] * 6)
    assert caught.value.number == REFUSED[name][0]
