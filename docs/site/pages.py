"""Pages of the site that are made: the start from the README, and the notebooks with their results."""

from __future__ import annotations

import os
import re
from html import escape
from pathlib import Path
from typing import Any

import jupytext
import nbclient
from jupyter_client.manager import AsyncKernelManager
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made."""
    readme = (ROOT / "README.md").read_text("utf-8")
    start = re.sub(r"\[docs/([\w-]+\.md)\]\(docs/([\w-]+\.md)\)", r"[\1](\2)", readme).replace("](docs/", "](")
    files.append(File.generated(config, "index.md", content=start))
    for path in sorted((ROOT / "docs/notebooks").glob("*.py")):
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=notebook(path)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Put an ISA into the lab sheets, where students have theirs."""
    return markdown.replace("{isa}", "riscv64") if page.file.src_uri.endswith("/sheet.md") else markdown


def notebook(path: Path) -> str:
    """Return a notebook as Markdown, with the results of its cells."""
    book = jupytext.read(path)
    os.environ["PYTHONPATH"] = str(ROOT)
    # No network: kernel and client talk through sockets of the file system.
    manager: Any = AsyncKernelManager(kernel_name="python3", transport="ipc")
    nbclient.NotebookClient(book, km=manager, timeout=120).execute()
    return "\n\n".join(part for cell in book.cells for part in _cell(cell))


def _cell(cell: Any) -> list[str]:
    if cell.cell_type == "markdown":
        return [cell.source]
    return [f"```python\n{cell.source}\n```", *map(_output, cell.outputs)]


def _output(output: Any) -> str:
    data = output.get("data", {})
    if "text/html" in data:
        return f"<div>{data['text/html']}</div>"  # the theme's script makes wide tables scroll
    # What is in code scrolls in the theme; a bare pre makes the page as wide as itself.
    return f"<pre><code>{escape(data.get('text/plain', output.get('text', '')))}</code></pre>"
