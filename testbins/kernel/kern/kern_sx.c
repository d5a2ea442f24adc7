/* Shared/exclusive locks, which may be held asleep (FreeBSD sys/kern/kern_sx.c). */
#include "sys/lockstat.h"
#include "sys/systm.h"

#define LOCKSTAT_WRITER 0
#define LOCKSTAT_READER 1
SDT_PROBE_DEFINE2(lockstat, , , sx__acquire, "struct sx *", "int");
SDT_PROBE_DEFINE2(lockstat, , , sx__release, "struct sx *", "int");
SDT_PROBE_DEFINE5(lockstat, , , sx__block, "struct sx *", "uint64_t", "int", "int", "int");

void
sx_init(struct sx *sx, const char *description)
{
	*sx = (struct sx)SX_INITIALIZER(description);
}

void
sx_destroy(struct sx *sx)
{
	KASSERT(sx->sx_owner == NULL && sx->sx_shared == 0, ("sx_destroy: %s is locked", sx->lock_object.lo_name));
	sx->lock_object.lo_name = NULL;
}

int
sx_xlocked(const struct sx *sx)
{
	return (sx->sx_owner == curthread);
}

/* One wait of possibly several. */
static void
_sx_wait_hard(struct sx *sx)
{
	sx->sx_waiters++;
	sleepq_add(sx, sx->lock_object.lo_name, 0);
	sleepq_wait(sx);
	sx->sx_waiters--;
}

int
_sx_xlock(struct sx *sx, const char *file, int line)
{
	struct thread *owner = sx->sx_owner;
	int readers = sx->sx_shared;
	uint64_t since = 0;

	if (owner == curthread)
		panic("recursion on sx lock %s at %s:%d", sx->lock_object.lo_name, file, line);
	if (owner != NULL || readers > 0) {
		LOCKSTAT_TIME(since);
		while (sx->sx_owner != NULL || sx->sx_shared > 0)
			_sx_wait_hard(sx);
		SDT_PROBE5(lockstat, , , sx__block, sx, lockstat_nsecs(since), LOCKSTAT_WRITER, owner != NULL, readers);
	}
	sx->sx_owner = curthread;
	SDT_PROBE2(lockstat, , , sx__acquire, sx, LOCKSTAT_WRITER);
	return (0);
}

int
_sx_slock(struct sx *sx, const char *file, int line)
{
	struct thread *owner = sx->sx_owner;
	uint64_t since = 0;

	if (owner == curthread)
		panic("shared lock of sx %s, held exclusively, at %s:%d", sx->lock_object.lo_name, file, line);
	if (owner != NULL) {
		LOCKSTAT_TIME(since);
		while (sx->sx_owner != NULL)
			_sx_wait_hard(sx);
		SDT_PROBE5(lockstat, , , sx__block, sx, lockstat_nsecs(since), LOCKSTAT_READER, true, 0);
	}
	sx->sx_shared++;
	SDT_PROBE2(lockstat, , , sx__acquire, sx, LOCKSTAT_READER);
	return (0);
}

void
_sx_xunlock(struct sx *sx, const char *file, int line)
{
	if (sx->sx_owner != curthread)
		panic("sx lock %s not owned at %s:%d", sx->lock_object.lo_name, file, line);
	SDT_PROBE2(lockstat, , , sx__release, sx, LOCKSTAT_WRITER);
	sx->sx_owner = NULL;
	if (sx->sx_waiters > 0)
		sleepq_broadcast(sx);
}

void
_sx_sunlock(struct sx *sx, const char *file, int line)
{
	if (sx->sx_shared == 0)
		panic("sx lock %s not shared at %s:%d", sx->lock_object.lo_name, file, line);
	SDT_PROBE2(lockstat, , , sx__release, sx, LOCKSTAT_READER);
	if (--sx->sx_shared == 0 && sx->sx_waiters > 0)
		sleepq_broadcast(sx);
}
