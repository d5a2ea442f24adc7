/* malloc: one list of free blocks by address, first fit, neighbours joined. */
#include "libc.h"

struct block {
	size_t size;	    /* of the whole block */
	struct block *next; /* while it is free */
};

#define HEADER 16 /* keeps what follows aligned */
#define CHUNK 4096

static struct block *free_list;

/* Moves the end of the heap; returns where it was, (void *)-1 without memory. */
void *
sbrk(ptrdiff_t increment)
{
	static char *end;
	char *old;

	if (end == NULL)
		end = __break(NULL);
	old = end;
	if (increment != 0 && __break(end + increment) == (char *)-1)
		return ((void *)-1);
	end += increment;
	return (old);
}

static struct block *
more_memory(size_t size)
{
	size_t chunk = roundup2(size, CHUNK);
	struct block *block = sbrk(chunk);

	if (block == (void *)-1)
		return (NULL);
	block->size = chunk;
	free((char *)block + HEADER);
	return (block);
}

void *
malloc(size_t size)
{
	struct block **link, *block;

	size = roundup2(size, 16) + HEADER;
	do {
		for (link = &free_list; (block = *link) != NULL; link = &block->next) {
			if (block->size < size)
				continue;
			if (block->size >= size + 2 * HEADER) {
				struct block *rest = (struct block *)((char *)block + size);

				rest->size = block->size - size;
				rest->next = block->next;
				*link = rest;
				block->size = size;
			} else
				*link = block->next;
			return ((char *)block + HEADER);
		}
	} while (more_memory(size) != NULL);
	errno = ENOMEM;
	return (NULL);
}

void
free(void *p)
{
	struct block *block = (struct block *)((char *)p - HEADER), *before = NULL, *after = free_list;

	if (p == NULL)
		return;
	while (after != NULL && after < block) {
		before = after;
		after = after->next;
	}
	block->next = after;
	if (after != NULL && (char *)block + block->size == (char *)after) {
		block->size += after->size;
		block->next = after->next;
	}
	if (before == NULL)
		free_list = block;
	else if ((char *)before + before->size == (char *)block) {
		before->size += block->size;
		before->next = block->next;
	} else
		before->next = block;
}

void *
realloc(void *old, size_t size)
{
	size_t had = old == NULL ? 0 : ((struct block *)((char *)old - HEADER))->size - HEADER;
	void *new;

	if (old != NULL && size <= had)
		return (old);
	if ((new = malloc(size)) == NULL)
		return (NULL);
	if (old != NULL)
		memcpy(new, old, had);
	free(old);
	return (new);
}
