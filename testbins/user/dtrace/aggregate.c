/*
 * Aggregations as dtrace(1) keeps and shows them: snapshots are added up, and sorted by value, then by key
 * (FreeBSD libdtrace dt_aggregate.c, dt_consume.c). stddev() and llquantize() are not shown: their arithmetic needs 128 bits.
 */
#include "aggregate.h"
#include "libc.h"

#define RECORDS 16
#define QUANTIZE_BUCKETS 127
#define QUANTIZE_ZERO 63
#define BAR 40

/* An aggregation: struct dtrace_aggdesc with room for its records. The first is the variable, the last one the value, between are the keys. */
struct description {
	DTRACE_PTR(char, name);
	int64_t varid;
	int flags;
	uint32_t id, epid, size;
	int nrecs;
	uint32_t pad;
	struct dtrace_recdesc rec[RECORDS];
	struct description *next;
};

struct entry {
	const struct description *of;
	char *data;
};

static struct description *descriptions;
static struct entry *entries;
static size_t count;

int64_t
integer(const void *data, uint32_t size)
{
	uint64_t value = 0;

	memcpy(&value, data, size);
	return (size == 4 ? (int64_t)(int32_t)value : (int64_t)value);
}

static const struct description *
describe(uint32_t id)
{
	struct description *one;
	void *pointer;

	for (one = descriptions; one != NULL; one = one->next)
		if (one->id == id)
			return (one);
	one = malloc(sizeof(*one));
	memset(one, 0, sizeof(*one));
	one->id = id;
	one->nrecs = RECORDS;
	pointer = one;
	request(DTRACEIOC_AGGDESC, &pointer, "AGGDESC");
	if (one->nrecs > RECORDS)
		errx(1, "aggregation %u has %d keys, and there is room for %d", id, one->nrecs - 2, RECORDS - 2);
	one->next = descriptions;
	return (descriptions = one);
}

static const struct dtrace_recdesc *
value_of(const struct description *one)
{
	return (&one->rec[one->nrecs - 1]);
}

static int64_t *
words(const struct entry *entry)
{
	return ((int64_t *)(entry->data + value_of(entry->of)->dtrd_offset));
}

/* The first word of a linear distribution says how it is divided: step, levels, lowest value. */
static int64_t
linear_step(int64_t parameters)
{
	return (parameters >> 48 & 0xffff);
}

static int
linear_levels(int64_t parameters)
{
	return (parameters >> 32 & 0xffff);
}

static int64_t
bucket_value(const struct entry *entry, int bucket)
{
	if (value_of(entry->of)->dtrd_action == DTRACEAGG_LQUANTIZE) {
		int64_t parameters = words(entry)[0];

		return ((int32_t)parameters + (bucket - 1) * linear_step(parameters));
	}
	if (bucket == QUANTIZE_ZERO)
		return (0);
	return (bucket > QUANTIZE_ZERO ? (int64_t)1 << (bucket - QUANTIZE_ZERO - 1) :
					 -((int64_t)1 << (QUANTIZE_ZERO - 1 - bucket)));
}

/* Where the counts of a distribution are, and how many; 0: it is a number. */
static int
buckets(const struct entry *entry, const int64_t **counts)
{
	const int64_t *all = words(entry);

	switch (value_of(entry->of)->dtrd_action) {
	case DTRACEAGG_QUANTIZE:
		*counts = all;
		return (QUANTIZE_BUCKETS);
	case DTRACEAGG_LQUANTIZE:
		*counts = all + 1;
		return (linear_levels(all[0]) + 2);
	default:
		return (0);
	}
}

static void
merge(const struct entry *old, const int64_t *new)
{
	const struct dtrace_recdesc *value = value_of(old->of);
	int64_t *sum = words(old);

	switch (value->dtrd_action) {
	case DTRACEAGG_MIN:
		sum[0] = new[0] < sum[0] ? new[0] : sum[0];
		break;
	case DTRACEAGG_MAX:
		sum[0] = new[0] > sum[0] ? new[0] : sum[0];
		break;
	default:
		for (size_t i = value->dtrd_action == DTRACEAGG_LQUANTIZE; i < value->dtrd_size / sizeof(*sum); i++)
			sum[i] += new[i];
		break;
	}
}

static void
add(const struct description *of, const char *data)
{
	const struct dtrace_recdesc *value = value_of(of);
	struct entry *entry;

	for (entry = entries; entry < entries + count; entry++)
		if (entry->of == of && memcmp(entry->data + 4, data + 4, value->dtrd_offset - 4) == 0) {
			merge(entry, (const int64_t *)(data + value->dtrd_offset));
			return;
		}
	if (count % 64 == 0 && (entries = realloc(entries, (count + 64) * sizeof(*entries))) == NULL)
		err(1, "malloc");
	entry = &entries[count++];
	*entry = (struct entry){ of, malloc(of->size) };
	memcpy(entry->data, data, of->size);
}

void
aggregate_snap(void)
{
	static char buffer[BUFFER] __attribute__((aligned(8)));
	struct dtrace_bufdesc desc = { .dtbd_size = BUFFER, .dtbd_data = buffer };
	struct dtrace_bufdesc *pointer = &desc;
	const struct description *of;
	uint32_t id;

	memset(buffer, 0, sizeof(buffer)); /* a page that was never touched has no memory yet */
	request(DTRACEIOC_AGGSNAP, &pointer, "AGGSNAP");
	for (uint64_t at = 0; at + 8 <= desc.dtbd_size; at = (at + of->size + 7) & ~(uint64_t)7) {
		memcpy(&id, buffer + at, sizeof(id));
		add(of = describe(id), buffer + at);
	}
	if (desc.dtbd_drops != 0)
		printf("dtrace: %ju aggregation drops on CPU %u\n", (uintmax_t)desc.dtbd_drops, desc.dtbd_cpu);
}

