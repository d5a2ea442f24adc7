"""System calls that the guest refuses, each with the error that a Linux without that part gives.

Source: Linux kernel/sys_ni.c, the man page of each call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from emu.guest.linux.calls.table import HANDLERS
from emu.guest.linux.errno import EINVAL, ENOSYS, EOPNOTSUPP, EPERM, LinuxError

if TYPE_CHECKING:
    from emu.guest.linux.calls.table import Handler
    from emu.guest.linux.kernel import Kernel
    from emu.guest.linux.process.process import Thread

# The calls that fail, with their errors and reasons.  Programs have a fallback for each of them.
REFUSED: Final[dict[str, tuple[int, str]]] = {
    **dict.fromkeys(
        """
        _sysctl afs_syscall create_module epoll_ctl_old epoll_wait_old get_kernel_syms getpmsg lookup_dcookie nfsservctl
        putpmsg query_module security sysfs tuxcall uselib ustat vm86 vserver
        """.split(),
        (ENOSYS, "Linux has removed it, or never had it"),
    ),
    **dict.fromkeys(
        """
        add_key fanotify_init fanotify_mark io_cancel io_destroy io_getevents io_pgetevents io_pgetevents_time64
        io_setup io_submit io_uring_enter io_uring_register io_uring_setup keyctl landlock_add_rule
        landlock_create_ruleset landlock_restrict_self map_shadow_stack memfd_secret modify_ldt pkey_alloc pkey_free
        quotactl_fd request_key riscv_hwprobe rseq uprobe uretprobe userfaultfd
        """.split(),
        (ENOSYS, "as in a kernel that was built without it"),
    ),
    **dict.fromkeys(
        """
        get_mempolicy mbind migrate_pages move_pages set_mempolicy set_mempolicy_home_node
        """.split(),
        (ENOSYS, "as in a kernel that was built without CONFIG_NUMA"),
    ),
    **dict.fromkeys(
        """
        cachestat listmount remap_file_pages statmount
        """.split(),
        (ENOSYS, "it reads or changes state that the guest does not keep"),
    ),
    **dict.fromkeys(
        """
        acct bpf clock_adjtime clock_settime delete_module finit_module fsconfig fsmount fsopen fspick init_module iopl
        ioperm kexec_file_load kexec_load mount mount_setattr move_mount open_by_handle_at open_tree perf_event_open
        pivot_root ptrace quotactl reboot setdomainname sethostname settimeofday stime swapoff swapon umount2
        adjtimex
        """.split(),
        (EPERM, "it administers the machine, which needs a privilege"),
    ),
    "name_to_handle_at": (EOPNOTSUPP, "the file system has no handles"),
    "seccomp": (EINVAL, "as in a kernel that was built without filters"),
}


def _refusal(number: int) -> Handler:
    def refuse(_kernel: Kernel, _thread: Thread, _arguments: list[int]) -> int:
        raise LinuxError(number)

    return refuse


for _name, (_number, _why) in REFUSED.items():
    assert _name not in HANDLERS, f"{_name} has a handler and is refused"
    HANDLERS[_name] = _refusal(_number)
