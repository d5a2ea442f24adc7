"""/proc/net: the sockets and the loopback as tables, and the settings in /proc/sys/net.

Source: Linux net/ipv4/tcp_ipv4.c, udp.c, fib_trie.c, net/ipv6/addrconf.c, net/unix/af_unix.c,
net/core/net-procfs.c; Documentation/admin-guide/sysctl/net.rst.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from emu.guest.linux.fs.dir import Directory
from emu.guest.linux.fs.inode import Generated, Inode
from emu.guest.linux.net import loopback
from emu.guest.linux.net.addresses import AF_INET, AF_INET6, Endpoint
from emu.guest.linux.net.inet import InetSocket
from emu.guest.linux.net.ports import FIRST_PORT, FIRST_UNPRIVILEGED, LAST_PORT
from emu.guest.linux.net.tcp import State, TcpSocket
from emu.guest.linux.net.udp import UdpSocket
from emu.guest.linux.net.unix import Socket

if TYPE_CHECKING:
    from emu.guest.linux.kernel import Kernel

_AF_UNIX: Final = 1
# Files of /proc/sys/net by path.
_SETTINGS: Final = {
    "core/somaxconn": "4096",
    "core/rmem_default": "212992",
    "core/rmem_max": "212992",
    "core/wmem_default": "212992",
    "core/wmem_max": "212992",
    "ipv4/ip_local_port_range": f"{FIRST_PORT}\t{LAST_PORT}",
    "ipv4/ip_unprivileged_port_start": f"{FIRST_UNPRIVILEGED}",
    "ipv4/ip_forward": "0",
    "ipv4/ip_default_ttl": "64",
    "ipv4/tcp_rmem": "4096\t131072\t6291456",
    "ipv4/tcp_wmem": "4096\t16384\t4194304",
    "ipv4/tcp_keepalive_time": "7200",
    "ipv4/tcp_keepalive_intvl": "75",
    "ipv4/tcp_keepalive_probes": "9",
    "ipv4/tcp_fin_timeout": "60",
    "ipv4/tcp_max_syn_backlog": "128",
    "ipv4/tcp_syncookies": "1",
    "ipv4/tcp_congestion_control": "cubic",
    "ipv4/tcp_available_congestion_control": "reno cubic",
    "ipv6/bindv6only": "0",
    "ipv6/conf/all/disable_ipv6": "0",
    "ipv6/conf/lo/disable_ipv6": "0",
    "unix/max_dgram_qlen": "10",
}
_COLUMNS: Final = "st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode"
_LONG_ADDRESSES: Final = "local_address                         remote_address                        "
# The heads of the tables: those of IPv4 are as wide as their rows.
_HEADS: Final = {
    (TcpSocket, AF_INET): f"{'  sl  local_address rem_address   ' + _COLUMNS:<149}\n",
    (TcpSocket, AF_INET6): f"  sl  {_LONG_ADDRESSES}{_COLUMNS}\n",
    (UdpSocket, AF_INET): f"{'   sl  local_address rem_address   ' + _COLUMNS + ' ref pointer drops':<127}\n",
    (UdpSocket, AF_INET6): f"  sl  {_LONG_ADDRESSES}{_COLUMNS} ref pointer drops\n",
}
# SS_UNCONNECTED and SS_CONNECTED; the flag of a socket that listens (__SO_ACCEPTCON).
_UNCONNECTED, _CONNECTED, _ACCEPTS = 1, 3, 0x10000


def directory(kernel: Kernel) -> Directory:
    """Return /proc/net of a kernel."""
    made = Directory(0o555)
    files: dict[str, Callable[[], str]] = {
        "dev": _device,
        "if_inet6": lambda: f"{1:032x} {loopback.INDEX:02x} 80 10 80 {'lo':>8}\n",
        "route": lambda: "\t".join(_ROUTE_COLUMNS).ljust(127) + "\n",
        "tcp": lambda: _table(kernel, TcpSocket, AF_INET),
        "tcp6": lambda: _table(kernel, TcpSocket, AF_INET6),
        "udp": lambda: _table(kernel, UdpSocket, AF_INET),
        "udp6": lambda: _table(kernel, UdpSocket, AF_INET6),
        "unix": lambda: _unix(kernel),
    }
    for name, content in files.items():
        made.add(name, Generated(lambda content=content: content().encode("utf-8", "surrogateescape")))  # type: ignore[misc]
    return made


def settings() -> Inode:
    """Return /proc/sys/net."""
    made = Directory(0o555)
    for path, text in _SETTINGS.items():
        folder, _, name = path.rpartition("/")
        made.make(folder, 0o555).add(name, Generated(lambda text=text: f"{text}\n".encode()))  # type: ignore[misc]
    return made


_ROUTE_COLUMNS: Final = (
    "Iface", "Destination", "Gateway ", "Flags", "RefCnt", "Use", "Metric", "Mask\t", "MTU", "Window", "IRTT",
)  # fmt: skip


def _device() -> str:
    head = "Inter-|   Receive                                                |  Transmit\n"
    head += " face |bytes    packets errs drop fifo frame compressed multicast"
    head += "|bytes    packets errs drop fifo colls carrier compressed\n"
    received = f"{0:8} {0:7} {0:4} {0:4} {0:4} {0:5} {0:10} {0:9}"
    return f"{head}{'lo':>6}: {received} {0:8} {0:7} {0:4} {0:4} {0:4} {0:5} {0:7} {0:10}\n"


def _sockets(kernel: Kernel) -> Iterator[Socket]:
    """Yield all sockets in the order of their inodes, with those that wait to be accepted."""
    found = [file for file in kernel.open_files.files if isinstance(file, Socket)]
    waiting = [one for file in found for one in file.waiting if isinstance(one, Socket)]
    yield from sorted({*found, *waiting}, key=lambda one: one.inode.number)


def _address(family: int, endpoint: Endpoint) -> str:
    host = endpoint.host[12:] if family == AF_INET else endpoint.host
    words = (int.from_bytes(host[at : at + 4], "little") for at in range(0, len(host), 4))
    return "".join(f"{word:08X}" for word in words) + f":{endpoint.port:04X}"


def _table(kernel: Kernel, kind: type[InetSocket], family: int) -> str:
    text = _HEADS[kind, family]
    known = [one for one in _sockets(kernel) if isinstance(one, kind) and one.family == family and one.has_port]
    for index, one in enumerate(known):
        row = _row(one, index, 4 if kind is TcpSocket else 5)
        width = 149 if kind is TcpSocket else 127
        text += f"{row:<{width}}\n" if family == AF_INET else f"{row}\n"
    return text


def _row(one: InetSocket, index: int, width: int) -> str:
    nowhere = Endpoint(one.form.any)
    state = one.state if isinstance(one, TcpSocket) else State.ESTABLISHED if one.connected else State.CLOSE
    waiting = len(one.waiting) if one.listening else one.inbox.size()
    text = f"{index:{width}}: {_address(one.family, one.local)} {_address(one.family, one.remote or nowhere)} "
    text += f"{state:02X} {0 if one.listening else one.unsent():08X}:{waiting:08X} 00:00000000 00000000 {one.uid:5} "
    text += f"{0:8} {one.inode.number} {2 if isinstance(one, UdpSocket) or not one.listening else 1} {0:016x}"
    if isinstance(one, UdpSocket):
        return f"{text} 0"
    return f"{text} 100 0 0 10 0" if one.listening else f"{text} 20 4 0 10 -1"


def _unix(kernel: Kernel) -> str:
    text = "Num       RefCount Protocol Flags    Type St Inode Path\n"
    for one in _sockets(kernel):
        if one.family != _AF_UNIX:
            continue
        state = _CONNECTED if one.connected else _UNCONNECTED
        name = one.name.decode("utf-8", "surrogateescape").replace("\0", "@")
        text += f"{0:016x}: {2:08X} {0:08X} {_ACCEPTS * one.listening:08X} {one.kind:04X} {state:02X} "
        text += f"{one.inode.number:5}" + (f" {name}" if name else "") + "\n"
    return text
