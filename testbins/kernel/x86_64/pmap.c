/* Page tables: four levels of 512 entries (Intel SDM volume 3, 4.5); the lower half of the root is the user's. */
#define LEVELS 4
#define ROOT_ENTRIES NPTEPG
#define USER_ROOT_ENTRIES (ROOT_ENTRIES / 2)
#define ROOT_RIGHTS (PG_RW | PG_U)
#define ROOT_IS_CACHED 0

#include "page_tables.h"
