/*
 * mandoc [-Tlint] [-Wlevel] [file]: formats a manual page written in a small part of mdoc(7). With -Tlint it only says
 * what it does not know; exit status 4 then, as mandoc(1)'s for -Wunsupp.
 *
 *	.Dd date  .Dt TITLE section  .Os  .Sh heading  .Nm [name]  .Nd description  .Pp
 *	.Fl flag  .Ar argument  .Pa path  .Op ...  .Xr page section  .Bl  .It ...  .El
 */
#include "libc.h"

#define WIDTH 78
#define INDENT 5
#define EXIT_UNSUPPORTED 4

static char title[80], footer[80], name[40];
static char line[256];	/* the line that is being filled */
static size_t length;
static int indent = INDENT, unsupported;
static bool lint, space; /* a blank is due before the next word */
static const char *file = "<stdin>";
static unsigned lineno;

static void
print(const char *text)
{
	if (!lint)
		puts(text);
}

static void
flush_line(void)
{
	if (length > 0)
		print(line);
	length = 0;
	line[0] = '\0';
	space = false;
}

/* A word of text: on the line if it fits, else on the next. */
static void
word(const char *text)
{
	size_t n = strlen(text);

	if (length > 0 && length + space + n > WIDTH)
		flush_line();
	if (length == 0)
		for (; length < (size_t)indent; length++)
			line[length] = ' ';
	else if (space)
		line[length++] = ' ';
	n = MIN(n, sizeof(line) - 1 - length);
	memcpy(line + length, text, n);
	length += n;
	line[length] = '\0';
	space = true;
}

static char *
next_word(char **rest)
{
	char *start = *rest, *end;

	while (*start == ' ')
		start++;
	if (*start == '\0')
		return (NULL);
	for (end = start; *end != ' ' && *end != '\0'; end++)
		continue;
	*rest = *end == '\0' ? end : end + 1;
	*end = '\0';
	return (start);
}

static void
text(char *rest)
{
	char *one;

	while ((one = next_word(&rest)) != NULL)
		word(one);
}

/* Punctuation follows the word before it without a blank. */
static bool
is_punctuation(const char *s)
{
	return (s[0] != '\0' && s[1] == '\0' && strchr(".,;:)", s[0]) != NULL);
}

/* The arguments of a macro, with what comes before and after each that is not punctuation. */
static void
decorated(char *rest, const char *before, const char *after)
{
	char *one, full[128];

	while ((one = next_word(&rest)) != NULL) {
		if (is_punctuation(one)) {
			space = false;
			word(one);
			continue;
		}
		snprintf(full, sizeof(full), "%s%s%s", before, one, after);
		word(full);
	}
}

static void
paragraph(char *rest __unused)
{
	flush_line();
	print("");
}

static void
macro_Dd(char *rest)
{
	strlcpy(footer, rest, sizeof(footer));
}

static void
macro_Dt(char *rest)
{
	char *what = next_word(&rest), *section = next_word(&rest);

	snprintf(title, sizeof(title), "%s(%s)", what != NULL ? what : "UNTITLED", section != NULL ? section : "1");
}

static void
macro_Os(char *rest __unused)
{
	char head[WIDTH + 1];
	static const char manual[] = "FreeBSD General Commands Manual";
	int gap = MAX(1, (WIDTH - (int)strlen(manual)) / 2 - (int)strlen(title));

	snprintf(head, sizeof(head), "%s%*s%s%*s%s", title, gap, "", manual, gap, "", title);
	print(head);
}

static void
macro_Sh(char *rest)
{
	flush_line();
	print("");
	print(rest);
	indent = INDENT;
}

static void
macro_Nm(char *rest)
{
	char *one = next_word(&rest);

	if (one != NULL && !is_punctuation(one) && name[0] == '\0')
		strlcpy(name, one, sizeof(name));
	word(one != NULL && !is_punctuation(one) ? one : name);
	if (one != NULL && is_punctuation(one)) {
		space = false;
		word(one);
	}
	text(rest);
}

static void
macro_Nd(char *rest)
{
	word("-");
	text(rest);
}

static void
macro_Fl(char *rest)
{
	decorated(rest, "-", "");
}

static void
macro_Ar(char *rest)
{
	decorated(rest, "", "");
}

static void
macro_Xr(char *rest)
{
	char *page = next_word(&rest), *section = next_word(&rest), full[64];

	if (page == NULL)
		return;
	snprintf(full, sizeof(full), "%s(%s)", page, section != NULL ? section : "1");
	word(full);
	decorated(rest, "", "");
}

static bool macro(char *rest);

/* [what is optional]: its arguments may be a macro. */
static void
macro_Op(char *rest)
{
	word("[");
	space = false;
	if (!macro(rest))
		text(rest);
	space = false;
	word("]");
}

static void
macro_Bl(char *rest __unused)
{
	flush_line();
	indent += INDENT;
}

static void
macro_It(char *rest)
{
	flush_line();
	print("");
	indent -= INDENT;
	if (!macro(rest))
		text(rest);
	flush_line();
	indent += INDENT;
}

static void
macro_El(char *rest __unused)
{
	flush_line();
	indent -= INDENT;
}

static const struct {
	char name[3];
	void (*format)(char *rest);
} macros[] = {
	{ "Dd", macro_Dd }, { "Dt", macro_Dt }, { "Os", macro_Os }, { "Sh", macro_Sh }, { "Nm", macro_Nm }, { "Nd", macro_Nd },
	{ "Pp", paragraph }, { "Fl", macro_Fl }, { "Ar", macro_Ar }, { "Pa", macro_Ar }, { "Op", macro_Op }, { "Xr", macro_Xr },
	{ "Bl", macro_Bl }, { "It", macro_It }, { "El", macro_El },
};

/* False if the text does not begin with the name of a macro. */
static bool
macro(char *rest)
{
	for (size_t i = 0; i < nitems(macros); i++)
		if (strncmp(rest, macros[i].name, 2) == 0 && (rest[2] == ' ' || rest[2] == '\0')) {
			for (rest += 2; *rest == ' '; rest++)
				continue;
			macros[i].format(rest);
			return (true);
		}
	return (false);
}

static void
format(char *source)
{
	if (source[0] != '.')
		text(source);
	else if (source[1] == '\\' && source[2] == '"')
		return; /* a comment */
	else if (!macro(source + 1)) {
		unsupported++;
		if (lint)
			printf("mandoc: %s:%u: UNSUPP: macro not known: %s\n", file, lineno, source + 1);
	}
}

int
main(int argc, char *argv[])
{
	static struct reader in;
	static char source[BUFSIZ];

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "-Tlint") == 0)
			lint = true;
		else if (argv[i][0] == '-' && strchr("TW", argv[i][1]) == NULL)
			errx(5, "usage: mandoc [-Tlint] [-Wlevel] [file]");
		else if (argv[i][0] != '-' && (in.fd = open(file = argv[i], O_RDONLY)) < 0)
			err(6, "%s", argv[i]);
	}
	while (readline(&in, source, sizeof(source)) != NULL) {
		lineno++;
		format(source);
	}
	flush_line();
	print("");
	if (!lint)
		printf("%s%*s%s\n", title, MAX(1, WIDTH - (int)(strlen(title) + strlen(footer))), "", footer);
	return (unsupported > 0 ? EXIT_UNSUPPORTED : 0);
}
