/* What a file to be run may be: an ELF program, or a script (FreeBSD sys/kern/imgact_elf.c, imgact_shell.c). */
#include "sys/elf64.h"
#include "sys/imgact.h"
#include "sys/systm.h"
#include "sys/vm.h"

#define ET_DYN_LOAD_ADDR 0x1021000 /* of a position independent program: amd64's, on all */

static const struct elf64_ehdr *
elf64_header(const struct image_params *imgp)
{
	return ((const struct elf64_ehdr *)imgp->image_header);
}

static const struct elf64_phdr *
elf64_phdrs(const struct image_params *imgp)
{
	return ((const struct elf64_phdr *)(imgp->image_header + elf64_header(imgp)->e_phoff));
}

static bool
elf64_check_header(const struct image_params *imgp)
{
	const struct elf64_ehdr *hdr = elf64_header(imgp);

	return (imgp->attr.va_size >= (off_t)sizeof(*hdr) && memcmp(hdr->e_ident, ELF64_IDENT, sizeof(ELF64_IDENT) - 1) == 0 &&
	    hdr->e_machine == ELF_MACHINE && (hdr->e_type == ET_EXEC || hdr->e_type == ET_DYN) &&
	    hdr->e_phentsize == sizeof(struct elf64_phdr) && hdr->e_phoff + hdr->e_phnum * sizeof(struct elf64_phdr) <= IMAGE_HEADER);
}

static int
elf64_prot(uint32_t flags)
{
	return ((flags & PF_R ? PROT_READ : 0) | (flags & PF_W ? PROT_WRITE : 0) | (flags & PF_X ? PROT_EXEC : 0));
}

static int
elf64_load_section(struct image_params *imgp, const struct elf64_phdr *phdr)
{
	vaddr_t vaddr = phdr->p_vaddr + imgp->reloc_base;
	vaddr_t start = rounddown2(vaddr, PAGE_SIZE), end = roundup2(vaddr + phdr->p_memsz, PAGE_SIZE);
	off_t slack = vaddr - start;

	if ((phdr->p_offset & PAGE_MASK) != (uint64_t)slack || phdr->p_filesz > phdr->p_memsz || start < USER_BASE ||
	    (off_t)(phdr->p_offset + phdr->p_filesz) > imgp->attr.va_size)
		return (ENOEXEC);
	if (phdr->p_offset == 0)
		imgp->phdr = start + elf64_header(imgp)->e_phoff;
	imgp->top = MAX(imgp->top, end);
	return (vm_map_insert(imgp->newvm, start, end, elf64_prot(phdr->p_flags), 0, imgp->vp, phdr->p_offset - slack, phdr->p_filesz + slack));
}

/* The segments of a program, or of its interpreter. */
static int
elf64_load_sections(struct image_params *imgp, vaddr_t base)
{
	const struct elf64_ehdr *hdr = elf64_header(imgp);
	const struct elf64_phdr *phdr = elf64_phdrs(imgp);
	int error;

	imgp->reloc_base = hdr->e_type == ET_DYN ? base : 0;
	for (int i = 0; i < hdr->e_phnum; i++)
		if (phdr[i].p_type == PT_LOAD && phdr[i].p_memsz > 0 && (error = elf64_load_section(imgp, &phdr[i])) != 0)
			return (error);
	imgp->entry_addr = hdr->e_entry + imgp->reloc_base;
	imgp->phnum = hdr->e_phnum;
	return (0);
}

/* The interpreter goes above all the heap may ever take, where mmap begins. */
static int
elf64_load_interp(struct image_params *imgp, const char *path)
{
	struct image_params interp = { .newvm = imgp->newvm };
	int error = exec_open(&interp, path, UIO_SYSSPACE);

	if (error != 0)
		return (error);
	error = elf64_check_header(&interp) ? elf64_load_sections(&interp, VM_MMAP_BASE) : ENOEXEC;
	imgp->interp_base = interp.reloc_base;
	imgp->interp_entry = interp.entry_addr;
	exec_close(&interp);
	return (error);
}

/* The path of the interpreter a program names, NULL if it names none; ENOEXEC if it cannot be read. */
static int
elf64_get_interp(const struct image_params *imgp, const char **path)
{
	const struct elf64_phdr *phdr = elf64_phdrs(imgp);

	*path = NULL;
	for (int i = 0; i < elf64_header(imgp)->e_phnum; i++) {
		if (phdr[i].p_type != PT_INTERP)
			continue;
		if (phdr[i].p_filesz == 0 || phdr[i].p_offset + phdr[i].p_filesz > IMAGE_HEADER ||
		    imgp->image_header[phdr[i].p_offset + phdr[i].p_filesz - 1] != '\0')
			return (ENOEXEC);
		*path = imgp->image_header + phdr[i].p_offset;
	}
	return (0);
}

int
exec_elf64_imgact(struct image_params *imgp)
{
	struct vmspace *vm = imgp->newvm;
	const char *interp;
	int error;

	if (!elf64_check_header(imgp))
		return (-1);
	if ((error = elf64_load_sections(imgp, ET_DYN_LOAD_ADDR)) != 0 || (error = elf64_get_interp(imgp, &interp)) != 0 ||
	    (interp != NULL && (error = elf64_load_interp(imgp, interp)) != 0))
		return (error);
	vm->vm_daddr = vm->vm_break = imgp->top;
	return (vm_map_insert(vm, USRSTACK - PAGE_SIZE, USRSTACK, PROT_READ | PROT_WRITE, MAP_ENTRY_GROWS_DOWN, NULL, 0, 0));
}

/* The auxiliary vector of the program, or of its interpreter (FreeBSD's order). */
void
exec_elf64_auxv(const struct image_params *imgp, vaddr_t execpath, unsigned long auxv[AUXV_WORDS])
{
	const unsigned long words[AUXV_WORDS] = {
		AT_PHDR, imgp->phdr, AT_PHENT, sizeof(struct elf64_phdr), AT_PHNUM, imgp->phnum, AT_PAGESZ, PAGE_SIZE,
		AT_FLAGS, 0, AT_ENTRY, imgp->entry_addr, AT_BASE, imgp->interp_base, AT_EXECPATH, execpath, AT_NULL, 0,
	};

	memcpy(auxv, words, sizeof(words));
}

/* "#!interpreter": 0 with its name, and the arguments now the interpreter, fname, and those after the first; -1 if it is not a script. */
int
exec_shell_imgact(struct image_params *imgp, struct image_args *args, const char *fname)
{
	const char *s = imgp->image_header;
	size_t end = MIN((size_t)imgp->attr.va_size, IMAGE_HEADER), i = 2, n = 0;
	int error;

	if (end < 3 || s[0] != '#' || s[1] != '!')
		return (-1);
	while (i < end && s[i] == ' ')
		i++;
	while (i < end && s[i] != ' ' && s[i] != '\n' && n < PATH_MAX - 1)
		imgp->interpreter_name[n++] = s[i++];
	imgp->interpreter_name[n] = '\0';
	if (n == 0)
		return (ENOEXEC);
	if (args->argc > 0)
		exec_args_shift(args);
	error = exec_args_prepend(args, fname);
	return (error != 0 ? error : exec_args_prepend(args, imgp->interpreter_name));
}
