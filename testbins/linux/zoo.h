/* What the cases of the zoo share. */
#ifndef ZOO_H
#define ZOO_H

#include <cstddef>
#include <cstdint>
#include <initializer_list>

/* A function that probes find: never inlined, cloned or given another calling convention. */
#define PROBEABLE extern "C" __attribute__((noinline, noipa, visibility("default")))

/* The status of a case that cannot run here (as automake's tests have it). */
constexpr int SKIPPED = 77;

/* One line to standard output by one write(2): nothing is buffered, so fork() has nothing to double. */
PROBEABLE __attribute__((format(printf, 1, 2))) void say(const char *format, ...);

/* Says what went wrong and ends the process with status 1. */
PROBEABLE __attribute__((noreturn)) void fail(const char *what);

/* A path that execve() finds this program by. */
const char *self();

/* The cases: each returns the exit status. */
int case_recursion(int argc, char **argv);
int case_tailcalls(int argc, char **argv);
int case_setjmp(int argc, char **argv);
int case_cxx(int argc, char **argv);
int case_threads(int argc, char **argv);
int case_signals(int argc, char **argv);
int case_divide(int argc, char **argv);
int case_processes(int argc, char **argv);
int case_child(int argc, char **argv);
int case_memory(int argc, char **argv);
int case_files(int argc, char **argv);
int case_plugin(int argc, char **argv);
int case_switchcase(int argc, char **argv);
int case_args(int argc, char **argv);
int case_markers(int argc, char **argv);
int case_asm(int argc, char **argv);

#endif
