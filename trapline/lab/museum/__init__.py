"""The museum: real bugs of real probe implementations.

An exhibit is a module in `displaced` or `patched`: its docstring describes the bug, and its
`EXHIBIT` has the code, the old rule that replaces the package's own, and how the difference is
shown.  The package's own rules are the right ones: an exhibit diverges under the old rule and
agrees under the right one.
"""
