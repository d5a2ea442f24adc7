/*
 * Markers: places in a program that tools find by notes in the file (`readelf -n`).
 *
 *	MARKER(name, arguments...)		a marker of the provider `zoo`, with 0 to 12 arguments
 *	SEMAPHORE(name);			defines the semaphore of a marker, once per program, at file level
 *	MARKER_ENABLED(name)			whether the semaphore is not 0
 *	GUARDED_MARKER(name, arguments...)	a marker whose note names that semaphore
 *
 * The code of a marker is one nop. Everything else is in the record that it leaves in the section .note.stapsdt, which is not
 * loaded: sizes of name and descriptor, type 3, "stapsdt", and the descriptor: the addresses of the nop, of .stapsdt.base and of
 * the semaphore (or 0), then provider, name and arguments, each ended by a NUL. Records are aligned to 4 bytes.
 *
 * An argument is written [-]N@OP: N its size in bytes, negative if it is signed, OP where it is, in the assembler's own
 * words. The constraint "nor" gives the compiler all choices: a constant, memory, a register.
 *
 * .stapsdt.base is one byte that is loaded with the text; a prelinker moves it, and the difference to the address in
 * the notes tells by how much. All objects of a link share one: a comdat group.
 */
#ifndef SDT_H
#define SDT_H

#include <type_traits>

/* The number before the @. Arrays are passed as pointers. */
template <typename Argument>
constexpr int marker_size = std::is_signed_v<std::decay_t<Argument>> ? -static_cast<int>(sizeof(std::decay_t<Argument>))
								    : static_cast<int>(sizeof(std::decay_t<Argument>));

template <typename Argument>
using marker_value = std::decay_t<Argument>;

/* An address in a note is as wide as the file's. */
#if __SIZEOF_POINTER__ == 8
#define SDT_ADDRESSES ".8byte"
#else
#define SDT_ADDRESSES ".4byte"
#endif

#define SDT_NOTE(name, semaphore, arguments)                                                                            \
	"1:	nop\n"                                                                                                  \
	"	.pushsection .note.stapsdt, \"\", %%note\n"                                                            \
	"	.balign 4\n"                                                                                            \
	"	.4byte 8, 3f - 2f, 3\n"                                                                                 \
	"	.asciz \"stapsdt\"\n"                                                                                   \
	"2:	" SDT_ADDRESSES " 1b, _.stapsdt.base, " semaphore "\n"                                                  \
	"	.asciz \"zoo\"\n"                                                                                       \
	"	.asciz \"" name "\"\n"                                                                                  \
	"	.asciz \"" arguments "\"\n"                                                                             \
	"3:	.balign 4\n"                                                                                            \
	"	.popsection\n"                                                                                          \
	"	.ifndef _.stapsdt.base\n"                                                                               \
	"	.pushsection .stapsdt.base, \"aG\", %%progbits, .stapsdt.base, comdat\n"                                \
	"	.weak _.stapsdt.base\n"                                                                                 \
	"	.hidden _.stapsdt.base\n"                                                                               \
	"_.stapsdt.base:\n"                                                                                             \
	"	.space 1\n"                                                                                             \
	"	.size _.stapsdt.base, 1\n"                                                                              \
	"	.popsection\n"                                                                                          \
	"	.endif\n"

/* Argument n is two operands: its size, a constant, and itself. */
#define SDT_TEXT(n) "%c[size" #n "]@%[value" #n "]"
#define SDT_OPERAND(n, x) [size##n] "n"(marker_size<decltype(x)>), [value##n] "nor"(static_cast<marker_value<decltype(x)>>(x))

