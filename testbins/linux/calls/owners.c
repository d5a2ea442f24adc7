/* Who is to be told of a file's events. */
#define _GNU_SOURCE
#include "calls.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

CASE(file_owners)
{
	int pipes[2];
	if (pipe(pipes))
		abort();
	result("nobody", fcntl(pipes[0], F_GETOWN));
	result("this process", fcntl(pipes[0], F_SETOWN, getpid()));
	say("now: %d", fcntl(pipes[0], F_GETOWN) == getpid());
	result("no process", fcntl(pipes[0], F_SETOWN, 0x3fffffff));
	result("its group", fcntl(pipes[0], F_SETOWN, -getpgrp()));
	struct f_owner_ex owner = { -1, -1 };
	result("look", fcntl(pipes[0], F_GETOWN_EX, &owner));
	say("a group: %d", owner.type == F_OWNER_PGRP && owner.pid == getpgrp());
	owner = (struct f_owner_ex){ F_OWNER_TID, gettid() };
	result("a thread", fcntl(pipes[0], F_SETOWN_EX, &owner));
	say("now: %d", fcntl(pipes[0], F_GETOWN) == gettid());
	owner.type = 7;
	result("no kind", fcntl(pipes[0], F_SETOWN_EX, &owner));
	result("signal", fcntl(pipes[0], F_GETSIG));
	result("another", fcntl(pipes[0], F_SETSIG, SIGUSR1));
	say("now: %d", fcntl(pipes[0], F_GETSIG) == SIGUSR1);
	result("no signal", fcntl(pipes[0], F_SETSIG, 65));
	result("the other end", fcntl(pipes[1], F_GETOWN));
	result("to nobody", fcntl(pipes[0], F_SETOWN, 0));
}
