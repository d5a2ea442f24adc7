"""The commands of `trapline`, one module each: thin, over a Python call."""
