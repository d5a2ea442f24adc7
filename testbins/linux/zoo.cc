/* The zoo: programs for probes to look at, one executable. The name it is called by, or else the first argument, picks the case. */
#include "zoo.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

namespace {

struct Case {
	const char *name;
	int (*run)(int argc, char **argv);
};

/* `child` is what the case `processes` executes. */
const Case cases[] = {
	{"args", case_args},
	{"asm", case_asm},
	{"child", case_child},
	{"cxx", case_cxx},
	{"divide", case_divide},
	{"files", case_files},
	{"markers", case_markers},
	{"memory", case_memory},
	{"plugin", case_plugin},
	{"processes", case_processes},
	{"recursion", case_recursion},
	{"setjmp", case_setjmp},
	{"signals", case_signals},
	{"switchcase", case_switchcase},
	{"tailcalls", case_tailcalls},
	{"threads", case_threads},
};

const char *program;

const Case *
find(const char *name)
{
	for (const Case &one : cases)
		if (!strcmp(one.name, name))
			return &one;
	return nullptr;
}

} // namespace

const char *
self()
{
	return strchr(program, '/') ? program : "/proc/self/exe";
}

void
say(const char *format, ...)
{
	char line[512];
	va_list arguments;
	va_start(arguments, format);
	int length = vsnprintf(line, sizeof line - 1, format, arguments);
	va_end(arguments);
	if (length < 0 || length > static_cast<int>(sizeof line) - 2)
		fail("say: line too long");
	line[length++] = '\n';
	if (write(STDOUT_FILENO, line, length) != length)
		_exit(1);
}

void
fail(const char *what)
{
	say("failed: %s", what);
	_exit(1);
}

int
main(int argc, char **argv)
{
	program = argv[0];
	const char *slash = strrchr(argv[0], '/');
	if (const Case *one = find(slash ? slash + 1 : argv[0]))
		return one->run(argc, argv);
	if (argc < 2) {
		for (const Case &one : cases)
			say("%s", one.name);
		return 0;
	}
	const Case *one = find(argv[1]);
	if (!one) {
		say("%s: no such case", argv[1]);
		return 2;
	}
	return one->run(argc - 1, argv + 1);
}
