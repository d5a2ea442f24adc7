/* Semaphores of System V. */
#define _GNU_SOURCE
#include "calls.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

union argument {
	int value;
	struct semid_ds *status;
	unsigned short *values;
	struct seminfo *info;
};

static long
operate(int number, int count, const struct sembuf *operations)
{
	return semop(number, (struct sembuf *)operations, count);
}

#define DO(number, ...) \
	operate(number, sizeof((struct sembuf[]){ __VA_ARGS__ }) / sizeof(struct sembuf), (struct sembuf[]){ __VA_ARGS__ })

static void
told(const char *what, int number)
{
	unsigned short values[8] = { 0 };
	struct semid_ds status;
	memset(&status, 0, sizeof status);
	result(what, semctl(number, 0, IPC_STAT, (union argument){ .status = &status }));
	semctl(number, 0, GETALL, (union argument){ .values = values });
	say("  %lu semaphores mode %o owner %u operated %d: %d %d %d", (unsigned long)status.sem_nsems,
	    status.sem_perm.mode, status.sem_perm.uid, status.sem_otime != 0, values[0], values[1], values[2]);
}

static void
on_alarm(int number)
{
	(void)number;
}

CASE(semaphores)
{
	key_t key = 0x7362 + getpid();
	result("not there", semget(key, 1, 0));
	result("none", semget(key, 0, IPC_CREAT | 0600));
	result("too many", semget(key, 32001, IPC_CREAT | 0600));
	int number = semget(key, 3, IPC_CREAT | IPC_EXCL | 0640);
	worked("make", number);
	told("new", number);
	say("the same: %d", semget(key, 3, 0) == number && semget(key, 0, 0) == number);
	result("larger", semget(key, 4, 0));
	result("exclusive", semget(key, 3, IPC_CREAT | IPC_EXCL));
	result("set one", semctl(number, 1, SETVAL, (union argument){ .value = 5 }));
	result("value", semctl(number, 1, GETVAL));
	result("too high", semctl(number, 1, SETVAL, (union argument){ .value = 32768 }));
	result("below zero", semctl(number, 1, SETVAL, (union argument){ .value = -1 }));
	result("no such semaphore", semctl(number, 3, GETVAL));
	unsigned short values[] = { 1, 2, 3 };
	result("set all", semctl(number, 0, SETALL, (union argument){ .values = values }));
	told("all", number);
	result("take and give", DO(number, { 0, -1, 0 }, { 1, 3, 0 }));
	told("then", number);
	say("last by this: %d", semctl(number, 1, GETPID) == getpid());
	result("all or nothing", DO(number, { 1, -1, 0 }, { 0, -1, IPC_NOWAIT }));
	told("nothing", number);
	result("zero", DO(number, { 0, 0, IPC_NOWAIT }));
	result("not zero", DO(number, { 1, 0, IPC_NOWAIT }));
	result("no such semaphore", DO(number, { 3, 1, 0 }));
	result("too high", DO(number, { 1, 32767, 0 }));
	struct sembuf many[501] = { 0 };
	result("too many", semop(number, many, 501));
	result("none", semop(number, many, 0));
	struct timespec time = { 0, 20000000 };
	result("for some time", semtimedop(number, &(struct sembuf){ 0, -1, 0 }, 1, &time));
	time.tv_nsec = -1;
	result("no time", semtimedop(number, &(struct sembuf){ 0, -1, 0 }, 1, &time));
	result("bad address", semop(number, nowhere, 1));
	result("no set", DO(number + 32768, { 0, 1, 0 }));
	on(SIGALRM, on_alarm);
	ualarm(20000, 0);
	result("interrupted", DO(number, { 0, -1, 0 }));
	struct semid_ds status;
	semctl(number, 0, IPC_STAT, (union argument){ .status = &status });
	status.sem_perm.mode = 0400;
	status.sem_perm.uid = 1000;
	result("give away", semctl(number, 0, IPC_SET, (union argument){ .status = &status }));
	told("given away", number);
	pid_t child = fork();
	if (child == 0) {
		if (setuid(1000))
			_exit(1);
		result("the owner looks", semctl(number, 0, GETVAL));
		result("changes", DO(number, { 0, 1, 0 }));
		result("sets", semctl(number, 0, SETVAL, (union argument){ .value = 1 }));
		result("waits for zero", DO(number, { 0, 0, 0 }));
		if (setuid(1001))
			result("another user", -1);
		result("removes", semctl(number, 0, IPC_RMID));
		_exit(0);
	}
	reap("child", child);
	result("gone", semctl(number, 0, IPC_RMID));
	struct seminfo info;
	memset(&info, 0, sizeof info);
	worked("limits", semctl(0, 0, IPC_INFO, (union argument){ .info = &info }));
	say("  %d %d %d %d %d", info.semmsl, info.semopm, info.semvmx, info.semaem, info.semmni);
}

