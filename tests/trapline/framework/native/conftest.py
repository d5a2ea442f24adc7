"""Runs of a command with several engines, for tests of machine code."""

from __future__ import annotations

from functools import partial

import pytest

from tests.support.engines import shown_by


@pytest.fixture
def shown(monkeypatch, capfd):
    """Run a command with several engines; what it shows, and the upcalls of machine code, by kind and operand."""
    return partial(shown_by, monkeypatch, capfd)
