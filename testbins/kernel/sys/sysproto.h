/*
 * The arguments of each system call, as they are passed: one register each, or on i386 one after another on the stack
 * (FreeBSD sys/sys/sysproto.h).
 */
#ifndef SYS_SYSPROTO_H
#define SYS_SYSPROTO_H

#include "sys/types.h"

struct thread;
#define ARG(type, name) _Alignas(long) type name;

struct exit_args { ARG(int, rval) };
struct recvfrom_args { ARG(int, s) ARG(void *, buf) ARG(size_t, len) ARG(int, flags) ARG(void *, from) ARG(unsigned *, fromlenaddr) };
struct accept_args { ARG(int, s) ARG(void *, name) ARG(unsigned *, anamelen) };
struct getsockname_args { ARG(int, fdes) ARG(void *, asa) ARG(unsigned *, alen) };
struct socket_args { ARG(int, domain) ARG(int, type) ARG(int, protocol) };
struct connect_args { ARG(int, s) ARG(const void *, name) ARG(int, namelen) };
struct bind_args { ARG(int, s) ARG(const void *, name) ARG(int, namelen) };
struct listen_args { ARG(int, s) ARG(int, backlog) };
struct sendto_args { ARG(int, s) ARG(const void *, buf) ARG(size_t, len) ARG(int, flags) ARG(const void *, to) ARG(int, tolen) };
struct shutdown_args { ARG(int, s) ARG(int, how) };
struct fork_args { ARG(int, dummy) };
struct read_args { ARG(int, fd) ARG(void *, buf) ARG(size_t, nbyte) };
struct write_args { ARG(int, fd) ARG(const void *, buf) ARG(size_t, nbyte) };
struct open_args { ARG(const char *, path) ARG(int, flags) ARG(int, mode) };
struct openat_args { ARG(int, fd) ARG(const char *, path) ARG(int, flag) ARG(int, mode) };
struct close_args { ARG(int, fd) };
struct wait4_args { ARG(int, pid) ARG(int *, status) ARG(int, options) ARG(void *, rusage) };
struct link_args { ARG(const char *, path) ARG(const char *, to) };
struct unlink_args { ARG(const char *, path) };
struct chdir_args { ARG(const char *, path) };
struct break_args { ARG(char *, nsize) };
struct getpid_args { ARG(int, dummy) };
struct setuid_args { ARG(uid_t, uid) };
struct getuid_args { ARG(int, dummy) };
struct geteuid_args { ARG(int, dummy) };
struct getgid_args { ARG(int, dummy) };
struct getegid_args { ARG(int, dummy) };
struct getppid_args { ARG(int, dummy) };
struct access_args { ARG(const char *, path) ARG(int, amode) };
struct kill_args { ARG(int, pid) ARG(int, signum) };
struct dup_args { ARG(unsigned, fd) };
struct dup2_args { ARG(unsigned, from) ARG(unsigned, to) };
struct ioctl_args { ARG(int, fd) ARG(unsigned long, com) ARG(void *, data) };
struct reboot_args { ARG(int, opt) };
struct execve_args { ARG(const char *, fname) ARG(char **, argv) ARG(char **, envv) };
struct umask_args { ARG(int, newmask) };
struct vfork_args { ARG(int, dummy) };
struct munmap_args { ARG(void *, addr) ARG(size_t, len) };
struct mprotect_args { ARG(void *, addr) ARG(size_t, len) ARG(int, prot) };
struct setitimer_args { ARG(unsigned, which) ARG(void *, itv) ARG(void *, oitv) };
struct fcntl_args { ARG(int, fd) ARG(int, cmd) ARG(long, arg) };
struct fsync_args { ARG(int, fd) };
struct gettimeofday_args { ARG(void *, tp) ARG(void *, tzp) };
struct getrusage_args { ARG(int, who) ARG(void *, rusage) };
struct rename_args { ARG(const char *, from) ARG(const char *, to) };
struct mkdir_args { ARG(const char *, path) ARG(int, mode) };
struct rmdir_args { ARG(const char *, path) };
struct clock_gettime_args { ARG(int, clock_id) ARG(void *, tp) };
struct nanosleep_args { ARG(const void *, rqtp) ARG(void *, rmtp) };
struct modstat_args { ARG(int, modid) ARG(void *, stat) };
struct modfnext_args { ARG(int, modid) };
struct modfind_args { ARG(const char *, name) };
struct kldload_args { ARG(const char *, file) };
struct kldunload_args { ARG(int, fileid) };
struct kldfind_args { ARG(const char *, file) };
struct kldnext_args { ARG(int, fileid) };
struct kldstat_args { ARG(int, fileid) ARG(void *, stat) };
struct kldfirstmod_args { ARG(int, fileid) };
struct kldunloadf_args { ARG(int, fileid) ARG(int, flags) };
struct __getcwd_args { ARG(char *, buf) ARG(size_t, buflen) };
struct sched_yield_args { ARG(int, dummy) };
struct sigprocmask_args { ARG(int, how) ARG(const void *, set) ARG(void *, oset) };
struct sigsuspend_args { ARG(const void *, sigmask) };
struct sigpending_args { ARG(void *, set) };
struct sigaction_args { ARG(int, sig) ARG(const void *, act) ARG(void *, oact) };
struct sigreturn_args { ARG(const void *, sigcntxp) };
struct thr_exit_args { ARG(long *, state) };
struct _umtx_op_args { ARG(void *, obj) ARG(int, op) ARG(unsigned long, val) ARG(void *, uaddr1) ARG(void *, uaddr2) };
struct thr_new_args { ARG(const void *, param) ARG(int, param_size) };
struct thr_self_args { ARG(long *, id) };
struct mmap_args { ARG(void *, addr) ARG(size_t, len) ARG(int, prot) ARG(int, flags) ARG(int, fd) ARG(off_t, pos) };
struct lseek_args { ARG(int, fd) ARG(off_t, offset) ARG(int, whence) };
struct ftruncate_args { ARG(int, fd) ARG(off_t, length) };
struct pipe2_args { ARG(int *, fildes) ARG(int, flags) };
struct fstat_args { ARG(int, fd) ARG(void *, sb) };
struct fstatat_args { ARG(int, fd) ARG(const char *, path) ARG(void *, buf) ARG(int, flag) };
struct getdirentries_args { ARG(int, fd) ARG(char *, buf) ARG(size_t, count) ARG(off_t *, basep) };
struct getrandom_args { ARG(void *, buf) ARG(size_t, buflen) ARG(unsigned, flags) };
struct __sysctlbyname_args { ARG(const char *, name) ARG(size_t, namelen) ARG(void *, old) ARG(size_t *, oldlenp) ARG(const void *, new) ARG(size_t, newlen) };

#define SYSCALL(number, name) int sys_##name(struct thread *td, struct name##_args *uap);
#include "sys/syscalls.def"
#undef SYSCALL

typedef int sy_call_t(struct thread *td, void *uap);

struct sysent {
	sy_call_t *sy_call;
	int sy_narg;
	uint32_t sy_entry;  /* ids of the probes; 0 is none */
	uint32_t sy_return;
};

extern struct sysent sysent[];
extern const char *const syscallnames[];
int sys_nosys(struct thread *td, void *uap);

#endif
