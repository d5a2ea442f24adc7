/* Types that scripts name and no kernel here need have, as FreeBSD's and illumos' headers have them. */

typedef enum boolean { B_FALSE, B_TRUE } boolean_t;
typedef ulong_t dev_t;
typedef int64_t hrtime_t;
typedef int taskid_t;
typedef int projid_t;
typedef int poolid_t;
typedef int zoneid_t;
typedef struct timespec {
	long tv_sec;
	long tv_nsec;
} timespec_t;
