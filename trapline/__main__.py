"""`python -m trapline` is `trapline`."""

from __future__ import annotations

from trapline.start import main

main()
