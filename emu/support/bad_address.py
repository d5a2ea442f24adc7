"""The error of an invalid address."""

from __future__ import annotations


class BadAddressError(Exception):
    """A load or store met an address that is not mapped (`address`)."""

    def __init__(self, address: int) -> None:
        super().__init__(f"invalid address {address:#x}")
        self.address = address
