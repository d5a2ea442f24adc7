/* kinst.ko: probes at any instruction (providers/kinst). */
#include "dtrace_provider.h"

DTRACE_HOST_PROVIDER(kinst);
