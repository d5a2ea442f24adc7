"""Internet addresses as text (inet_ntoa, inet_ntoa6, inet_ntop).

Source: FreeBSD dtrace.c dtrace_dif_subr(), after RFC 1884: lower-case hexadecimal, one run of zeros
as `::`.
"""

from __future__ import annotations

from typing import Final

AF_INET: Final = 2
# FreeBSD's numbers.
AF_INET6: Final = 28
_MAPPED: Final = bytes(10) + b"\xff\xff"
_EMBEDDED: Final = 12


def ipv4(address: bytes) -> str:
    """Return the dotted quad of 4 bytes."""
    return ".".join(map(str, address))


def embeds_ipv4(address: bytes) -> bool:
    """Return whether an IPv6 address is a mapped or compatible IPv4 one; `::` and `::1` are not."""
    if address[:_EMBEDDED] == _MAPPED:
        return True
    return not any(address[:_EMBEDDED]) and address[_EMBEDDED:] not in (bytes(4), b"\0\0\0\1")


def ipv6(address: bytes) -> str:
    """Return the text of 16 bytes; the end of a mapped or compatible address is dotted."""
    words = [f"{address[at] << 8 | address[at + 1]:x}" for at in range(0, 16, 2)]
    tail = ipv4(address[_EMBEDDED:]) if embeds_ipv4(address) else ""
    if tail:
        del words[_EMBEDDED // 2 :]
    start, length = zero_run(address)
    if length == 0 or start + length > len(words):
        return ":".join([*words, tail] if tail else words)
    after = [*words[start + length :], tail] if tail else words[start + length :]
    return f"{':'.join(words[:start])}::{':'.join(after)}"


def zero_run(address: bytes) -> tuple[int, int]:
    """Return start and length, in 16-bit words, of the zeros to be omitted.

    FreeBSD counts bytes, up to the next byte that is not zero: so a run is longer if the word after
    it starts with a zero byte, and shorter by one at the end of the address.  A single word may be
    omitted, too.
    """
    best = (0, 0)
    best_bytes = 1
    words = [address[at : at + 2] for at in range(0, 16, 2)]
    start = 0
    while start < len(words):
        end = start
        while end < len(words) and not any(words[end]):
            end += 1
        measured = 2 * (end - start) + (-1 if end == len(words) else words[end][0] == 0)
        if end > start and measured > best_bytes:
            best = (start, end - start)
            best_bytes = 2 * (end - start)
        start = end + 1
    return best
