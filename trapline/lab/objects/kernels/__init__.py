"""Glues: what FreeBSD, illumos and Linux offer their probe code; and the checks of that code."""
