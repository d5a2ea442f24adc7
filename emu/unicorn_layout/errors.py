"""The error of a library that cannot be used, apart: the command imports it at its start."""


class UnusableLibraryError(Exception):
    """The layout of this library was not found; the message is one line, with the remedy."""
