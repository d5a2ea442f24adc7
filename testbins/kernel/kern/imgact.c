/* What a file to be run may be: an ELF program, or a script (FreeBSD sys/kern/imgact_elf.c, imgact_shell.c). */
#include "sys/elf64.h"
#include "sys/imgact.h"
#include "sys/systm.h"
#include "sys/vm.h"

static bool
elf64_check_header(const struct elf64_ehdr *hdr, off_t size)
{
	return (size >= (off_t)sizeof(*hdr) && memcmp(hdr->e_ident, ELF64_IDENT, sizeof(ELF64_IDENT) - 1) == 0 &&
	    hdr->e_machine == ELF_MACHINE && hdr->e_type == ET_EXEC && hdr->e_phentsize == sizeof(struct elf64_phdr) &&
	    hdr->e_phoff + hdr->e_phnum * sizeof(struct elf64_phdr) <= IMAGE_HEADER);
}

static int
elf64_prot(uint32_t flags)
{
	return ((flags & PF_R ? PROT_READ : 0) | (flags & PF_W ? PROT_WRITE : 0) | (flags & PF_X ? PROT_EXEC : 0));
}

static int
elf64_load_section(struct image_params *imgp, const struct elf64_phdr *phdr)
{
	vaddr_t start = rounddown2(phdr->p_vaddr, PAGE_SIZE), end = roundup2(phdr->p_vaddr + phdr->p_memsz, PAGE_SIZE);
	off_t slack = phdr->p_vaddr - start;

	if ((phdr->p_offset & PAGE_MASK) != (uint64_t)slack || phdr->p_filesz > phdr->p_memsz || start < USER_BASE ||
	    (off_t)(phdr->p_offset + phdr->p_filesz) > imgp->attr.va_size)
		return (ENOEXEC);
	imgp->top = MAX(imgp->top, end);
	return (vm_map_insert(imgp->newvm, start, end, elf64_prot(phdr->p_flags), 0, imgp->vp, phdr->p_offset - slack, phdr->p_filesz + slack));
}

int
exec_elf64_imgact(struct image_params *imgp)
{
	const struct elf64_ehdr *hdr = (const struct elf64_ehdr *)imgp->image_header;
	const struct elf64_phdr *phdr = (const struct elf64_phdr *)(imgp->image_header + hdr->e_phoff);
	struct vmspace *vm = imgp->newvm;
	int error;

	if (!elf64_check_header(hdr, imgp->attr.va_size))
		return (-1);
	for (int i = 0; i < hdr->e_phnum; i++)
		if (phdr[i].p_type == PT_LOAD && phdr[i].p_memsz > 0 && (error = elf64_load_section(imgp, &phdr[i])) != 0)
			return (error);
	imgp->entry_addr = hdr->e_entry;
	vm->vm_daddr = vm->vm_break = imgp->top;
	return (vm_map_insert(vm, USRSTACK - PAGE_SIZE, USRSTACK, PROT_READ | PROT_WRITE, MAP_ENTRY_GROWS_DOWN, NULL, 0, 0));
}

/* "#!interpreter": 0 with its name, and the arguments now the interpreter, fname, and those after the first; -1 if it is no script. */
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
