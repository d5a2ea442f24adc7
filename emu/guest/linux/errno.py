"""Error numbers of Linux, and the exception that carries one.

Source: include/uapi/asm-generic/errno-base.h, errno.h (data only).
"""

from __future__ import annotations

import errno
from typing import Final

EPERM: Final = 1
ENOENT: Final = 2
ESRCH: Final = 3
EINTR: Final = 4
EIO: Final = 5
ENXIO: Final = 6
E2BIG: Final = 7
ENOEXEC: Final = 8
EBADF: Final = 9
ECHILD: Final = 10
EAGAIN: Final = 11
ENOMEM: Final = 12
EACCES: Final = 13
EFAULT: Final = 14
EBUSY: Final = 16
EEXIST: Final = 17
EXDEV: Final = 18
ENODEV: Final = 19
ENOTDIR: Final = 20
EISDIR: Final = 21
EINVAL: Final = 22
ENFILE: Final = 23
EMFILE: Final = 24
ENOTTY: Final = 25
ETXTBSY: Final = 26
EFBIG: Final = 27
ENOSPC: Final = 28
ESPIPE: Final = 29
EROFS: Final = 30
EMLINK: Final = 31
EPIPE: Final = 32
EDOM: Final = 33
ERANGE: Final = 34
EDEADLK: Final = 35
ENAMETOOLONG: Final = 36
ENOSYS: Final = 38
ENOTEMPTY: Final = 39
ELOOP: Final = 40
ENOMSG: Final = 42
EIDRM: Final = 43
ENODATA: Final = 61
ENOTSOCK: Final = 88
EDESTADDRREQ: Final = 89
EMSGSIZE: Final = 90
EPROTOTYPE: Final = 91
ENOPROTOOPT: Final = 92
EPROTONOSUPPORT: Final = 93
ESOCKTNOSUPPORT: Final = 94
EOVERFLOW: Final = 75
EOPNOTSUPP: Final = 95
EAFNOSUPPORT: Final = 97
EADDRINUSE: Final = 98
EADDRNOTAVAIL: Final = 99
ENETUNREACH: Final = 101
ECONNABORTED: Final = 103
ECONNRESET: Final = 104
ENOBUFS: Final = 105
EISCONN: Final = 106
ENOTCONN: Final = 107
ETIMEDOUT: Final = 110
ECONNREFUSED: Final = 111
EALREADY: Final = 114
EINPROGRESS: Final = 115
ECANCELED: Final = 125
EOWNERDEAD: Final = 130


class LinuxError(Exception):
    """A system call fails with this error number."""

    def __init__(self, number: int) -> None:
        super().__init__(errno.errorcode.get(number, str(number)))
        self.number = number
