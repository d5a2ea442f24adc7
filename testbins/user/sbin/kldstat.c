/* kldstat: what is loaded into the kernel; -v: with the modules, -n name: of one file */
#include "libc.h"
#include "sys/linker.h"

static void
print_modules(int fileid)
{
	struct module_stat stat;

	printf("\tContains modules:\n\t\t Id Name\n");
	for (int modid = kldfirstmod(fileid); modid > 0; modid = modfnext(modid)) {
		stat.version = sizeof(stat);
		if (modstat(modid, &stat) != 0)
			warn("can't stat module id %d", modid);
		else
			printf("\t\t%3d %s\n", stat.id, stat.name);
	}
}

static int
print_file(int fileid, int verbose)
{
	static struct kld_file_stat stat;

	stat.version = sizeof(stat);
	if (kldstat(fileid, &stat) != 0) {
		warn("can't stat file id %d", fileid);
		return (1);
	}
	printf("%2d %4d 0x%lx %8lx %s", stat.id, stat.refs, (unsigned long)stat.address, (unsigned long)stat.size, stat.name);
	if (verbose)
		printf(" (%s)", stat.pathname);
	printf("\n");
	if (verbose)
		print_modules(fileid);
	return (0);
}

int
main(int argc, char *argv[])
{
	int verbose = 0, one = 0, status = 0, i = 1;

	if (i < argc && strcmp(argv[i], "-v") == 0)
		verbose = i++;
	if (i + 1 < argc && strcmp(argv[i], "-n") == 0) {
		if ((one = kldfind(argv[i + 1])) < 0)
			err(1, "can't find file %s", argv[i + 1]);
		i += 2;
	}
	if (i != argc)
		errx(1, "usage: kldstat [-v] [-n name]");
	printf("Id Refs Address                Size Name\n");
	if (one)
		return (print_file(one, verbose));
	for (int id = kldnext(0); id > 0; id = kldnext(id))
		status |= print_file(id, verbose);
	return (status);
}
