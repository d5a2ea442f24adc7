"""The player: a recording as one HTML page (`--html`), and in a terminal (`--tui`)."""
