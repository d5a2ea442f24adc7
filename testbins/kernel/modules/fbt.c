/* fbt.ko: function boundary tracing (providers/fbt). */
#include "dtrace_provider.h"

DTRACE_HOST_PROVIDER(fbt);
