#include "counted.h"

struct count *counts;
WHOLE int loaded_late(int n) { COUNTED("loaded_late"); return n - 1; }
WHOLE struct count *plugin_counts(void) { return counts; }
