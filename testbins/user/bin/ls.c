/* ls [-al] [file ...]: names in order, one to a line */
#include "libc.h"

static bool all, longform;

static int
compare(const void *a, const void *b)
{
	return (strcmp(*(char *const *)a, *(char *const *)b));
}

static void
print(const char *path, const char *name)
{
	static const char *const bits[] = { "---", "--x", "-w-", "-wx", "r--", "r-x", "rw-", "rwx" };
	struct stat st;
	char type;

	if (!longform) {
		puts(name);
		return;
	}
	if (stat(path, &st) != 0) {
		warn("%s", path);
		return;
	}
	type = S_ISDIR(st.st_mode) ? 'd' : (st.st_mode & S_IFMT) == S_IFCHR ? 'c' : '-';
	printf("%c%s%s%s %2u %8ju %s\n", type, bits[st.st_mode >> 6 & 7], bits[st.st_mode >> 3 & 7], bits[st.st_mode & 7],
	    st.st_nlink, (uint64_t)st.st_size, name);
}

static int
list(const char *path)
{
	char buffer[BUFSIZ], **names = NULL, name[512];
	int fd = open(path, O_RDONLY | O_DIRECTORY);
	size_t count = 0;
	ssize_t n;

	if (fd < 0) {
		warn("%s", path);
		return (1);
	}
	while ((n = getdirentries(fd, buffer, sizeof(buffer), NULL)) > 0)
		for (ssize_t at = 0; at < n;) {
			struct dirent *d = (struct dirent *)(buffer + at);

			at += d->d_reclen;
			if (!all && d->d_name[0] == '.')
				continue;
			if (count % 32 == 0 && (names = realloc(names, (count + 32) * sizeof(*names))) == NULL)
				err(1, "malloc");
			names[count++] = strdup(d->d_name);
		}
	if (n < 0)
		warn("%s", path);
	close(fd);
	qsort(names, count, sizeof(*names), compare);
	for (size_t i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "%s/%s", path, names[i]);
		print(name, names[i]);
		free(names[i]);
	}
	free(names);
	return (n < 0);
}

int
main(int argc, char *argv[])
{
	struct stat st;
	int i = 1, status = 0;

	for (; i < argc && argv[i][0] == '-'; i++)
		for (const char *c = argv[i] + 1; *c != '\0'; c++)
			if (*c == 'a')
				all = true;
			else if (*c == 'l')
				longform = true;
			else
				errx(1, "no such option: -%c", *c);
	if (i == argc)
		return (list("."));
	for (int first = i; i < argc; i++) {
		if (stat(argv[i], &st) != 0) {
			warn("%s", argv[i]);
			status = 1;
		} else if (!S_ISDIR(st.st_mode))
			print(argv[i], argv[i]);
		else {
			if (argc - first > 1)
				printf("%s:\n", argv[i]);
			status |= list(argv[i]);
		}
	}
	return (status);
}
