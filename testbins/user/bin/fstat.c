/* fstat [-p pid]: who has which files open */
#include "libc.h"
#include "sys/file.h"
#include "sys/xfile.h"

static const char *
owner(uid_t uid, char *buffer, size_t size)
{
	if (uid == 0)
		return ("root");
	snprintf(buffer, size, "%u", uid);
	return (buffer);
}

static void
print_fd(int fd)
{
	static const char *const names[] = { [-XF_TEXT] = "text", [-XF_CDIR] = "wd", [-XF_RDIR] = "root" };

	if (fd < 0)
		printf(" %4s", names[-fd]);
	else
		printf(" %4d", fd);
}

static void
print_mode(uint32_t mode)
{
	static const char letters[] = "rwxrwxrwx";

	printf(" %c", S_ISDIR(mode) ? 'd' : (mode & S_IFMT) == S_IFCHR ? 'c' : '-');
	for (int i = 0; i < 9; i++)
		putchar(mode & (0400 >> i) ? letters[i] : '-');
}

static void
print(const struct xfile *xf)
{
	char number[12];
	bool device = (xf->xf_mode & S_IFMT) == S_IFCHR;

	printf("%-8s %-10s %5d", owner(xf->xf_uid, number, sizeof(number)), xf->xf_comm, xf->xf_pid);
	print_fd(xf->xf_fd);
	if (xf->xf_type == DTYPE_PIPE)
		printf("* pipe %jx", xf->xf_data);
	else {
		printf(" %-8s %6ju", device ? "/dev" : "/", xf->xf_fileid);
		print_mode(xf->xf_mode);
		if (device)
			printf(" %13s", xf->xf_device);
		else
			printf(" %13ju", xf->xf_size);
		printf(" %s%s", xf->xf_flag & FREAD ? "r" : "", xf->xf_flag & FWRITE ? "w" : "");
	}
	putchar('\n');
}

/* The table may grow between the question for its size and the one for it. */
static struct xfile *
table(size_t *count)
{
	static const char name[] = "kern.file";
	struct xfile *files = NULL;
	size_t size = 0;

	for (;;) {
		if (__sysctlbyname(name, sizeof(name) - 1, files, &size, NULL, 0) == 0 && files != NULL)
			break;
		if (files != NULL && errno != ENOMEM)
			err(1, "%s", name);
		size += 16 * sizeof(*files);
		if ((files = realloc(files, size)) == NULL)
			err(1, "malloc");
	}
	*count = size / sizeof(*files);
	return (files);
}

int
main(int argc, char *argv[])
{
	pid_t pid = 0;
	size_t count;
	struct xfile *files;

	if (argc == 3 && strcmp(argv[1], "-p") == 0)
		pid = atol(argv[2]);
	else if (argc != 1)
		errx(1, "usage: fstat [-p pid]");
	files = table(&count);
	printf("USER     CMD          PID   FD MOUNT      INUM MODE               SZ|DV R/W\n");
	for (size_t i = 0; i < count; i++)
		if (pid == 0 || files[i].xf_pid == pid)
			print(&files[i]);
	return (0);
}
