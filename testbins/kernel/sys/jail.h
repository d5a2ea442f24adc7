/* The prison that every process is in (FreeBSD sys/sys/jail.h): there is one. */
#ifndef SYS_JAIL_H
#define SYS_JAIL_H

struct prison {
	int pr_id;
	char pr_name[256];
	char pr_path[1024];
	char pr_hostname[256];
	char pr_domainname[256];
};

extern struct prison prison0;

#endif
