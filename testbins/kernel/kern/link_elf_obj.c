/* Relocatable ELF files as kernel files (FreeBSD sys/kern/link_elf_obj.c). */
#include "sys/fcntl.h"
#include "sys/linker.h"
#include "sys/malloc.h"
#include "sys/systm.h"
#include "sys/vm.h"
#include "sys/vnode.h"

MALLOC_DECLARE(M_LINKER);

/* A file while it is being loaded. */
struct elf_file {
	linker_file_t lf;
	uint8_t *image; /* the file */
	size_t image_size;
	const struct elf64_ehdr *hdr;
	const struct elf64_shdr *shdr;
	const char *shstrtab;
	uint8_t **progtab; /* by section: where it was put; NULL: nowhere */
};

static int
link_elf_read(const char *path, uint8_t **image, size_t *size)
{
	struct nameidata nd;
	struct vattr va;
	int flags = FREAD, error;

	NDINIT(&nd, LOOKUP, FOLLOW, UIO_SYSSPACE, path);
	if ((error = vn_open(&nd, &flags, 0, NULL)) != 0)
		return (error);
	if ((error = VOP_GETATTR(nd.ni_vp, &va)) == 0 && va.va_type != VREG)
		error = ENOEXEC;
	if (error == 0 && (va.va_size < (off_t)sizeof(struct elf64_ehdr) || (*image = kmem_malloc(va.va_size)) == NULL))
		error = ENOEXEC;
	if (error == 0) {
		*size = va.va_size;
		if ((error = vn_rdwr(UIO_READ, nd.ni_vp, *image, *size, 0, NULL, curthread)) != 0)
			kmem_free(*image, *size);
	}
	vn_close(nd.ni_vp, flags, curthread);
	return (error);
}

static bool
link_elf_inside(const struct elf_file *ef, uint64_t offset, uint64_t size)
{
	return (offset <= ef->image_size && size <= ef->image_size - offset);
}

/* The file is assumed to be hostile: nothing in it is used before it is checked. */
static int
link_elf_check(struct elf_file *ef)
{
	const struct elf64_ehdr *hdr = ef->hdr = (const struct elf64_ehdr *)ef->image;

	if (memcmp(hdr->e_ident, ELF64_IDENT, sizeof(ELF64_IDENT) - 1) != 0 || hdr->e_type != ET_REL || hdr->e_machine != ELF_MACHINE ||
	    hdr->e_shentsize != sizeof(struct elf64_shdr) || hdr->e_shoff % sizeof(elf_word_t) != 0 || hdr->e_shstrndx >= hdr->e_shnum ||
	    !link_elf_inside(ef, hdr->e_shoff, (uint64_t)hdr->e_shnum * sizeof(struct elf64_shdr)))
		return (ENOEXEC);
	ef->shdr = (const struct elf64_shdr *)(ef->image + hdr->e_shoff);
	for (int i = 0; i < hdr->e_shnum; i++) {
		const struct elf64_shdr *sh = &ef->shdr[i];

		if ((sh->sh_type != SHT_NOBITS && !link_elf_inside(ef, sh->sh_offset, sh->sh_size)) || sh->sh_addralign > PAGE_SIZE ||
		    sh->sh_size > 16 << 20)
			return (ENOEXEC);
	}
	ef->shstrtab = (const char *)ef->image + ef->shdr[hdr->e_shstrndx].sh_offset;
	return (0);
}

/* Text first, on separate pages; then everything else. */
static int
link_elf_place(struct elf_file *ef)
{
	linker_file_t lf = ef->lf;
	size_t at = 0;
	uint8_t *base = NULL;

	for (int pass = 0; pass < 2; pass++) { /* how much, then where */
		at = 0;
		for (int text = 1; text >= 0; text--) {
			for (int i = 0; i < ef->hdr->e_shnum; i++) {
				const struct elf64_shdr *sh = &ef->shdr[i];

				if (!(sh->sh_flags & SHF_ALLOC) || !!(sh->sh_flags & SHF_EXECINSTR) != text || sh->sh_size == 0)
					continue;
				at = roundup2(at, MAX(sh->sh_addralign, 1));
				if (base != NULL) {
					ef->progtab[i] = base + at;
					if (sh->sh_type != SHT_NOBITS)
						memcpy(base + at, ef->image + sh->sh_offset, sh->sh_size);
				}
				at += sh->sh_size;
			}
			at = roundup2(at, PAGE_SIZE);
			if (text)
				lf->text_size = at;
		}
		if (pass == 0) {
			if (at == 0 || (base = kmem_malloc(at)) == NULL)
				return (ENOMEM);
			bzero(base, at);
			lf->address = (vaddr_t)base;
			lf->size = at;
		}
	}
	return (0);
}

