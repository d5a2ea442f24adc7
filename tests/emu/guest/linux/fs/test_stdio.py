"""The user's standard streams, opened by a program once more."""

from __future__ import annotations

import pytest

from emu.guest.linux.fs.open_file import O_RDONLY
from emu.guest.linux.fs.stdio import Standard


@pytest.mark.parametrize("number", [1, 2])
def test_output_that_is_opened_to_read_is_at_its_end(number):
    """open("/proc/self/fd/1") of a program whose output is a file: read() returns, natively and here."""
    opened = Standard().streams()[number].again(O_RDONLY, "/proc/self/fd")
    assert opened.read_ready()
    assert opened.read(8) == b""
