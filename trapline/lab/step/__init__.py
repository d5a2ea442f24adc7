"""One firing, or several, recorded step by step (`trapline step`)."""
