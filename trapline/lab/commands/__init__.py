"""The lab's commands, one module each; each is a thin layer over a Python call."""
