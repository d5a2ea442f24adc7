/* sysctl(3) by name (FreeBSD sys/kern/kern_sysctl.c). */
#include "sys/sysctl.h"
#include "sys/priv.h"
#include "sys/sysproto.h"
#include "sys/systm.h"

#define NAME_MAX_SYSCTL 64
#define OIDFMT "sysctl.oidfmt."

SET_DECLARE(sysctl_set, const struct sysctl_oid);

static const struct sysctl_oid *
sysctl_find(const char *name)
{
	const struct sysctl_oid **oid;

	SET_FOREACH(oid, sysctl_set)
		if (strcmp((*oid)->oid_name, name) == 0)
			return (*oid);
	return (NULL);
}

static int
sysctl_write(struct thread *td, const struct sysctl_oid *oid, const void *newp)
{
	int error, value;

	if ((error = priv_check(td, PRIV_SYSCTL_WRITE)) != 0)
		return (error);
	if (oid->oid_handler == NULL)
		return (EPERM);
	if ((error = copyin(newp, &value, sizeof(value))) != 0)
		return (error);
	return (oid->oid_handler(value));
}

int
SYSCTL_OUT(struct sysctl_req *req, const void *data, size_t size)
{
	size_t at = req->oldidx;

	req->oldidx += size;
	if (req->oldptr == NULL)
		return (0);
	return (req->oldidx > req->oldlen ? ENOMEM : copyout(data, (char *)req->oldptr + at, size));
}

static int
sysctl_read(const struct sysctl_oid *oid, struct sysctl_req *req)
{
	int value = oid->oid_value != NULL ? *oid->oid_value : 0;

	if (oid->oid_string != NULL)
		return (SYSCTL_OUT(req, oid->oid_string, strlen(oid->oid_string) + 1));
	return (oid->oid_table != NULL ? oid->oid_table(req) : SYSCTL_OUT(req, &value, sizeof(value)));
}

/* FreeBSD's programs ask for the kind of a value by the numbers { 0, 4 }, which sysctl(3) calls sysctl.oidfmt. */
static int
sysctl_oidfmt(const struct sysctl_oid *oid, struct sysctl_req *req)
{
	return (SYSCTL_OUT(req, oid->oid_string != NULL ? "A" : oid->oid_table != NULL ? "S" : "I", sizeof("A")));
}

int
sys___sysctlbyname(struct thread *td, struct __sysctlbyname_args *uap)
{
	const struct sysctl_oid *oid;
	struct sysctl_req req = { .oldptr = uap->old };
	char name[NAME_MAX_SYSCTL];
	int error;
	bool oidfmt;

	if (uap->namelen >= sizeof(name))
		return (ENAMETOOLONG);
	if ((error = copyin(uap->name, name, uap->namelen)) != 0)
		return (error);
	name[uap->namelen] = '\0';
	oidfmt = strncmp(name, OIDFMT, sizeof(OIDFMT) - 1) == 0;
	if ((oid = sysctl_find(oidfmt ? name + sizeof(OIDFMT) - 1 : name)) == NULL)
		return (ENOENT);
	if (uap->oldlenp != NULL) {
		if ((error = copyin(uap->oldlenp, &req.oldlen, sizeof(req.oldlen))) != 0 || 
		    (error = oidfmt ? sysctl_oidfmt(oid, &req) : sysctl_read(oid, &req)) != 0)
			return (error);
		if ((error = copyout(&req.oldidx, uap->oldlenp, sizeof(req.oldidx))) != 0)
			return (error);
	}
	return (uap->new != NULL ? sysctl_write(td, oid, uap->new) : 0);
}
