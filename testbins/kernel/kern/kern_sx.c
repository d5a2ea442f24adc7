/* Shared/exclusive locks, which may be held asleep (FreeBSD sys/kern/kern_sx.c). */
#include "sys/systm.h"

void
sx_init(struct sx *sx, const char *description)
{
	*sx = (struct sx){ .lock_object = { .lo_name = description } };
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
	if (sx->sx_owner == curthread)
		panic("recursion on sx lock %s at %s:%d", sx->lock_object.lo_name, file, line);
	while (sx->sx_owner != NULL || sx->sx_shared > 0)
		_sx_wait_hard(sx);
	sx->sx_owner = curthread;
	return (0);
}

int
_sx_slock(struct sx *sx, const char *file, int line)
{
	if (sx->sx_owner == curthread)
		panic("shared lock of sx %s, held exclusively, at %s:%d", sx->lock_object.lo_name, file, line);
	while (sx->sx_owner != NULL)
		_sx_wait_hard(sx);
	sx->sx_shared++;
	return (0);
}

void
_sx_xunlock(struct sx *sx, const char *file, int line)
{
	if (sx->sx_owner != curthread)
		panic("sx lock %s not owned at %s:%d", sx->lock_object.lo_name, file, line);
	sx->sx_owner = NULL;
	if (sx->sx_waiters > 0)
		sleepq_broadcast(sx);
}

void
_sx_sunlock(struct sx *sx, const char *file, int line)
{
	if (sx->sx_shared == 0)
		panic("sx lock %s not shared at %s:%d", sx->lock_object.lo_name, file, line);
	if (--sx->sx_shared == 0 && sx->sx_waiters > 0)
		sleepq_broadcast(sx);
}
