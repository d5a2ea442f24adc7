/* Memory and strings (FreeBSD sys/libkern). */
#include "sys/systm.h"

typedef uint64_t __attribute__((may_alias)) word_t;

#define ALIGNED(a, b) ((((uintptr_t)(a) | (uintptr_t)(b)) & 7) == 0)

void *
memcpy(void *to, const void *from, size_t n)
{
	char *t = to;
	const char *f = from;

	if (ALIGNED(t, f)) {
		for (; n >= 32; n -= 32, t += 32, f += 32) {
			((word_t *)t)[0] = ((const word_t *)f)[0];
			((word_t *)t)[1] = ((const word_t *)f)[1];
			((word_t *)t)[2] = ((const word_t *)f)[2];
			((word_t *)t)[3] = ((const word_t *)f)[3];
		}
		for (; n >= 8; n -= 8, t += 8, f += 8)
			*(word_t *)t = *(const word_t *)f;
	}
	while (n-- > 0)
		*t++ = *f++;
	return (to);
}

void *
memmove(void *to, const void *from, size_t n)
{
	char *t = to;
	const char *f = from;

	if (t <= f || t >= f + n)
		return (memcpy(to, from, n));
	while (n-- > 0)
		t[n] = f[n];
	return (to);
}

void
bcopy(const void *from, void *to, size_t n)
{
	memmove(to, from, n);
}

void *
memset(void *to, int c, size_t n)
{
	char *t = to;
	uint64_t word = (uint8_t)c * 0x0101010101010101UL;

	if (ALIGNED(t, 0)) {
		for (; n >= 32; n -= 32, t += 32) {
			((word_t *)t)[0] = word;
			((word_t *)t)[1] = word;
			((word_t *)t)[2] = word;
			((word_t *)t)[3] = word;
		}
		for (; n >= 8; n -= 8, t += 8)
			*(word_t *)t = word;
	}
	while (n-- > 0)
		*t++ = c;
	return (to);
}

void
bzero(void *to, size_t n)
{
	memset(to, 0, n);
}

int
memcmp(const void *a, const void *b, size_t n)
{
	const uint8_t *x = a, *y = b;

	for (; n > 0; n--, x++, y++)
		if (*x != *y)
			return (*x - *y);
	return (0);
}

size_t
strlen(const char *s)
{
	const char *end = s;

	while (*end != '\0')
		end++;
	return (end - s);
}

int
strcmp(const char *a, const char *b)
{
	while (*a == *b && *a != '\0')
		a++, b++;
	return ((uint8_t)*a - (uint8_t)*b);
}

int
strncmp(const char *a, const char *b, size_t n)
{
	for (; n > 0; n--, a++, b++)
		if (*a != *b || *a == '\0')
			return ((uint8_t)*a - (uint8_t)*b);
	return (0);
}

size_t
strlcpy(char *to, const char *from, size_t size)
{
	size_t n = strlen(from);

	if (size > 0) {
		memcpy(to, from, MIN(n, size - 1));
		to[MIN(n, size - 1)] = '\0';
	}
	return (n);
}

char *
strchr(const char *s, int c)
{
	for (; *s != (char)c; s++)
		if (*s == '\0')
			return (NULL);
	return ((char *)s);
}

/* FNV-1, as vfs_cache.c hashes names. */
uint32_t
hash32_str(const char *s, size_t n, uint32_t seed)
{
	while (n-- > 0)
		seed = seed * 16777619 ^ (uint8_t)*s++;
	return (seed);
}
