"""The model solution of sheet 5."""

LOADS = ("ldxr", "ldaxr", "ldxp", "ldaxp", "lr.")
STORES = ("stxr", "stlxr", "stxp", "stlxp", "sc.")


def reserved(instructions):
    """Return (load, store) of each sequence, as indexes."""
    found, begin = [], None
    for index, one in enumerate(instructions):
        if one.text.startswith(LOADS):
            begin = index
        elif one.text.startswith(STORES) and begin is not None:
            found.append((begin, index))
            begin = None
    return found


def breakpoints(instructions):
    bad = {index for begin, end in reserved(instructions) for index in range(begin, end + 1)}
    return [one.address for index, one in enumerate(instructions) if index not in bad]


def jumps(instructions, size):
    bad = {index for begin, end in reserved(instructions) for index in range(begin + 1, end + 1)}
    targets = {one.target for one in instructions if one.target is not None}
    end = instructions[-1].address + instructions[-1].size
    found = []
    for index, one in enumerate(instructions):
        covered = [other for other in instructions if one.address <= other.address < one.address + size]
        inside = {other.address for other in covered[1:]}
        if index not in bad and not inside & targets and one.address + size <= end:
            found.append(one.address)
    return found
