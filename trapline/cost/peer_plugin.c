/*
 * A plugin of QEMU's TCG that counts the executions of one instruction:
 * qemu-ISA -plugin peer_plugin.so,place=ADDRESS PROGRAM
 *
 * Debian has no qemu-plugin.h; these are the functions of version 1 of that interface.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef uint64_t qemu_plugin_id_t;

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *, void (*)(unsigned, void *), int, void *);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, void *), void *);

int qemu_plugin_version = 1;
static uint64_t place, hits;

static void
hit(unsigned cpu, void *data)
{
	(void)cpu, (void)data;
	hits++;
}

static void
translated(qemu_plugin_id_t id, struct qemu_plugin_tb *block)
{
	(void)id;
	for (size_t i = 0; i < qemu_plugin_tb_n_insns(block); i++) {
		struct qemu_plugin_insn *one = qemu_plugin_tb_get_insn(block, i);
		if (qemu_plugin_insn_vaddr(one) == place)
			qemu_plugin_register_vcpu_insn_exec_cb(one, hit, 0, NULL);
	}
}

static void
ended(qemu_plugin_id_t id, void *data)
{
	(void)id, (void)data;
	fprintf(stderr, "%llu\n", (unsigned long long)hits);
}

int
qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv)
{
	(void)info;
	if (argc != 1)
		return (1);
	place = strtoull(argv[0] + sizeof("place=") - 1, NULL, 0);
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	qemu_plugin_register_atexit_cb(id, ended, NULL);
	return (0);
}
