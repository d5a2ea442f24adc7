/* System call numbers, for C and assembly. syscalls.def has the table; kern/init_sysent.c holds the two equal. */
#ifndef SYS_SYSCALL_H
#define SYS_SYSCALL_H

#define SYS_exit 1
#define SYS_fork 2
#define SYS_read 3
#define SYS_write 4
#define SYS_open 5
#define SYS_close 6
#define SYS_wait4 7
#define SYS_link 9
#define SYS_unlink 10
#define SYS_chdir 12
#define SYS_break 17
#define SYS_getpid 20
#define SYS_getuid 24
#define SYS_geteuid 25
#define SYS_access 33
#define SYS_kill 37
#define SYS_getppid 39
#define SYS_dup 41
#define SYS_getegid 43
#define SYS_getgid 47
#define SYS_ioctl 54
#define SYS_reboot 55
#define SYS_execve 59
#define SYS_umask 60
#define SYS_vfork 66
#define SYS_munmap 73
#define SYS_mprotect 74
#define SYS_setitimer 83
#define SYS_dup2 90
#define SYS_fcntl 92
#define SYS_fsync 95
#define SYS_gettimeofday 116
#define SYS_getrusage 117
#define SYS_rename 128
#define SYS_mkdir 136
#define SYS_rmdir 137
#define SYS_clock_gettime 232
#define SYS_nanosleep 240
#define SYS___getcwd 326
#define SYS_sched_yield 331
#define SYS_sigprocmask 340
#define SYS_sigsuspend 341
#define SYS_sigpending 343
#define SYS_sigaction 416
#define SYS_sigreturn 417
#define SYS_thr_exit 431
#define SYS_thr_self 432
#define SYS__umtx_op 454
#define SYS_thr_new 455
#define SYS_mmap 477
#define SYS_lseek 478
#define SYS_ftruncate 480
#define SYS_openat 499
#define SYS_pipe2 542
#define SYS_fstat 551
#define SYS_fstatat 552
#define SYS_getdirentries 554
#define SYS_getrandom 563
#define SYS_MAXSYSCALL 600

#endif
