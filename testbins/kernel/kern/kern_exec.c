/* Running a program (FreeBSD sys/kern/kern_exec.c). */
#include "sys/cpuvar.h"
#include "sys/file.h"
#include "sys/imgact.h"
#include "sys/malloc.h"
#include "sys/sdt.h"
#include "sys/sysproto.h"
#include "sys/systm.h"
#include "sys/vm.h"

SDT_PROVIDER_DECLARE(proc);
SDT_PROBE_DEFINE1(proc, , , exec, "char *");
SDT_PROBE_DEFINE1(proc, , , exec__failure, "int");
SDT_PROBE_DEFINE1(proc, , , exec__success, "char *");

MALLOC_DEFINE(M_EXEC, "exec_args", "arguments of execve");

#define MAXINTERP 2 /* a script's interpreter may be a script, whose interpreter may not */

int kern_execve_init(struct thread *td, const char *path);

static void
exec_alloc_args(struct image_args *args)
{
	bzero(args, sizeof(*args));
	args->buf = args->endp = malloc(ARG_MAX, M_EXEC, M_WAITOK);
}

static void
exec_free_args(struct image_args *args)
{
	free(args->buf, M_EXEC);
}

/* Adds a string at the end; E2BIG if there is no room. */
int
exec_args_add_str(struct image_args *args, const char *s, enum uio_seg segflg, int *countp)
{
	size_t room = args->buf + ARG_MAX - args->endp, n;
	int error = 0;

	if (segflg == UIO_SYSSPACE) {
		n = strlcpy(args->endp, s, room) + 1;
		if (n > room)
			return (E2BIG);
	} else if ((error = copyinstr(s, args->endp, room, &n)) != 0)
		return (error == ENAMETOOLONG ? E2BIG : error);
	args->endp += n;
	(*countp)++;
	return (0);
}

/* Puts a string before the others. */
int
exec_args_prepend(struct image_args *args, const char *s)
{
	size_t n = strlen(s) + 1;

	if (args->endp + n > args->buf + ARG_MAX)
		return (E2BIG);
	memmove(args->buf + n, args->buf, args->endp - args->buf);
	memcpy(args->buf, s, n);
	args->endp += n;
	args->begin_envv += n;
	args->argc++;
	return (0);
}

/* Drops the first argument. */
void
exec_args_shift(struct image_args *args)
{
	size_t n = strlen(args->buf) + 1;

	memmove(args->buf, args->buf + n, args->endp - args->buf - n);
	args->endp -= n;
	args->begin_envv -= n;
	args->argc--;
}

static int
exec_copyin_strings(struct image_args *args, char **vector, int *countp)
{
	unsigned long s;
	int error;

	for (;; vector++) {
		if ((error = fuword(vector, &s)) != 0)
			return (error);
		if (s == 0)
			return (0);
		if ((error = exec_args_add_str(args, (const char *)s, UIO_USERSPACE, countp)) != 0)
			return (error);
	}
}

static int
exec_copyin_args(struct image_args *args, char *fname, char **argv, char **envv)
{
	int error;

	exec_alloc_args(args);
	args->fname = fname;
	args->fname_seg = UIO_USERSPACE;
	error = argv == NULL ? EFAULT : exec_copyin_strings(args, argv, &args->argc);
	args->begin_envv = args->endp;
	if (error == 0 && envv != NULL)
		error = exec_copyin_strings(args, envv, &args->envc);
	return (error);
}

static int
exec_check_permissions(struct image_params *imgp)
{
	int error = VOP_GETATTR(imgp->vp, &imgp->attr);

	if (error != 0)
		return (error);
	if (imgp->attr.va_type != VREG || !(imgp->attr.va_mode & 0111))
		return (EACCES);
	return (imgp->attr.va_size == 0 ? ENOEXEC : 0);
}

static int
exec_map_first_page(struct image_params *imgp)
{
	paddr_t pa;
	int error = VOP_GETPAGE(imgp->vp, 0, &pa);

	if (error == 0)
		imgp->image_header = PHYS_TO_DMAP(pa);
	return (error);
}