#define SDT_TEXT_0 ""
#define SDT_TEXT_1 SDT_TEXT(1)
#define SDT_TEXT_2 SDT_TEXT_1 " " SDT_TEXT(2)
#define SDT_TEXT_3 SDT_TEXT_2 " " SDT_TEXT(3)
#define SDT_TEXT_4 SDT_TEXT_3 " " SDT_TEXT(4)
#define SDT_TEXT_5 SDT_TEXT_4 " " SDT_TEXT(5)
#define SDT_TEXT_6 SDT_TEXT_5 " " SDT_TEXT(6)
#define SDT_TEXT_7 SDT_TEXT_6 " " SDT_TEXT(7)
#define SDT_TEXT_8 SDT_TEXT_7 " " SDT_TEXT(8)
#define SDT_TEXT_9 SDT_TEXT_8 " " SDT_TEXT(9)
#define SDT_TEXT_10 SDT_TEXT_9 " " SDT_TEXT(10)
#define SDT_TEXT_11 SDT_TEXT_10 " " SDT_TEXT(11)
#define SDT_TEXT_12 SDT_TEXT_11 " " SDT_TEXT(12)

#define SDT_OPERANDS_0()
#define SDT_OPERANDS_1(a) SDT_OPERAND(1, a)
#define SDT_OPERANDS_2(a, b) SDT_OPERANDS_1(a), SDT_OPERAND(2, b)
#define SDT_OPERANDS_3(a, b, c) SDT_OPERANDS_2(a, b), SDT_OPERAND(3, c)
#define SDT_OPERANDS_4(a, b, c, d) SDT_OPERANDS_3(a, b, c), SDT_OPERAND(4, d)
#define SDT_OPERANDS_5(a, b, c, d, e) SDT_OPERANDS_4(a, b, c, d), SDT_OPERAND(5, e)
#define SDT_OPERANDS_6(a, b, c, d, e, f) SDT_OPERANDS_5(a, b, c, d, e), SDT_OPERAND(6, f)
#define SDT_OPERANDS_7(a, b, c, d, e, f, g) SDT_OPERANDS_6(a, b, c, d, e, f), SDT_OPERAND(7, g)
#define SDT_OPERANDS_8(a, b, c, d, e, f, g, h) SDT_OPERANDS_7(a, b, c, d, e, f, g), SDT_OPERAND(8, h)
#define SDT_OPERANDS_9(a, b, c, d, e, f, g, h, i) SDT_OPERANDS_8(a, b, c, d, e, f, g, h), SDT_OPERAND(9, i)
#define SDT_OPERANDS_10(a, b, c, d, e, f, g, h, i, j) SDT_OPERANDS_9(a, b, c, d, e, f, g, h, i), SDT_OPERAND(10, j)
#define SDT_OPERANDS_11(a, b, c, d, e, f, g, h, i, j, k) SDT_OPERANDS_10(a, b, c, d, e, f, g, h, i, j), SDT_OPERAND(11, k)
#define SDT_OPERANDS_12(a, b, c, d, e, f, g, h, i, j, k, l) SDT_OPERANDS_11(a, b, c, d, e, f, g, h, i, j, k), SDT_OPERAND(12, l)

#define SDT_COUNT(...) SDT_COUNTED(__VA_ARGS__ __VA_OPT__(,) 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define SDT_COUNTED(a, b, c, d, e, f, g, h, i, j, k, l, count, ...) count

#define SDT_EMIT(name, semaphore, count, ...) SDT_EMITTED(name, semaphore, count, __VA_ARGS__)
#define SDT_EMITTED(name, semaphore, count, ...) \
	__asm__ volatile(SDT_NOTE(#name, semaphore, SDT_TEXT_##count) : : SDT_OPERANDS_##count(__VA_ARGS__))

#define MARKER(name, ...) SDT_EMIT(name, "0", SDT_COUNT(__VA_ARGS__), __VA_ARGS__)
#define GUARDED_MARKER(name, ...) SDT_EMIT(name, "zoo_" #name "_semaphore", SDT_COUNT(__VA_ARGS__), __VA_ARGS__)

/* Volatile: it changes from outside. */
#define SEMAPHORE(name)                                                                      \
	extern "C" {                                                                         \
	__attribute__((used, section(".probes"), visibility("hidden"))) volatile unsigned short zoo_##name##_semaphore; \
	}                                                                                    \
	static_assert(sizeof(zoo_##name##_semaphore) == 2)
#define MARKER_ENABLED(name) __builtin_expect(zoo_##name##_semaphore != 0, 0)

#endif
