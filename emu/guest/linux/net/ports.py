"""The ports of TCP or of UDP: which sockets have them, and to whom a packet goes.

Source: Linux net/ipv4/inet_connection_sock.c, inet_hashtables.c, udp.c.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, Generic, Protocol, TypeVar

from emu.guest.linux.net.addresses import ANY6, Endpoint, covers, is_any

# The ports that sockets get which do not ask for one (net.ipv4.ip_local_port_range).
FIRST_PORT, LAST_PORT = 32_768, 60_999
# Ports below it need a privilege (net.ipv4.ip_unprivileged_port_start).
FIRST_UNPRIVILEGED: Final = 1024


class PortUser(Protocol):
    """A socket, as its ports see it."""

    local: Endpoint
    remote: Endpoint | None
    only_v6: bool
    uid: int

    @property
    def listening(self) -> bool:
        """Whether it takes connections."""

    @property
    def shares_address(self) -> bool:
        """Whether it has SO_REUSEADDR."""

    @property
    def shares_port(self) -> bool:
        """Whether it has SO_REUSEPORT."""


User = TypeVar("User", bound=PortUser)


class Ports(Generic[User]):
    """The ports of one protocol."""

    def __init__(self) -> None:
        self._users: dict[int, list[User]] = {}
        self._next = FIRST_PORT

    def __iter__(self) -> Iterator[User]:
        for users in self._users.values():
            yield from users

    def add(self, user: User) -> None:
        """Count a socket as a user of its port."""
        self._users.setdefault(user.local.port, []).append(user)

    def remove(self, user: User) -> None:
        """Forget a socket, if it is known."""
        users = self._users.get(user.local.port, [])
        if user in users:
            users.remove(user)
            if not users:
                del self._users[user.local.port]

    def free(self) -> int:
        """Return the next port that has no user; 0: there is none."""
        for _ in range(LAST_PORT - FIRST_PORT + 1):
            port = self._next
            self._next = port + 1 if port < LAST_PORT else FIRST_PORT
            if port not in self._users:
                return port
        return 0

    def conflict(self, user: User, wanted: Endpoint) -> bool:
        """Return whether the users of a port do not let another socket have it."""
        return any(
            other is not user and _overlap(user, wanted.host, other) and not _share(user, other)
            for other in self._users.get(wanted.port, [])
        )

    def connection(self, local: Endpoint, remote: Endpoint) -> User | None:
        """Return the socket that is connected so; None: there is none."""
        users = self._users.get(local.port, [])
        return next((user for user in users if user.local == local and user.remote == remote), None)

    def receiver(self, to: Endpoint, source: Endpoint, fits: Callable[[User], bool]) -> User | None:
        """Return the socket that gets a packet: the one whose addresses fit it best.

        If several fit equally well, the last one gets it. Those that share the port with
        SO_REUSEPORT get packets by the port of the sender.
        """
        best: list[User] = []
        most = -1
        for user in self._users.get(to.port, []):
            score = _score(user, to, source) if fits(user) else -1
            if score > most:
                best, most = [user], score
            elif score >= 0 and score == most:
                best.append(user)
        if not best:
            return None
        return best[source.port % len(best)] if best[0].shares_port else best[-1]


def _overlap(user: PortUser, host: bytes, other: PortUser) -> bool:
    """Return whether packets for one socket could be for another, too (inet_rcv_saddr_equal)."""
    theirs = other.local.host
    return covers(host, theirs, only_v6=user.only_v6) or covers(theirs, host, only_v6=other.only_v6)


def _share(one: PortUser, other: PortUser) -> bool:
    """Return whether two sockets may have the same port and address."""
    if one.shares_port and other.shares_port and one.uid == other.uid:
        return True
    return one.shares_address and other.shares_address and not other.listening


def _score(user: PortUser, to: Endpoint, source: Endpoint) -> int:
    """Return how well the addresses of a socket fit a packet; -1: it is not for this socket."""
    if not covers(user.local.host, to.host, only_v6=user.only_v6):
        return -1
    if user.remote is not None and user.remote != source:
        return -1
    return 4 * (user.remote is not None) + 2 * (not is_any(user.local.host)) + (user.local.host != ANY6)
