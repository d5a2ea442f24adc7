"""The player: a recording as one HTML page that needs no network (`trapline step --html`)."""
