"""The picture of the README: the player with one recorded firing, drawn by headless Chromium.

`make picture` writes docs/player.png anew; CHROMIUM names the browser.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

PICTURE: Final = Path(__file__).parents[1] / "player.png"
PROGRAM: Final = "fbt::malloc:entry { @[execname] = quantize(arg0); }"
# The displaced instruction: what precedes it is shown, too.
STEP: Final = 13
SIZE: Final = "1100,1070"


def main() -> None:
    """Record a firing, and draw the page that plays it."""
    with TemporaryDirectory() as folder:
        page = Path(folder, "firing.html")
        record = [sys.executable, "-m", "trapline", "step", "-n", PROGRAM, "-c", "cat /etc/motd", "--html", str(page)]
        subprocess.run(record, check=True)  # noqa: S603
        browser = os.environ.get("CHROMIUM", "chromium")
        options = "--headless --no-sandbox --disable-gpu --disable-background-networking --hide-scrollbars".split()
        options += [f"--user-data-dir={folder}", f"--window-size={SIZE}", f"--screenshot={PICTURE}"]
        options += ["--blink-settings=preferredColorScheme=1", f"{page.as_uri()}#step={STEP}"]
        subprocess.run([browser, *options], check=True, capture_output=True)  # noqa: S603


if __name__ == "__main__":
    main()
