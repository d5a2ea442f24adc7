/* Events on their way to the generator: a ring, and a process that empties it (FreeBSD sys/dev/random/random_harvestq.c). */
#include "sys/random.h"
#include "sys/systm.h"

#define RANDOM_RING_MAX 64 /* events; when it is full they are lost */

static struct harvest_ring {
	struct harvest_event ring[RANDOM_RING_MAX];
	unsigned in, out;
} harvest_ring;
static uint8_t hc_destination[ENTROPYSOURCE]; /* the pools take turns, source by source */

/* Called from anywhere, even an interrupt: it only copies. */
void
random_harvest_queue(const void *entropy, size_t size, enum random_entropy_source origin)
{
	struct harvest_event *event;

	if (harvest_ring.in - harvest_ring.out == RANDOM_RING_MAX)
		return;
	event = &harvest_ring.ring[harvest_ring.in++ % RANDOM_RING_MAX];
	event->he_somecounter = nanouptime();
	event->he_source = origin;
	event->he_destination = hc_destination[origin]++;
	event->he_size = MIN(size, sizeof(event->he_entropy));
	memcpy(event->he_entropy, entropy, event->he_size);
}

static void
random_kthread(void *unused __unused)
{
	for (;;) {
		while (harvest_ring.out != harvest_ring.in)
			random_fortuna_process_event(&harvest_ring.ring[harvest_ring.out++ % RANDOM_RING_MAX]);
		pause("-", hz / 10);
	}
}

static void
random_harvestq_init(const void *unused __unused)
{
	if (kproc_create(random_kthread, NULL, NULL, "rand_harvestq") != 0)
		panic("cannot create rand_harvestq");
}
SYSINIT(random_harvestq_init, SI_SUB_KTHREADS, SI_ORDER_ANY, random_harvestq_init, NULL);