static void
exec_unmap_first_page(struct image_params *imgp)
{
	if (imgp->image_header != NULL)
		vm_page_unref(DMAP_TO_PHYS(imgp->image_header));
	imgp->image_header = NULL;
}

/*
 * The new address space's stack: the program's path and the strings at the top, then the auxiliary vector, envp[], argv[] and argc,
 * as every ABI starts.
 */
static int
exec_copyout_strings(struct image_params *imgp, struct image_args *args, const char *path, vaddr_t *sp, vaddr_t *argvp, vaddr_t *envp)
{
	size_t size = args->endp - args->buf;
	vaddr_t execpath = USRSTACK - roundup2(strlen(path) + 1, 16);
	vaddr_t strings = execpath - roundup2(size, 16);
	vaddr_t vectp = rounddown2(strings - (1 + args->argc + 1 + args->envc + 1 + AUXV_WORDS) * sizeof(long), 16);
	unsigned long *vector = (unsigned long *)vectp, auxv[AUXV_WORDS];
	const char *s = args->buf;
	int error;

	if ((error = copyout(path, (void *)execpath, strlen(path) + 1)) != 0 ||
	    (error = copyout(args->buf, (void *)strings, size)) != 0)
		return (error);
	*sp = vectp;
	error = suword(vector++, args->argc);
	*argvp = (vaddr_t)vector;
	for (int i = 0; i < args->argc + args->envc && error == 0; i++) {
		if (i == args->argc) {
			error = suword(vector++, 0);
			*envp = (vaddr_t)vector;
		}
		if (error == 0)
			error = suword(vector++, strings + (s - args->buf));
		s += strlen(s) + 1;
	}
	if (args->envc == 0 && error == 0) {
		error = suword(vector++, 0);
		*envp = (vaddr_t)vector;
	}
	if (error != 0 || (error = suword(vector++, 0)) != 0)
		return (error);
	exec_elf64_auxv(imgp, execpath, auxv);
	return (copyout(auxv, vector, sizeof(auxv)));
}

/* Whatever can fail has been done: the old address space goes. */
static int
exec_new_vmspace(struct image_params *imgp)
{
	struct proc *p = imgp->proc;

	vmspace_exec_release(p);
	p->p_vmspace = imgp->newvm;
	p->p_pmap = &imgp->newvm->vm_pmap;
	pmap_activate(p->p_pmap);
	if (p->p_flag & P_PPWAIT) {
		p->p_flag &= ~P_PPWAIT;
		wakeup(&p->p_flag);
	}
	return (0);
}

static const char *
exec_basename(const char *path)
{
	const char *base = path;

	for (; *path != '\0'; path++)
		if (*path == '/')
			base = path + 1;
	return (base);
}

/* Opens the program: 0 and a referenced vnode with its first page, or an error and nothing. */
int
exec_open(struct image_params *imgp, const char *fname, enum uio_seg segflg)
{
	struct nameidata nd;
	int error;

	NDINIT(&nd, LOOKUP, FOLLOW, segflg, fname);
	if ((error = namei(&nd)) != 0)
		return (error);
	NDFREE_PNBUF(&nd);
	imgp->vp = nd.ni_vp;
	if ((error = exec_check_permissions(imgp)) == 0 && (error = exec_map_first_page(imgp)) == 0)
		return (0);
	vrele(imgp->vp);
	imgp->vp = NULL;
	return (error);
}

void
exec_close(struct image_params *imgp)
{
	exec_unmap_first_page(imgp);
	vrele(imgp->vp);
	imgp->vp = NULL;
}

