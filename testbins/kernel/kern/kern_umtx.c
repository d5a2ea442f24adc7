/* Words of user memory that threads wait on (FreeBSD sys/kern/kern_umtx.c), as much of it as a threads library needs. */
#include "sys/sysproto.h"
#include "sys/systm.h"
#include "sys/thr.h"
#include "sys/time.h"
#include "sys/vm.h"

struct umtx_q {
	TAILQ_ENTRY(umtx_q) uq_link;
	struct vmspace *uq_vm;
	vaddr_t uq_address;
	bool uq_woken;
};

static TAILQ_HEAD(, umtx_q) umtxq_queue = TAILQ_HEAD_INITIALIZER(umtxq_queue);

static int
do_wait(struct vmspace *vm, vaddr_t address, uint32_t id)
{
	struct umtx_q uq = { .uq_vm = vm, .uq_address = address };
	uint32_t value;
	int error = copyin((void *)address, &value, sizeof(value));

	if (error != 0 || value != id)
		return (error);
	TAILQ_INSERT_TAIL(&umtxq_queue, &uq, uq_link);
	while (!uq.uq_woken && error == 0)
		error = tsleep(&uq, PCATCH, "uwait", 0);
	if (!uq.uq_woken)
		TAILQ_REMOVE(&umtxq_queue, &uq, uq_link);
	return (uq.uq_woken ? 0 : error);
}

/* In the order in which they came. */
void
umtx_wake(struct vmspace *vm, vaddr_t address, uint64_t n)
{
	struct umtx_q *uq, *next;

	TAILQ_FOREACH_SAFE(uq, &umtxq_queue, uq_link, next) {
		if (n == 0)
			return;
		if (uq->uq_vm != vm || uq->uq_address != address)
			continue;
		n--;
		uq->uq_woken = true;
		TAILQ_REMOVE(&umtxq_queue, uq, uq_link);
		wakeup(uq);
	}
}

int
sys__umtx_op(struct thread *td, struct _umtx_op_args *uap)
{
	struct vmspace *vm = td->td_proc->p_vmspace;

	switch (uap->op) {
	case UMTX_OP_WAIT_UINT_PRIVATE:
		return (do_wait(vm, (vaddr_t)uap->obj, uap->val));
	case UMTX_OP_WAKE_PRIVATE:
		umtx_wake(vm, (vaddr_t)uap->obj, uap->val);
		return (0);
	default:
		return (EOPNOTSUPP);
	}
}
