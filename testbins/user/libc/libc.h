/* All of libc in one header. System calls return -1 and set errno, as everywhere. */
#ifndef LIBC_H
#define LIBC_H

#include "sys/dirent.h"
#include "sys/errno.h"
#include "sys/fcntl.h"
#include "sys/mman.h"
#include "sys/signal.h"
#include "sys/socket.h"
#include "sys/stat.h"
#include "sys/time.h"
#include "sys/types.h"
#include "sys/wait.h"

#define BUFSIZ 1024
#define EXIT_FAILURE 1

int *__error(void);
#define errno (*__error())
void __set_error_selector(int *(*selector)(void));
extern char **environ;

/* system calls */
void _exit(int status) __dead2;
pid_t vfork(void) __attribute__((returns_twice));
ssize_t read(int fd, void *buffer, size_t size);
ssize_t write(int fd, const void *buffer, size_t size);
int open(const char *path, int flags, ...);
int close(int fd);
pid_t wait4(pid_t pid, int *status, int options, void *rusage);
int link(const char *path, const char *to);
int unlink(const char *path);
int chdir(const char *path);
pid_t getpid(void);
pid_t getppid(void);
int setuid(uid_t uid);
uid_t getuid(void);
int access(const char *path, int mode);
int kill(pid_t pid, int sig);
int dup(int fd);
int dup2(int from, int to);
int ioctl(int fd, unsigned long command, void *data);
int reboot(int how);
int execve(const char *path, char *const argv[], char *const envp[]);
void *mmap(void *address, size_t size, int prot, int flags, int fd, off_t offset);
int munmap(void *address, size_t size);
int mprotect(void *address, size_t size, int prot);
int setitimer(int which, const struct itimerval *value, struct itimerval *old);
int rename(const char *from, const char *to);
int mkdir(const char *path, int mode);
int rmdir(const char *path);
int clock_gettime(int clock, struct timespec *time);
int nanosleep(const struct timespec *time, struct timespec *left);
int __getcwd(char *buffer, size_t size);
int sched_yield(void);
int sigprocmask(int how, const sigset_t *set, sigset_t *old);
int sigsuspend(const sigset_t *set);
int sigaction(int sig, const struct sigaction *action, struct sigaction *old);
off_t lseek(int fd, off_t offset, int whence);
int ftruncate(int fd, off_t size);
int pipe2(int fds[2], int flags);
int fstat(int fd, struct stat *status);
int fstatat(int fd, const char *path, struct stat *status, int flags);
ssize_t getdirentries(int fd, char *buffer, size_t size, off_t *base);
ssize_t getrandom(void *buffer, size_t size, unsigned flags);
int __sysctlbyname(const char *name, size_t namelen, void *old, size_t *oldlen, const void *new, size_t newlen);
char *__break(char *address);
int thr_new(void *param, int size);
int thr_self(long *id);
void thr_exit(long *state);
int _umtx_op(void *object, int operation, unsigned long value, void *uaddr1, void *uaddr2);
struct kld_file_stat;
struct module_stat;
int kldload(const char *file);
int kldunload(int fileid);
int kldfind(const char *file);
int kldnext(int fileid);
int kldstat(int fileid, struct kld_file_stat *stat);
int kldfirstmod(int fileid);
int modfnext(int modid);
int modstat(int modid, struct module_stat *stat);
int socket(int domain, int type, int protocol);
int bind(int s, const void *name, unsigned length);
int listen(int s, int backlog);
int accept(int s, void *name, unsigned *length);
int connect(int s, const void *name, unsigned length);
ssize_t sendto(int s, const void *buffer, size_t size, int flags, const void *to, unsigned length);
ssize_t recvfrom(int s, void *buffer, size_t size, int flags, void *from, unsigned *length);
int shutdown(int s, int how);
int getsockname(int s, void *name, unsigned *length);
int syscall(int number, ...); /* any call, by its number */

/* string */
void *memcpy(void *to, const void *from, size_t n);
void *memmove(void *to, const void *from, size_t n);
void *memset(void *to, int c, size_t n);
int memcmp(const void *a, const void *b, size_t n);
size_t strlen(const char *s);
int strcmp(const char *a, const char *b);
int strncmp(const char *a, const char *b, size_t n);
size_t strlcpy(char *to, const char *from, size_t size);
char *strchr(const char *s, int c);
char *strstr(const char *s, const char *wanted);
char *strdup(const char *s);
const char *basename(const char *path);

/* stdio: what printf and puts write is sent on by fflush, exit, fork, and when the buffer is full */
int printf(const char *format, ...) __printflike(1, 2);
int puts(const char *s);
void putchar(int c);
void fputs(const char *s);
void fflush(void);
int snprintf(char *to, size_t size, const char *format, ...) __printflike(3, 4);

/* lines of a file */
struct reader {
	int fd;
	size_t next, end;
	char buffer[BUFSIZ];
};
char *readline(struct reader *in, char *line, size_t size); /* without its newline, cut at size; NULL at the end */

/* stdlib, unistd */
void exit(int status) __dead2;
int atexit(void (*function)(void));
pid_t fork(void); /* flushes first */
pid_t wait(int *status);
void *malloc(size_t size);
void *realloc(void *old, size_t size);
void free(void *p);
void *sbrk(ptrdiff_t increment);
long atol(const char *s);
unsigned sleep(unsigned seconds);
int usleep(unsigned microseconds);
int stat(const char *path, struct stat *status);
int pipe(int fds[2]);
int execvp(const char *file, char *const argv[]); /* along PATH */
void qsort(void *base, size_t n, size_t size, int (*compare)(const void *, const void *));

/* errors, as err(3): "program: text: what errno says" on standard error */
const char *strerror(int error);
const char *getprogname(void);
void err(int status, const char *format, ...) __dead2 __printflike(2, 3);
void errx(int status, const char *format, ...) __dead2 __printflike(2, 3);
void warn(const char *format, ...) __printflike(1, 2);
void warnx(const char *format, ...) __printflike(1, 2);

#endif