CASE(semaphores_waiting)
{
	int number = semget(IPC_PRIVATE, 3, 0600), pipes[2];
	if (pipe(pipes))
		abort();
	/* Two wait for the first, each in its own order; one for zero. */
	for (int child = 0; child < 3; child++) {
		if (fork() == 0) {
			if (child == 2)
				DO(number, { 1, 0, 0 });
			else
				DO(number, { 0, child ? -1 : -2, 0 });
			char letter = "abz"[child];
			if (write(pipes[1], &letter, 1) != 1)
				abort();
			_exit(0);
		}
		sleep_ms(30);
		if (child == 0)
			semctl(number, 1, SETVAL, (union argument){ .value = 1 });
	}
	result("wait for more", semctl(number, 0, GETNCNT));
	result("wait for zero", semctl(number, 1, GETZCNT));
	result("one", DO(number, { 0, 1, 0 }));
	char letters[4] = { 0 };
	(void)!read(pipes[0], letters, 1);
	say("the one who wants one: %s", letters);
	result("wait for more", semctl(number, 0, GETNCNT));
	result("two", DO(number, { 0, 2, 0 }));
	(void)!read(pipes[0], letters, 1);
	say("the other: %s", letters);
	result("zero", DO(number, { 1, -1, 0 }));
	(void)!read(pipes[0], letters, 1);
	say("zero: %s", letters);
	for (int child = 0; child < 3; child++)
		wait(NULL);
	pid_t child = fork();
	if (child == 0) {
		long done = DO(number, { 0, -1, 0 });
		int failed = errno;
		sleep_ms(20);
		errno = failed;
		result("removed meanwhile", done);
		_exit(0);
	}
	sleep_ms(30);
	result("remove", semctl(number, 0, IPC_RMID));
	reap("child", child);
}

CASE(semaphores_undone)
{
	int number = semget(IPC_PRIVATE, 3, 0600);
	unsigned short values[] = { 5, 0, 1 };
	semctl(number, 0, SETALL, (union argument){ .values = values });
	pid_t child = fork();
	if (child == 0) {
		result("with undo", DO(number, { 0, -2, SEM_UNDO }, { 1, 4, SEM_UNDO }, { 2, -1, 0 }));
		told("by a child", number);
		pid_t grandchild = fork(); /* does not inherit what is to be undone */
		if (grandchild == 0)
			_exit(0);
		reap("grandchild", grandchild);
		told("after the grandchild", number);
		execl("/proc/self/exe", "calls", "nothing", NULL); /* undone at exit, not by exec */
		_exit(1);
	}
	reap("child", child);
	told("undone", number);
	child = fork();
	if (child == 0) {
		DO(number, { 0, 3, SEM_UNDO });
		semctl(number, 0, SETVAL, (union argument){ .value = 1 }); /* forgets it */
		DO(number, { 1, 2, SEM_UNDO });
		DO(number, { 1, -1, 0 });
		result("cannot be undone", DO(number, { 0, -1, SEM_UNDO | IPC_NOWAIT }, { 0, -1, SEM_UNDO | IPC_NOWAIT }));
		kill(getpid(), SIGKILL);
	}
	reap("child", child);
	told("not below zero", number);
	child = fork();
	if (child == 0) {
		result("woken by the undoing", DO(number, { 2, -1, 0 }));
		_exit(0);
	}
	pid_t other = fork();
	if (other == 0) {
		sleep_ms(30);
		DO(number, { 2, 1, SEM_UNDO }, { 2, -1, 0 });
		DO(number, { 1, 1, 0 });
		DO(number, { 1, -1, SEM_UNDO });
		_exit(0);
	}
	reap("other", other);
	told("then", number);
	DO(number, { 2, 1, 0 });
	reap("child", child);
	result("remove", semctl(number, 0, IPC_RMID));
}
