/* The requests of /dev/dtrace/dtrace that the guest's own consumer makes (FreeBSD dtrace.h, dtrace_ioctl.h). */
#ifndef SYS_DTRACE_H
#define SYS_DTRACE_H

#include "sys/ioccom.h"
#include "sys/types.h"

/* A pointer takes eight bytes in every data model. */
#if __SIZEOF_POINTER__ == 8
#define DTRACE_PTR(type, name) type *name
#else
#define DTRACE_PTR(type, name) type *name; uint32_t name##pad
#endif

struct dtrace_probedesc {
	uint32_t dtpd_id;
	char dtpd_provider[64];
	char dtpd_mod[64];
	char dtpd_func[192];
	char dtpd_name[64];
};

struct dtrace_recdesc {
	uint16_t dtrd_action;
	uint32_t dtrd_size;
	uint32_t dtrd_offset;
	uint16_t dtrd_alignment;
	uint16_t dtrd_format;
	uint64_t dtrd_arg;
	uint64_t dtrd_uarg;
};

struct dtrace_eprobedesc {
	uint32_t dtepd_epid;
	uint32_t dtepd_probeid;
	uint64_t dtepd_uarg;
	uint32_t dtepd_size;
	int dtepd_nrecs;
	struct dtrace_recdesc dtepd_rec[1];
};

struct dtrace_aggdesc {
	DTRACE_PTR(char, dtagd_name);
	int64_t dtagd_varid;
	int dtagd_flags;
	uint32_t dtagd_id;
	uint32_t dtagd_epid;
	uint32_t dtagd_size;
	int dtagd_nrecs;
	uint32_t dtagd_pad;
	struct dtrace_recdesc dtagd_rec[1];
};

struct dtrace_bufdesc {
	uint64_t dtbd_size;
	uint32_t dtbd_cpu;
	uint32_t dtbd_errors;
	uint64_t dtbd_drops;
	DTRACE_PTR(void, dtbd_data);
	uint64_t dtbd_oldest;
	uint64_t dtbd_timestamp;
};

struct dtrace_status {
	uint64_t dtst_counts[10];
	uint8_t dtst_killed;
	uint8_t dtst_exiting;
	uint8_t dtst_pad[6];
};

struct dtrace_enable_io {
	void *dof;
	int n_matched;
};

#define DTRACEIOC_PROBES IOC_RW('x', 2, struct dtrace_probedesc)
#define DTRACEIOC_BUFSNAP IOC_W('x', 4, struct dtrace_bufdesc *)
#define DTRACEIOC_ENABLE IOC_RW('x', 6, struct dtrace_enable_io)
#define DTRACEIOC_AGGSNAP IOC_W('x', 7, struct dtrace_bufdesc *)
#define DTRACEIOC_EPROBE IOC_W('x', 8, struct dtrace_eprobedesc) /* and takes a pointer to it */
#define DTRACEIOC_STATUS IOC_R('x', 11, struct dtrace_status)
#define DTRACEIOC_GO IOC_R('x', 12, int)
#define DTRACEIOC_STOP IOC_RW('x', 13, int)
#define DTRACEIOC_AGGDESC IOC_W('x', 15, struct dtrace_aggdesc *)

#define DTRACEACT_DIFEXPR 0x001
#define DTRACEAGG_COUNT 0x701
#define DTRACEAGG_MIN 0x702
#define DTRACEAGG_MAX 0x703
#define DTRACEAGG_AVG 0x704
#define DTRACEAGG_SUM 0x705
#define DTRACEAGG_STDDEV 0x706
#define DTRACEAGG_QUANTIZE 0x707
#define DTRACEAGG_LQUANTIZE 0x708
#define DTRACEAGG_LLQUANTIZE 0x709

#define DTRACEOPT_BUFSIZE 0
#define DTRACEOPT_AGGSIZE 3

#endif
