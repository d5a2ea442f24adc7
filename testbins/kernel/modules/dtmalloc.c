/* dtmalloc.ko: malloc by type; the allocator has the hooks (providers/dtmalloc). */
#include "dtrace_provider.h"

DTRACE_HOST_PROVIDER(dtmalloc);
