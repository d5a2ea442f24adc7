/*
 * Types of what the teaching kernel lacks: other kinds of locks, and signals that wait (FreeBSD sys/_rwlock.h,
 * sys/_lockmgr.h, sys/signalvar.h). The probes whose arguments they are never fire.
 */

#pragma D depends_on module kernel

struct lock {
	struct lock_object lock_object;
	uintptr_t lk_lock;
};

struct rwlock {
	struct lock_object lock_object;
	uintptr_t rw_lock;
};

typedef struct siginfo siginfo_t;

typedef struct ksiginfo {
	struct {
		struct ksiginfo *tqe_next;
		struct ksiginfo **tqe_prev;
	} ksi_list;
	struct siginfo ksi_info;
	int ksi_flags;
} ksiginfo_t;
