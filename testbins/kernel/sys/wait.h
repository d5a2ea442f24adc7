/* wait4(2). */
#ifndef SYS_WAIT_H
#define SYS_WAIT_H

#define WNOHANG 1
#define WCOREFLAG 0200
#define W_EXITCODE(ret, sig) ((ret) << 8 | (sig))
#define WTERMSIG(status) ((status) & 0177)
#define WIFEXITED(status) (WTERMSIG(status) == 0)
#define WIFSIGNALED(status) (WTERMSIG(status) != 0 && WTERMSIG(status) != 0177)
#define WEXITSTATUS(status) ((status) >> 8 & 0xff)

#endif
