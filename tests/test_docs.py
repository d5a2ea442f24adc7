"""Every code block of the documentation runs, and has the output that the page shows."""

import re
import shlex

import pytest

from tests.support.command import ROOT, run_trapline
from tests.support.documents import BLOCKS, matches
from trapline.cli import COMMANDS

# The commands of the README that it shows without their output.
README = (ROOT / "README.md").read_text()
README_COMMANDS = re.findall(r"^trapline .*$", README, re.MULTILINE)


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.name)
def test_block_does_what_it_says(block, monkeypatch):
    if "tried by machine code" in block.text:  # whatever engine the other tests run on
        monkeypatch.setenv("TRAPLINE_ENGINE", "native")
    if block.kind == "python":
        exec(compile(block.text, "<documentation>", "exec"), {})  # noqa: S102
    examples = [*block.examples()]
    assert examples or block.kind == "python"
    for example in examples:
        result = run_trapline(example.arguments)
        shown = example.is_shown(result.stdout, result.stderr)
        assert shown, f"$ {shlex.join(example.arguments)}\n{result.stdout}{result.stderr}"


@pytest.mark.parametrize("command", README_COMMANDS)
def test_a_command_of_the_readme_runs_and_shows_something(command):
    result = run_trapline(shlex.split(command)[1:])
    assert result.returncode == 0, result.stderr
    assert len(result.stdout.splitlines()) > 1, result.stdout + result.stderr


def test_the_readme_shows_every_command_of_its_own():
    shown = {command.split()[1] for command in README_COMMANDS}
    # `make demo` is the first; two want packages; one a file of another command; one a kernel's sources.
    assert shown >= {*COMMANDS} - {"demo", "kernel", "kldstat", "oracle", "flame", "object"}


def test_the_readme_has_the_pages_of_the_site_in_its_groups():
    groups = re.split(r"^  - (\w+):\n", (ROOT / "mkdocs.yml").read_text().split("\nnav:\n")[1], flags=re.MULTILINE)
    site = {
        # Beside these: pages in folders, such as the sheets; and the reference, which the site makes.
        title: [page for page in re.findall(r"^ +- ([\w-]+\.md)$", body, re.MULTILINE) if page != "reference.md"]
        for title, body in zip(groups[1::2], groups[2::2], strict=True)
    }
    sections = re.split(r"^### (\w+)\n", README.split("\n## Documentation\n")[1].split("\n## ")[0], flags=re.MULTILINE)
    shown = {
        title: re.findall(r"^\| \[docs/([\w-]+\.md)\]", body, re.MULTILINE)
        for title, body in zip(sections[1::2], sections[2::2], strict=True)
    }
    assert shown == site
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"reference.md"}
    assert {page for group in site.values() for page in group} == pages


def test_what_the_pages_link_to_is_there():
    links = 0
    for page in [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")]:
        for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
            path, _, heading = target.partition("#")
            if "://" not in target and not path.startswith("notebooks/"):
                links += 1
                file = page.parent / path if path else page
                assert file.exists(), f"{page.name}: {target}"
                if heading and file.suffix == ".md":
                    titles = re.findall(r"^#+ (.+)$", file.read_text(), re.MULTILINE)
                    slugs = {re.sub(r"[^\w\- ]", "", title).lower().replace(" ", "-") for title in titles}
                    assert heading in slugs, f"{page.name}: {target}"
    assert links > 50


def test_the_picture_of_the_readme_is_small():
    picture = (ROOT / "docs/player.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) < 200_000


def test_a_block_that_shows_something_else_is_noticed():
    assert matches(["a", "...", "d ... f"], "a\nb\nc\nd e f\n")
    assert not matches(["a", "...", "d ... g"], "a\nb\nc\nd e f\n")
    assert not matches(["a"], "a\nb\n")


def test_every_isa_has_its_column_in_the_support_matrix():
    from emu.isa import ISAS

    heading = next(line for line in (ROOT / "docs" / "isas.md").read_text().splitlines() if re.match(r"\| +\|", line))
    assert [cell.strip() for cell in heading.split("|")[2:-1]] == list(ISAS)
