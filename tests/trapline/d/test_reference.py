"""Every section of the reference is true: see tests/trapline/d/reference."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.trapline.d.reference.transcripts import evaluate, read_transcripts, run

HOME = Path(__file__).parent / "reference"
TOOLKIT = Path(__file__).parent / "toolkit"
TRANSCRIPTS = [
    pytest.param(one, id=f"{path.stem}-{one.name}")
    for path in sorted(HOME.glob("*.t"))
    for one in read_transcripts(path)
]
EXPRESSIONS = [
    pytest.param(*map(str.strip, line.split("=>")), id=f"{path.stem}-{number}: {line.split('=>')[0].strip()}")
    for path in sorted(HOME.glob("*.x"))
    for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1)
    if line and not line.startswith("#")
]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Return a directory for those of the transcripts: `tmp_path` takes as long as most of them."""
    return tmp_path_factory.mktemp("transcripts")


@pytest.mark.parametrize("transcript", TRANSCRIPTS)
def test_a_transcript_is_what_happens(transcript, home, monkeypatch):
    folder = Path(tempfile.mkdtemp(dir=home))
    monkeypatch.chdir(folder)
    for name, lines in transcript.files.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines))
    assert run(transcript) == (transcript.output, transcript.errors, transcript.status)


@pytest.mark.parametrize(("text", "shown"), EXPRESSIONS)
def test_an_expression_has_its_type_and_value(text, shown):
    assert evaluate(text).replace("\n", "\\n") == shown


@pytest.mark.parametrize(
    "transcript", [pytest.param(one, id=one.command) for one in read_transcripts(TOOLKIT / "toolkit.t")]
)
def test_a_script_of_the_toolkits_kind_prints_what_it_should(transcript, monkeypatch):
    monkeypatch.chdir(TOOLKIT)
    assert run(transcript) == (transcript.output, transcript.errors, transcript.status)
