/* A program about to be run (FreeBSD sys/sys/imgact.h). */
#ifndef SYS_IMGACT_H
#define SYS_IMGACT_H

#include "sys/elf64.h"
#include "sys/types.h"
#include "sys/vnode.h"

struct vmspace;

/* Argument and environment strings, each with its NUL, arguments first. */
struct image_args {
	char *buf;	/* ARG_MAX bytes, then room for a path and an interpreter line */
	char *endp;	/* first free */
	char *begin_envv;
	char *fname;
	enum uio_seg fname_seg;
	int argc, envc;
};

#define IMAGE_HEADER 4096

struct image_params {
	struct proc *proc;
	struct vnode *vp;
	struct vattr attr;
	const char *image_header;	 /* first page of the file */
	struct vmspace *newvm;
	vaddr_t entry_addr;
	vaddr_t reloc_base;		 /* what is added to the file's own addresses */
	vaddr_t top;			 /* end of the highest segment */
	vaddr_t interp_base;		 /* where the run-time linker is; 0: the program needs none */
	vaddr_t interp_entry;
	vaddr_t phdr;			 /* the program's headers, in its memory */
	uint64_t phnum;
	char interpreter_name[PATH_MAX]; /* of a script; "" for a program */
};

#define AUXV_WORDS 18 /* of the auxiliary vector, its end included */

int exec_elf64_imgact(struct image_params *imgp);   /* -1: not for us */
void exec_elf64_auxv(const struct image_params *imgp, vaddr_t execpath, unsigned long auxv[AUXV_WORDS]);
int exec_open(struct image_params *imgp, const char *fname, enum uio_seg segflg); /* 0 and a referenced vnode with its first page */
void exec_close(struct image_params *imgp);
int exec_shell_imgact(struct image_params *imgp, struct image_args *args, const char *fname);
void exec_args_shift(struct image_args *args);
int exec_args_prepend(struct image_args *args, const char *s);
int exec_args_add_str(struct image_args *args, const char *s, enum uio_seg segflg, int *countp);

#endif
