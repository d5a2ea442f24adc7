"""The commands of the lab, one module each: thin, over a Python call."""
