/* dtrace file [command ...]: enables the compiled program (DOF) in file, and prints what it records while command runs */
#include "aggregate.h"
#include "libc.h"
#include "sys/dof.h"

#define RECORDS 16
#define EPIDS 64
#define NONE 0 /* four bytes of padding in a buffer */

static int dtrace_fd;
static char buffer[BUFFER];

/* The description of an enabling's records: struct dtrace_eprobedesc with room for more records, and its probe. */
static struct enabled {
	uint32_t epid, probeid;
	uint64_t uarg;
	uint32_t size;
	int nrecs;
	struct dtrace_recdesc rec[RECORDS];
	struct dtrace_probedesc probe;
} *enabled[EPIDS];

void
request(uint32_t command, void *data, const char *what)
{
	if (ioctl(dtrace_fd, command, data) != 0)
		err(1, "%s", what);
}

static const struct enabled *
lookup(uint32_t epid)
{
	struct enabled *found;
	void *pointer[sizeof(struct dtrace_eprobedesc) / sizeof(void *)] = { NULL };

	if (epid >= EPIDS)
		errx(1, "enabling %u is one too many", epid);
	if (enabled[epid] != NULL)
		return (enabled[epid]);
	found = malloc(sizeof(*found));
	memset(found, 0, sizeof(*found));
	found->epid = epid;
	found->nrecs = RECORDS;
	pointer[0] = found;
	request(DTRACEIOC_EPROBE, pointer, "EPROBE");
	found->probe.dtpd_id = found->probeid;
	request(DTRACEIOC_PROBES, &found->probe, "PROBES");
	return (enabled[epid] = found);
}

static void
print_record(const char *data, uint32_t size)
{
	if (size == 1 || size == 2 || size == 4 || size == 8)
		printf(" %jd", integer(data, size));
	else
		printf(" %s", data);
}

static void
consume(void)
{
	struct dtrace_bufdesc desc = { .dtbd_size = BUFFER, .dtbd_data = buffer };
	struct dtrace_bufdesc *pointer = &desc;
	const struct enabled *one;
	uint32_t epid;

	request(DTRACEIOC_BUFSNAP, &pointer, "BUFSNAP");
	for (uint64_t at = 0; at < desc.dtbd_size; at += one->size) {
		for (; memcpy(&epid, buffer + at, 4), epid == NONE; at += 4)
			if (at + 8 > desc.dtbd_size)
				return;
		one = lookup(epid);
		printf("%3u %6u %s:%s", desc.dtbd_cpu, one->probe.dtpd_id, one->probe.dtpd_func, one->probe.dtpd_name);
		for (int i = 0; i < one->nrecs && i < RECORDS; i++)
			print_record(buffer + at + one->rec[i].dtrd_offset, one->rec[i].dtrd_size);
		printf("\n");
	}
	if (desc.dtbd_drops != 0)
		printf("dtrace: %ju drops\n", (uintmax_t)desc.dtbd_drops);
}

/* Options are set as libdtrace does: by a program that consists only of options. */
static void
set_options(void)
{
	static struct {
		struct dof_hdr header;
		struct dof_sec section;
		struct dof_optdesc options[2];
	} dof = {
		.header = {
			.dofh_ident = { 0x7f, 'D', 'O', 'F', DOF_MODEL_NATIVE, DOF_ENCODE_LSB, DOF_VERSION_2, 2, 8, 8 },
			.dofh_hdrsize = sizeof(struct dof_hdr),
			.dofh_secsize = sizeof(struct dof_sec),
			.dofh_secnum = 1,
			.dofh_secoff = sizeof(struct dof_hdr),
			.dofh_loadsz = sizeof(dof),
			.dofh_filesz = sizeof(dof),
		},
		.section = {
			.dofs_type = DOF_SECT_OPTDESC,
			.dofs_align = 8,
			.dofs_flags = DOF_SECF_LOAD,
			.dofs_entsize = sizeof(struct dof_optdesc),
			.dofs_offset = sizeof(struct dof_hdr) + sizeof(struct dof_sec),
			.dofs_size = sizeof(dof.options),
		},
		.options = { { DTRACEOPT_BUFSIZE, DOF_SECIDX_NONE, BUFFER }, { DTRACEOPT_AGGSIZE, DOF_SECIDX_NONE, BUFFER } },
	};
	struct dtrace_enable_io io = { .dof = &dof };

	request(DTRACEIOC_ENABLE, &io, "ENABLE (options)");
}

static void
enable(const char *path)
{
	struct dtrace_enable_io io = { .dof = buffer };
	int fd = open(path, O_RDONLY);
	ssize_t n, size = 0;

	if (fd < 0)
		err(1, "%s", path);
	while ((n = read(fd, buffer + size, sizeof(buffer) - size)) > 0)
		size += n;
	close(fd);
	if (ioctl(dtrace_fd, DTRACEIOC_ENABLE, &io) != 0)
		err(1, "failed to enable '%s'", path);
	printf("dtrace: '%s' matched %d probe%s\n", path, io.n_matched, io.n_matched == 1 ? "" : "s");
	fflush();
}

int
main(int argc, char *argv[])
{
	struct dtrace_status status;
	int cpu = 0, gone = 0, ended;
	pid_t pid = 0;

	if (argc < 2)
		errx(1, "usage: dtrace file [command ...]");
	if ((dtrace_fd = open("/dev/dtrace/dtrace", O_RDWR)) < 0 && errno == ENOENT && kldload("dtraceall") >= 0)
		dtrace_fd = open("/dev/dtrace/dtrace", O_RDWR); /* as libdtrace does */
	if (dtrace_fd < 0)
		err(1, "failed to initialize dtrace: /dev/dtrace/dtrace");
	memset(buffer, 0, sizeof(buffer));
	set_options();
	enable(argv[1]);
	request(DTRACEIOC_GO, &cpu, "GO");
	if (argc > 2 && (pid = fork()) == 0) {
		close(dtrace_fd);
		execvp(argv[2], argv + 2);
		err(127, "%s", argv[2]);
	}
	do {
		if (pid != 0)
			gone = wait4(pid, &ended, WNOHANG, NULL) == pid;
		if (!gone)
			usleep(10000);
		request(DTRACEIOC_STATUS, &status, "STATUS");
		aggregate_snap();
	} while (!gone && !status.dtst_exiting);
	request(DTRACEIOC_STOP, &cpu, "STOP");
	consume();
	aggregate_snap();
	aggregate_print();
	return (0);
}
