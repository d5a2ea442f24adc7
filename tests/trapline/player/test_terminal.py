"""The player in a terminal shows the step of the keys, in wide and narrow terminals."""

import asyncio
from dataclasses import replace

import pytest

from tests.support.command import run_trapline
from tests.trapline.lab.step.recorded import GUEST, recorded
from trapline.lab.museum.gallery import find
from trapline.player.model import Played
from trapline.player.terminal_model import terminal_firings, terminal_race

pytest.importorskip("textual")

from textual.widgets import Static

from trapline.player.terminal import Pane, PlayerApp


def play(app, size, act):
    async def run():
        async with app.run_test(size=size) as pilot:
            await act(pilot)

    asyncio.run(run())


def text(app, name):
    return str(app.query_one(f"#{name}", Static).content)


def in_view(app):
    return [pane.border_title for pane in app.query(Pane) if pane.display and pane.region.width]


@pytest.fixture(scope="module")
def recordings():
    return terminal_firings([Played(isa, recorded(isa, path=GUEST)) for isa in ("x86_64", "aarch64")])


def test_keys_in_a_terminal_of_80_columns(recordings):
    app = PlayerApp("getpid", recordings)
    steps = recordings[0].model.steps

    async def act(pilot):
        assert in_view(app) == ["1 Code", "2 Registers"]
        await pilot.press("right", "right", "left")
        assert text(app, "sentence") == steps[1].sentence
        await pilot.press("pagedown", "3")
        assert app.step == 2
        assert in_view(app) == ["1 Code", "3 Stack, trap frame and written memory"]
        await pilot.press("j", "2", "0", "enter")
        assert text(app, "position").startswith(f"Step 20 of {len(steps) - 1} | {steps[20].stage}")
        await pilot.press("z")
        assert in_view(app) == ["3 Stack, trap frame and written memory"]
        await pilot.press("r")
        assert app.recordings[app.recording].label == "aarch64"
        assert recordings[1].model.steps[app.step].stage is steps[20].stage
        await pilot.press("end", "right", "9")
        assert app.step == len(recordings[1].model.steps) - 1
        assert steps[-1].sentence in str(app.query_one("#pane-8 Static", Static).content)

    play(app, (80, 24), act)


def test_a_large_terminal_shows_every_pane_and_what_is_wrong(recordings):
    model = recordings[0].model
    wrong = replace(model.steps[-1], fault="Here it goes wrong.")
    firing = replace(model.firing, steps=(*model.steps[:-1], wrong))
    app = PlayerApp(
        "getpid", terminal_firings([Played("x86_64", replace(model.recording, firings=(firing,)), good=False)])
    )

    async def act(pilot):
        assert len(in_view(app)) == len(app.query(Pane)) == 9
        assert not app.query_one("#fault").display
        await pilot.press("end", "d")
        assert app.query_one("#fault").display
        assert text(app, "fault") == "Here it goes wrong."
        assert "resume" in app.export_screenshot()

    play(app, (150, 45), act)


def test_a_race_is_played_by_its_lanes():
    exhibit = find("five-nops")
    recording = terminal_race(exhibit.check.player_data(exhibit))
    app = PlayerApp(exhibit.title, [recording])

    async def act(pilot):
        await pilot.press("end")
        assert text(app, "fault").startswith("torn")
        await pilot.press("home", "pagedown")
        assert recording.position(app.step) != recording.position(0)
        assert "may fetch" in str(app.query_one("#pane-1 Static", Static).content)

    play(app, (60, 24), act)


def test_without_a_terminal_it_is_one_line():
    run = run_trapline(["step", "-n", "fbt::sys_getpid:entry", "-c", "getpid 1", "--tui"])
    assert run.returncode == 1
    assert run.stderr == "Error: --tui plays in a terminal, and this is none: --html FILE writes a page\n"
