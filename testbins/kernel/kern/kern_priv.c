/* Privileges (FreeBSD sys/kern/kern_priv.c). */
#include "sys/priv.h"
#include "sys/sdt.h"
#include "sys/systm.h"

SDT_PROVIDER_DEFINE(priv);
SDT_PROBE_DEFINE1(priv, kernel, priv_check, priv__ok, "int");
SDT_PROBE_DEFINE1(priv, kernel, priv_check, priv__err, "int");

int
priv_check(struct thread *td, int priv)
{
	if (td->td_proc->p_ucred->cr_uid == 0) {
		SDT_PROBE1(priv, kernel, priv_check, priv__ok, priv);
		return (0);
	}
	SDT_PROBE1(priv, kernel, priv_check, priv__err, priv);
	return (EPERM);
}
