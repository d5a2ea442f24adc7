/* What the cases of system calls share: each prints what the kernel did. */
#pragma once

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Prints a line. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Prints what a call returned: the number, or the name of the error. */
void result(const char *what, long value);
/* The same, for calls whose result, a descriptor or an address, is different from run to run. */
void worked(const char *what, long value);
/* Prints the events of poll by name. */
void events(const char *what, unsigned events);
/* Prints bytes as text, the others as hexadecimal numbers. */
void bytes(const char *what, const void *data, long size);
/* Prints the status of a child, and waits for it. */
void reap(const char *what, pid_t pid);
/* What poll says of one file, without waiting. */
unsigned polled(int fd);
void sleep_ms(int milliseconds);
/* Sets a handler that interrupts system calls. */
void on(int number, void (*handler)(int));
/* An address that no process has. */
extern void *volatile const nowhere;

struct calls_case {
	const char *name;
	void (*run)(void);
};

#define CASE(name) \
	static void case_##name(void); \
	static const struct calls_case record_##name __attribute__((section("cases"), used)) = { #name, case_##name }; \
	static void case_##name(void)