/* A copy of the symbol table that stays, with addresses for values. */
static int
link_elf_symbols(struct elf_file *ef)
{
	linker_file_t lf = ef->lf;
	const struct elf64_shdr *sh = NULL, *str;
	char *strtab;

	for (int i = 0; i < ef->hdr->e_shnum; i++)
		if (ef->shdr[i].sh_type == SHT_SYMTAB)
			sh = &ef->shdr[i];
	if (sh == NULL || sh->sh_link >= ef->hdr->e_shnum || sh->sh_size < sizeof(struct elf64_sym))
		return (ENOEXEC);
	str = &ef->shdr[sh->sh_link];
	if (str->sh_size == 0 || ef->image[str->sh_offset + str->sh_size - 1] != '\0')
		return (ENOEXEC);
	lf->nsyms = sh->sh_size / sizeof(struct elf64_sym);
	lf->symtab = malloc(sh->sh_size, M_LINKER, M_WAITOK);
	memcpy(lf->symtab, ef->image + sh->sh_offset, sh->sh_size);
	lf->strtab = strtab = malloc(str->sh_size, M_LINKER, M_WAITOK);
	memcpy(strtab, ef->image + str->sh_offset, str->sh_size);
	for (uint64_t i = 0; i < lf->nsyms; i++) {
		struct elf64_sym *sym = &lf->symtab[i];

		if (sym->st_name >= str->sh_size)
			return (ENOEXEC);
		if (sym->st_shndx == SHN_UNDEF || sym->st_shndx >= SHN_LORESERVE)
			continue;
		if (sym->st_shndx >= ef->hdr->e_shnum)
			return (ENOEXEC);
		sym->st_value = ef->progtab[sym->st_shndx] != NULL ? sym->st_value + (vaddr_t)ef->progtab[sym->st_shndx] : 0;
	}
	return (0);
}

/* The symbols of others get their values from them. */
static int
link_elf_resolve(struct elf_file *ef)
{
	linker_file_t lf = ef->lf;
	int error = 0;

	for (uint64_t i = 1; i < lf->nsyms; i++) {
		struct elf64_sym *sym = &lf->symtab[i];

		if (sym->st_shndx != SHN_UNDEF)
			continue;
		sym->st_value = linker_lookup_symbol(lf, lf->strtab + sym->st_name);
		if (sym->st_value == 0 && ELF64_ST_BIND(sym->st_info) != STB_WEAK) {
			printf("link_elf_obj: symbol %s undefined\n", lf->strtab + sym->st_name);
			error = ENOENT;
		}
	}
	return (error == 0 ? 0 : ENOEXEC);
}

/*
 * In two passes, for what the file depends on is told by its data: first the data's own symbols, then those of others,
 * and the text.
 */