/* What an entry is sorted by: its number, or the sum of what its counts stand for. */
static int64_t
weight(const struct entry *entry)
{
	const int64_t *counts, *value = words(entry);
	int n = buckets(entry, &counts);
	int64_t sum = 0;

	if (n == 0)
		return (value_of(entry->of)->dtrd_action == DTRACEAGG_AVG && value[0] != 0 ? value[1] / value[0] : value[0]);
	for (int i = 0; i < n; i++)
		if (counts[i] != 0)
			sum += counts[i] * bucket_value(entry, i);
	return (sum);
}

static bool
is_integer(uint32_t size)
{
	return (size == 1 || size == 2 || size == 4 || size == 8);
}

static int
compare_keys(const struct entry *a, const struct entry *b)
{
	for (int i = 1; i < a->of->nrecs - 1 && i < b->of->nrecs - 1; i++) {
		const struct dtrace_recdesc *key = &a->of->rec[i];
		const char *one = a->data + key->dtrd_offset, *other = b->data + key->dtrd_offset;
		int order;

		if (is_integer(key->dtrd_size)) {
			uint64_t left = integer(one, key->dtrd_size), right = integer(other, key->dtrd_size);

			order = (left > right) - (left < right);
		} else
			order = memcmp(one, other, key->dtrd_size);
		if (order != 0)
			return (order);
	}
	return (0);
}

static int
compare(const void *left, const void *right)
{
	const struct entry *a = left, *b = right;
	int64_t x = a->of->varid, y = b->of->varid;

	if (x == y) {
		x = weight(a);
		y = weight(b);
	}
	return (x != y ? (x > y) - (x < y) : compare_keys(a, b));
}

static void
print_key(const struct dtrace_recdesc *key, const char *data)
{
	static const int widths[] = { [1] = 3, [2] = 5, [4] = 8, [8] = 16 };

	if (is_integer(key->dtrd_size))
		printf(" %*jd", widths[key->dtrd_size], integer(data, key->dtrd_size));
	else if (key->dtrd_size == 0)
		return; /* what quantize() adds, if not 1 */
	else if (key->dtrd_action == DTRACEACT_DIFEXPR)
		printf("  %-50s", data);
	else { /* a stack: there are no symbols here */
		printf("\n");
		for (uint32_t at = 0; at < key->dtrd_size && integer(data + at, 8) != 0; at += 8)
			printf("%14s%#jx\n", "", integer(data + at, 8));
	}
}

static void
print_row(const struct entry *entry, int bucket, int buckets, int64_t n, int64_t total)
{
	static const char ats[] = "@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@";
	char label[24], number[24];
	bool linear = value_of(entry->of)->dtrd_action == DTRACEAGG_LQUANTIZE;
	int length = total != 0 ? (2 * n * BAR + total) / (2 * total) : 0;

	if (linear && (bucket == 0 || bucket == buckets - 1))
		snprintf(label, sizeof(label), "%s %jd", bucket == 0 ? "<" : ">=", bucket_value(entry, bucket == 0 ? 1 : bucket));
	else
		snprintf(label, sizeof(label), "%jd", bucket_value(entry, bucket));
	snprintf(number, sizeof(number), "%jd", n);
	printf("%16s |%-*.*s %-9s\n", label, BAR, length, ats, number);
}

/* The buckets that have counts, and one more on each side. */
static void
print_distribution(const struct entry *entry, const int64_t *counts, int n)
{
	int low = 0, high = n - 1;
	int64_t total = 0;

	while (low < high && counts[low] == 0)
		low++;
	while (high > low && counts[high] == 0)
		high--;
	for (int i = low; i <= high; i++)
		total += counts[i];
	if (total == 0 && counts[low] == 0) /* there are none: around 0, as dtrace does */
		low = high = n == QUANTIZE_BUCKETS ? QUANTIZE_ZERO : 1;
	printf("\n%16s %41s %-9s\n", "value", "------------- Distribution -------------", "count");
	for (int i = low > 0 ? low - 1 : 0; i <= high + 1 && i < n; i++)
		print_row(entry, i, n, counts[i], total);
}

static void
print_value(const struct entry *entry)
{
	const int64_t *counts;
	int n = buckets(entry, &counts), action = value_of(entry->of)->dtrd_action;

	if (n != 0)
		print_distribution(entry, counts, n);
	else if (action == DTRACEAGG_STDDEV || action == DTRACEAGG_LLQUANTIZE)
		printf(" %16s", "-");
	else
		printf(" %16jd", weight(entry));
	printf("\n");
}

void
aggregate_print(void)
{
	if (count != 0)
		qsort(entries, count, sizeof(*entries), compare);
	for (size_t i = 0; i < count; i++) {
		const struct description *of = entries[i].of;

		for (int key = 1; key < of->nrecs - 1; key++)
			print_key(&of->rec[key], entries[i].data + of->rec[key].dtrd_offset);
		print_value(&entries[i]);
	}
}
