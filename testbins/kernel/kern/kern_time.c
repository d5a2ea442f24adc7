/* Time as programs see it (FreeBSD sys/kern/kern_time.c, kern_resource.c). */
#include "sys/sysproto.h"
#include "sys/systm.h"
#include "sys/time.h"

#define NSEC 1000000000UL

static struct timeval
nstotv(uint64_t nanoseconds)
{
	return ((struct timeval){ nanoseconds / NSEC, nanoseconds % NSEC / 1000 });
}

static int
kern_clock_gettime(int clock_id, struct timespec *ts)
{
	uint64_t now = nanouptime();

	if (clock_id != CLOCK_REALTIME && clock_id != CLOCK_MONOTONIC)
		return (EINVAL);
	*ts = (struct timespec){ now / NSEC + (clock_id == CLOCK_REALTIME ? BOOTTIME : 0), now % NSEC };
	return (0);
}

int
sys_clock_gettime(struct thread *td __unused, struct clock_gettime_args *uap)
{
	struct timespec ts;
	int error = kern_clock_gettime(uap->clock_id, &ts);

	return (error != 0 ? error : copyout(&ts, uap->tp, sizeof(ts)));
}

int
sys_gettimeofday(struct thread *td __unused, struct gettimeofday_args *uap)
{
	struct timeval tv = nstotv(nanouptime());

	tv.tv_sec += BOOTTIME;
	return (uap->tp != NULL ? copyout(&tv, uap->tp, sizeof(tv)) : 0);
}

static int
kern_nanosleep(struct thread *td __unused, const struct timespec *rqt, struct timespec *rmt)
{
	static const char nanowait;
	uint64_t end, now;
	int error;

	if (rqt->tv_nsec < 0 || rqt->tv_nsec >= (int64_t)NSEC || rqt->tv_sec < 0)
		return (EINVAL);
	end = nanouptime() + rqt->tv_sec * NSEC + rqt->tv_nsec;
	do {
		now = nanouptime();
		if (now >= end)
			return (0);
		error = tsleep(&nanowait, PCATCH, "nanslp", tvtohz_ns(end - now));
	} while (error == EWOULDBLOCK || error == 0);
	now = nanouptime();
	now = now < end ? end - now : 0;
	*rmt = (struct timespec){ now / NSEC, now % NSEC };
	return (error == ERESTART ? EINTR : error);
}

int
sys_nanosleep(struct thread *td, struct nanosleep_args *uap)
{
	struct timespec rqt, rmt;
	int error = copyin(uap->rqtp, &rqt, sizeof(rqt));

	if (error != 0)
		return (error);
	error = kern_nanosleep(td, &rqt, &rmt);
	if (error == EINTR && uap->rmtp != NULL)
		copyout(&rmt, uap->rmtp, sizeof(rmt));
	return (error);
}

static uint64_t
tvtoticks(const struct timeval *tv)
{
	uint64_t microseconds = tv->tv_sec * 1000000 + tv->tv_usec, tick = 1000000 / hz;

	return ((microseconds + tick - 1) / tick);
}

static struct timeval
tickstotv(uint64_t n)
{
	return (nstotv(n * (NSEC / hz)));
}

static void
realitexpire(void *arg)
{
	struct proc *p = arg;

	kern_psignal(p, SIGALRM);
	if (p->p_itinterval != 0)
		callout_reset(&p->p_itcallout, p->p_itinterval, realitexpire, p);
}

void
itimer_cancel(struct proc *p)
{
	callout_stop(&p->p_itcallout);
}

int
sys_setitimer(struct thread *td, struct setitimer_args *uap)
{
	struct proc *p = td->td_proc;
	struct callout *c = &p->p_itcallout;
	struct itimerval new, old = { tickstotv(p->p_itinterval), tickstotv(c->c_pending ? c->c_time - ticks : 0) };
	int error;

	if (uap->which != ITIMER_REAL)
		return (EINVAL);
	if ((error = copyin(uap->itv, &new, sizeof(new))) != 0)
		return (error);
	itimer_cancel(p);
	p->p_itinterval = tvtoticks(&new.it_interval);
	if (tvtoticks(&new.it_value) != 0)
		callout_reset(c, tvtoticks(&new.it_value), realitexpire, p);
	return (uap->oitv != NULL ? copyout(&old, uap->oitv, sizeof(old)) : 0);
}

int
sys_getrusage(struct thread *td, struct getrusage_args *uap)
{
	struct rusage ru = { .ru_nsyscalls = td->td_syscalls };
	uint64_t runtime;

	if (uap->who == RUSAGE_SELF)
		runtime = td->td_runtime + nanouptime() - td->td_switched_in;
	else if (uap->who == RUSAGE_CHILDREN)
		runtime = td->td_proc->p_child_runtime;
	else
		return (EINVAL);
	ru.ru_utime = nstotv(runtime); /* user and system time are not told apart */
	return (copyout(&ru, uap->rusage, sizeof(ru)));
}