static int
link_elf_relocate(struct elf_file *ef, bool first)
{
	linker_file_t lf = ef->lf;

	for (int i = 0; i < ef->hdr->e_shnum; i++) {
		const struct elf64_shdr *sh = &ef->shdr[i], *target;
		const struct elf64_rela *rela = (const struct elf64_rela *)(ef->image + sh->sh_offset);
		struct elf_reloc_context ctx = { rela, sh->sh_size / sizeof(*rela), NULL, lf->symtab };

		if (sh->sh_type != SHT_RELA || sh->sh_info >= ef->hdr->e_shnum || ef->progtab[sh->sh_info] == NULL)
			continue;
		target = &ef->shdr[sh->sh_info];
		ctx.base = ef->progtab[sh->sh_info];
		for (uint64_t j = 0; j < ctx.count; j++, rela++) {
			uint64_t index = ELF64_R_SYM(rela->r_info);

			if (index >= lf->nsyms || target->sh_size < 2 || rela->r_offset > target->sh_size - 2)
				return (ENOEXEC);
			if ((!(target->sh_flags & SHF_EXECINSTR) && (lf->symtab[index].st_shndx != SHN_UNDEF || index == 0)) != first)
				continue;
			if (elf_reloc(&ctx, ctx.base + rela->r_offset, ELF64_R_TYPE(rela->r_info),
			    lf->symtab[index].st_value + ELF64_R_ADDEND(rela)) != 0) {
				printf("link_elf_obj: cannot relocate type %u of %s\n", ELF64_R_TYPE(rela->r_info),
				    lf->strtab + lf->symtab[index].st_name);
				return (ENOEXEC);
			}
		}
	}
	return (0);
}

/* A linker set of the file: the pointers in it. */
static const void **
link_elf_set(const struct elf_file *ef, const char *name, int *count)
{
	*count = 0;
	for (int i = 0; i < ef->hdr->e_shnum; i++)
		if (ef->progtab[i] != NULL && strcmp(ef->shstrtab + ef->shdr[i].sh_name, name) == 0) {
			*count = ef->shdr[i].sh_size / sizeof(void *);
			return ((const void **)ef->progtab[i]);
		}
	return (NULL);
}

static int
link_elf_dependencies(struct elf_file *ef)
{
	int count, error;
	const struct mod_metadata **set = (const struct mod_metadata **)link_elf_set(ef, "set_modmetadata_set", &count);

	for (int i = 0; i < count; i++)
		if (set[i]->md_type == MDT_DEPEND && (error = linker_load_dependency(ef->lf, set[i]->md_cval)) != 0)
			return (error);
	return (0);
}

static int
link_elf_link(struct elf_file *ef)
{
	linker_file_t lf = ef->lf;
	int error;

	ef->progtab = malloc(ef->hdr->e_shnum * sizeof(*ef->progtab), M_LINKER, M_WAITOK | M_ZERO);
	if ((error = link_elf_place(ef)) != 0 || (error = link_elf_symbols(ef)) != 0 || (error = link_elf_relocate(ef, true)) != 0 ||
	    (error = link_elf_dependencies(ef)) != 0 || (error = link_elf_resolve(ef)) != 0 || (error = link_elf_relocate(ef, false)) != 0)
		return (error);
	lf->sysinits = (const struct sysinit **)link_elf_set(ef, "set_sysinit_set", &lf->nsysinits);
	lf->sysuninits = (const struct sysinit **)link_elf_set(ef, "set_sysuninit_set", &lf->nsysuninits);
	pmap_kprotect(lf->address, lf->text_size, PROT_READ | PROT_EXEC);
	gate_icache_sync((void *)lf->address, lf->text_size);
	return (0);
}

int
link_elf_load_file(const char *path, linker_file_t *result)
{
	struct elf_file ef = { .lf = NULL };
	int error = link_elf_read(path, &ef.image, &ef.image_size);

	if (error != 0)
		return (error);
	if ((error = link_elf_check(&ef)) == 0) {
		ef.lf = linker_make_file(path);
		error = link_elf_link(&ef);
		free(ef.progtab, M_LINKER);
	}
	kmem_free(ef.image, ef.image_size);
	if (error == 0)
		*result = ef.lf;
	else if (ef.lf != NULL)
		linker_file_release(ef.lf);
	if (error == ENOEXEC)
		printf("linker_load_file: %s - unsupported file type\n", path);
	return (error);
}

void
link_elf_unload_file(linker_file_t lf)
{
	if (lf->address != 0) {
		pmap_kprotect(lf->address, lf->text_size, PROT_READ | PROT_WRITE);
		kmem_free((void *)lf->address, lf->size);
	}
	free(lf->symtab, M_LINKER);
	free((void *)lf->strtab, M_LINKER);
}
