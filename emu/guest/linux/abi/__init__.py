"""Linux' binary interface as data: call numbers, structures, signal frames."""
