/* memhog [pages]: touches this many pages (64) of the heap, and as many of mmap, and gives them back */
#include "libc.h"

#define PAGE 4096

static uint64_t
touch(volatile char *memory, long pages)
{
	uint64_t sum = 0;

	for (long i = 0; i < pages; i++) {
		if (memory[i * PAGE] != 0)
			errx(1, "page %ld is not zero", i);
		memory[i * PAGE] = i + 1;
	}
	for (long i = 0; i < pages; i++)
		sum += (uint8_t)memory[i * PAGE];
	return (sum);
}

int
main(int argc, char *argv[])
{
	long pages = argc > 1 ? atol(argv[1]) : 64;
	char *heap = sbrk(pages * PAGE), *map;
	uint64_t sum;

	if (heap == (void *)-1)
		err(1, "sbrk");
	sum = touch(heap, pages);
	if (sbrk(-pages * PAGE) == (void *)-1)
		err(1, "sbrk back");
	map = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0);
	if (map == (void *)-1)
		err(1, "mmap");
	sum += touch(map, pages);
	if (mprotect(map, PAGE, PROT_READ) != 0)
		err(1, "mprotect");
	if (munmap(map, pages * PAGE) != 0)
		err(1, "munmap");
	printf("memhog: %ld pages, sum %ju\n", pages, sum);
	return (0);
}
