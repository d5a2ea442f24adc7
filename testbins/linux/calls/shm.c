/* Shared memory of System V. */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include "calls.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

static void
told(const char *what, int number)
{
	struct shmid_ds status;
	memset(&status, 0, sizeof status);
	result(what, shmctl(number, IPC_STAT, &status));
	say("  size %lu users %lu mode %o owner %u made by %s last %s", (unsigned long)status.shm_segsz,
	    (unsigned long)status.shm_nattch, status.shm_perm.mode, status.shm_perm.uid,
	    status.shm_cpid == getpid() ? "this" : "another", status.shm_lpid == getpid() ? "this" : status.shm_lpid ? "another" : "none");
}

CASE(shm)
{
	key_t key = 0x7261 + getpid();
	result("not there", shmget(key, 100, 0));
	int number = shmget(key, 5000, IPC_CREAT | IPC_EXCL | 0640);
	worked("make", number);
	told("new", number);
	say("the same: %d", shmget(key, 5000, 0) == number && shmget(key, 10, IPC_CREAT) == number);
	result("too large", shmget(key, 5001, 0));
	result("exclusive", shmget(key, 10, IPC_CREAT | IPC_EXCL));
	result("nothing", shmget(IPC_PRIVATE, 0, IPC_CREAT));
	char *memory = shmat(number, 0, 0);
	worked("attach", (long)memory);
	strcpy(memory, "shared");
	told("attached", number);
	char *again = shmat(number, 0, SHM_RDONLY);
	bytes("the second time", again, 7);
	told("twice", number);
	result("at a bad address", (long)shmat(number, memory + 1, 0));
	result("where something is", (long)shmat(number, memory, 0));
	result("no segment", (long)shmat(number + 1000, 0, 0));
	pid_t child = fork();
	if (child == 0) {
		told("a child has them too", number);
		strcpy(memory, "changed");
		result("detach", shmdt(memory));
		told("one less", number);
		_exit(0);
	}
	reap("child", child);
	bytes("by the child", memory, 8);
	told("after the child", number);
	result("remove", shmctl(number, IPC_RMID, 0));
	told("still there", number);
	result("the key is free", shmget(key, 100, 0));
	result("detach", shmdt(memory));
	result("detach twice", shmdt(memory));
	result("detach", shmdt(again));
	result("gone", shmctl(number, IPC_STAT, &(struct shmid_ds){ 0 }));
	number = shmget(IPC_PRIVATE, 100, 0600);
	child = fork();
	if (child == 0) {
		if (setuid(1000))
			_exit(1);
		result("another user attaches", (long)shmat(number, 0, 0));
		result("looks", shmctl(number, IPC_STAT, &(struct shmid_ds){ 0 }));
		result("removes", shmctl(number, IPC_RMID, 0));
		_exit(0);
	}
	reap("child", child);
	result("remove", shmctl(number, IPC_RMID, 0));
	result("gone", shmctl(number, IPC_RMID, 0));
}
