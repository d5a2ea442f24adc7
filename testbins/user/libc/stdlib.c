/* Starting, ending, and the rest. */
#include "libc.h"

#define ATEXIT_MAX 8

char **environ;
static const char *progname = "?";
static void (*at_exit[ATEXIT_MAX])(void);
static int nat_exit;

pid_t __fork(void);
void __libc_start1(int argc, char *argv[], char *envp[], void (*cleanup)(void), int (*program)(int, char *[])) __dead2;

/* crt1 calls this; of a program that is linked statically there is no cleanup. */
void
__libc_start1(int argc, char *argv[], char *envp[], void (*cleanup)(void), int (*program)(int, char *[]))
{
	environ = envp;
	if (argc > 0)
		progname = basename(argv[0]);
	if (cleanup != NULL)
		atexit(cleanup);
	exit(program(argc, argv));
}

int
atexit(void (*function)(void))
{
	if (nat_exit == ATEXIT_MAX) {
		errno = ENOMEM;
		return (-1);
	}
	at_exit[nat_exit++] = function;
	return (0);
}

void
exit(int status)
{
	while (nat_exit > 0)
		at_exit[--nat_exit]();
	fflush();
	_exit(status);
}

const char *
getprogname(void)
{
	return (progname);
}

/* The child must not print again what is in the buffer. */
pid_t
fork(void)
{
	fflush();
	return (__fork());
}

pid_t
wait(int *status)
{
	return (wait4(-1, status, 0, NULL));
}

int
stat(const char *path, struct stat *status)
{
	return (fstatat(AT_FDCWD, path, status, 0));
}

int
pipe(int fds[2])
{
	return (pipe2(fds, 0));
}

int
usleep(unsigned microseconds)
{
	struct timespec time = { microseconds / 1000000, microseconds % 1000000 * 1000 };

	return (nanosleep(&time, NULL));
}

unsigned
sleep(unsigned seconds)
{
	struct timespec time = { seconds, 0 }, left = { 0, 0 };

	return (nanosleep(&time, &left) == 0 ? 0 : left.tv_sec);
}

long
atol(const char *s)
{
	bool negative = *s == '-';
	long n = 0;

	for (s += negative; *s >= '0' && *s <= '9'; s++)
		n = n * 10 + *s - '0';
	return (negative ? -n : n);
}

static const char *
getenv_path(void)
{
	for (char **env = environ; env != NULL && *env != NULL; env++)
		if (strncmp(*env, "PATH=", 5) == 0)
			return (*env + 5);
	return ("/bin:/sbin:/usr/bin");
}

int
execvp(const char *file, char *const argv[])
{
	const char *path = getenv_path(), *end;
	char name[256];

	if (strchr(file, '/') != NULL)
		return (execve(file, argv, environ));
	for (;; path = end + 1) {
		for (end = path; *end != ':' && *end != '\0'; end++)
			continue;
		snprintf(name, sizeof(name), "%.*s/%s", (int)(end - path), path, file);
		execve(name, argv, environ);
		if (errno != ENOENT || *end == '\0')
			return (-1);
	}
}

/* Insertion by halves; stable, and quick enough for the lines of a small file. */
void
qsort(void *base, size_t n, size_t size, int (*compare)(const void *, const void *))
{
	char *items = base, item[64];

	if (size > sizeof(item))
		errx(EXIT_FAILURE, "qsort: items of %zu bytes", size);
	for (size_t i = 1; i < n; i++) {
		size_t low = 0, high = i;

		memcpy(item, items + i * size, size);
		while (low < high) {
			size_t middle = (low + high) / 2;

			if (compare(item, items + middle * size) < 0)
				high = middle;
			else
				low = middle + 1;
		}
		memmove(items + (low + 1) * size, items + low * size, (i - low) * size);
		memcpy(items + low * size, item, size);
	}
}

char *
strstr(const char *s, const char *wanted)
{
	size_t n = strlen(wanted);

	for (;; s++) {
		if (strncmp(s, wanted, n) == 0)
			return ((char *)s);
		if (*s == '\0')
			return (NULL);
	}
}

char *
strdup(const char *s)
{
	size_t size = strlen(s) + 1;
	char *copy = malloc(size);

	return (copy != NULL ? memcpy(copy, s, size) : NULL);
}
