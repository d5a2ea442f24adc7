/* What only the superuser may do, each by its number (FreeBSD sys/sys/priv.h). */
#ifndef SYS_PRIV_H
#define SYS_PRIV_H

#define PRIV_REBOOT 8
#define PRIV_CRED_SETUID 50
#define PRIV_SIGNAL_DIFFCRED 230
#define PRIV_SYSCTL_WRITE 241

struct thread;
int priv_check(struct thread *td, int priv); /* 0 or EPERM */

#endif
