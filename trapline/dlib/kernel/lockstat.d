/* Locks: how they are taken, and the lock of a probe's first argument. */

#pragma D depends_on module kernel

inline int LOCKSTAT_WRITER = 0;	/* exclusive */
inline int LOCKSTAT_READER = 1;	/* shared */

typedef struct lockinfo {
	string lock_name;
	uintptr_t lock_addr;
	uintptr_t lock_owner;	/* address of the thread that holds it exclusively, 0: none */
	int lock_readers;	/* the number of shared holders */
	int lock_spin;
} lockinfo_t;

translator lockinfo_t < struct mtx *M > {
	lock_name = stringof(M->lock_object.lo_name);
	lock_addr = (uintptr_t)M;
	lock_owner = M->mtx_lock & ~1;
	lock_readers = 0;
	lock_spin = M->lock_object.lo_flags & 1;
};

translator lockinfo_t < struct sx *S > {
	lock_name = stringof(S->lock_object.lo_name);
	lock_addr = (uintptr_t)S;
	lock_owner = (uintptr_t)S->sx_owner;
	lock_readers = S->sx_shared;
	lock_spin = 0;
};
