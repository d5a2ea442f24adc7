/* What the guest's dtrace(1) is made of. */
#ifndef AGGREGATE_H
#define AGGREGATE_H

#include "sys/dtrace.h"

#define BUFFER 65536 /* bytes of the buffers of a CPU */

void request(uint32_t command, void *data, const char *what); /* of /dev/dtrace/dtrace; does not come back if it is refused */

void aggregate_snap(void);  /* takes what was aggregated since the last time */
void aggregate_print(void);
int64_t integer(const void *data, uint32_t size); /* of 1, 2, 4 or 8 bytes; one and two are unsigned, as dtrace(1) shows them */

#endif