static int
do_execve(struct thread *td, struct image_args *args)
{
	struct proc *p = td->td_proc;
	struct image_params *imgp = malloc(sizeof(*imgp), M_EXEC, M_WAITOK | M_ZERO);
	const char *fname = args->fname, *asked;
	enum uio_seg segflg = args->fname_seg;
	char name[MAXCOMLEN + 1], path[PATH_MAX], script[PATH_MAX];
	vaddr_t sp, argv, envp = 0;
	int error;

	imgp->proc = p;
	if (segflg == UIO_USERSPACE) {
		if ((error = copyinstr(fname, path, sizeof(path), NULL)) != 0)
			goto fail;
		fname = path;
	}
	asked = fname;
	strlcpy(name, exec_basename(fname), sizeof(name));
	CPU_STATS_ADD(sysinfo, sysexec, 1);
	SDT_PROBE1(proc, , , exec, asked);
	for (int depth = 0;; depth++) {
		if ((error = exec_open(imgp, fname, UIO_SYSSPACE)) != 0)
			goto fail;
		error = exec_shell_imgact(imgp, args, fname);
		if (error != 0)
			break;
		/* A script: its interpreter is run instead, with the script's path for its argument. */
		exec_close(imgp);
		if (depth == MAXINTERP) {
			error = ENOEXEC;
			goto fail;
		}
		strlcpy(script, imgp->interpreter_name, sizeof(script));
		fname = script;
	}
	if (error == -1) {
		error = ENOMEM;
		if ((imgp->newvm = vmspace_alloc()) != NULL)
			error = exec_elf64_imgact(imgp);
	}
	if (error == -1)
		error = ENOEXEC;
	exec_unmap_first_page(imgp);
	if (error != 0)
		goto fail;

	thread_single(td);
	vm_map_sharedpage(imgp->newvm);
	exec_new_vmspace(imgp);
	imgp->newvm = NULL;
	if (exec_copyout_strings(imgp, args, fname, &sp, &argv, &envp) != 0)
		sigexit(td, SIGSEGV); /* there is no old program to return to */
	fdcloseexec(td);
	execsigs(p);
	if (p->p_textvp != NULL) {
		p->p_textvp->v_textcount--;
		vrele(p->p_textvp);
	}
	p->p_textvp = imgp->vp;
	p->p_textvp->v_textcount++;
	strlcpy(p->p_comm, name, sizeof(p->p_comm));
	strlcpy(td->td_name, name, sizeof(td->td_name));
	proc_set_args(p, args->buf, args->begin_envv - args->buf);
	p->p_psstrings = (struct ps_strings){ argv, args->argc, envp, args->envc };
	cpu_exec_setregs(td->td_frame, imgp->interp_base != 0 ? imgp->interp_entry : imgp->entry_addr, sp, args->argc, argv, envp);
	dtrace_fasttrap_exec(p);
	free(imgp, M_EXEC);
	SDT_PROBE1(proc, , , exec__success, asked);
	return (0);

fail:
	if (imgp->newvm != NULL)
		vmspace_free(imgp->newvm);
	if (imgp->vp != NULL)
		vrele(imgp->vp);
	free(imgp, M_EXEC);
	SDT_PROBE1(proc, , , exec__failure, error);
	return (error);
}

static int
kern_execve(struct thread *td, struct image_args *args)
{
	int error;

	td->td_proc->p_flag |= P_INEXEC;
	error = do_execve(td, args);
	td->td_proc->p_flag &= ~P_INEXEC;
	exec_free_args(args);
	return (error == 0 ? EJUSTRETURN : error);
}

int
sys_execve(struct thread *td, struct execve_args *uap)
{
	struct image_args args;
	int error = exec_copyin_args(&args, (char *)uap->fname, uap->argv, uap->envv);

	if (error != 0) {
		exec_free_args(&args);
		return (error);
	}
	return (kern_execve(td, &args));
}

/* Process 1's first program: the strings are the kernel's. */
int
kern_execve_init(struct thread *td, const char *path)
{
	struct image_args args;
	int error;

	exec_alloc_args(&args);
	args.fname = (char *)path;
	args.fname_seg = UIO_SYSSPACE;
	exec_args_add_str(&args, path, UIO_SYSSPACE, &args.argc);
	args.begin_envv = args.endp;
	exec_args_add_str(&args, "PATH=/bin:/sbin:/usr/bin", UIO_SYSSPACE, &args.envc);
	error = kern_execve(td, &args);
	return (error == EJUSTRETURN ? 0 : error);
}
