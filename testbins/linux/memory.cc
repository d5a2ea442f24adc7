/* Address spaces: mapping, protecting, moving, the break, and copies on write. */
#include "zoo.h"

#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstring>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

constexpr size_t PAGE = 4096;
sigjmp_buf out;

void
on_bad_access(int)
{
	siglongjmp(out, 1);
}

char *
map(void *place, size_t pages, int flags)
{
	void *got = mmap(place, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
	if (got == MAP_FAILED)
		fail("mmap");
	return static_cast<char *>(got);
}

const char *
attempt(bool (*access)(char *), char *place)
{
	if (sigsetjmp(out, 1))
		return "fault";
	return access(place) ? "set" : "clear";
}

} // namespace

PROBEABLE bool
touch_read(char *place)
{
	return *static_cast<volatile char *>(place) != 0;
}

PROBEABLE bool
touch_write(char *place)
{
	*static_cast<volatile char *>(place) = 1;
	return true;
}

int
case_memory(int, char **)
{
	signal(SIGSEGV, on_bad_access);
	signal(SIGBUS, on_bad_access);

	char *area = map(nullptr, 8, 0);
	say("fresh: %s", attempt(touch_read, area + 3 * PAGE));
	memset(area, 'a', 8 * PAGE);
	mprotect(area + PAGE, PAGE, PROT_READ);
	mprotect(area + 2 * PAGE, PAGE, PROT_NONE);
	say("read only: read %s, write %s", attempt(touch_read, area + PAGE), attempt(touch_write, area + PAGE));
	say("none: read %s", attempt(touch_read, area + 2 * PAGE));
	mprotect(area + 2 * PAGE, PAGE, PROT_READ | PROT_WRITE);
	say("again: read %s, is %c", attempt(touch_read, area + 2 * PAGE), area[2 * PAGE]);
	munmap(area + 4 * PAGE, 2 * PAGE);
	say("hole: read %s, before %s, after %s", attempt(touch_read, area + 4 * PAGE), attempt(touch_read, area + 4 * PAGE - 1),
	    attempt(touch_read, area + 6 * PAGE));
	char *fixed = map(area + 4 * PAGE, 1, MAP_FIXED);
	say("fixed: in place %d, read %s", fixed == area + 4 * PAGE, attempt(touch_read, fixed));
	map(area, 1, MAP_FIXED);
	say("fixed over old: read %s", attempt(touch_read, area));

	char *moved = static_cast<char *>(mremap(area + 6 * PAGE, 2 * PAGE, 16 * PAGE, MREMAP_MAYMOVE));
	say("mremap, larger: first %c, last old %c, new %d", moved[0], moved[2 * PAGE - 1], moved[2 * PAGE]);
	moved = static_cast<char *>(mremap(moved, 16 * PAGE, PAGE, 0));
	say("mremap, smaller: first %c, behind %s", moved[0], attempt(touch_read, moved + PAGE));

	char *old_break = static_cast<char *>(sbrk(0));
	say("brk: up %d", sbrk(3 * PAGE) == old_break);
	old_break[3 * PAGE - 1] = 'b';
	say("brk: down %d", sbrk(-3 * static_cast<intptr_t>(PAGE)) == old_break + 3 * PAGE);
	say("brk: back %d", sbrk(0) == old_break);

	char *own = map(nullptr, 1, 0);
	char *shared = static_cast<char *>(mmap(nullptr, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
	static int in_data = 1;
	own[0] = shared[0] = '1';
	pid_t pid = fork();
	if (pid == 0) {
		own[0] = shared[0] = '2';
		in_data = 2;
		say("child: own %c, shared %c, data %d", own[0], shared[0], in_data);
		_exit(0);
	}
	waitpid(pid, nullptr, 0);
	say("parent: own %c, shared %c, data %d", own[0], shared[0], in_data);

	errno = 0;
	void *bad = mmap(nullptr, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	say("no length: %d, %s", bad == MAP_FAILED, strerrorname_np(errno));
	return 18;
}
