/*
 * sh [-c command | script [argument ...]]: commands, quotes, ; & && || pipes, redirections < > >> 2> 2>&1, variables,
 * $1 to $9, $?, $(command); cd, exit, export, test, unset, wait. No patterns, and no control structures; what a variable or a command
 * gives stays one word. A line is parsed while it is run: what is not to be run is parsed all the same, but not expanded: so the parser and the runner share one file.
 */
#include "libc.h"

#define MAXWORDS 64
#define MAXLINE 1024

struct command { /* one part of a pipeline */
	char *argv[MAXWORDS + 1];
	int argc;
	struct redirection {
		int fd, flags;	 /* flags -1: a copy of descriptor from */
		int from;
		char *path;
	} redirections[8];
	int nredirections;
};

enum token { END, WORD, SEMICOLON, BACKGROUND, AND, OR, PIPE, INPUT, OUTPUT, APPEND, ERROR_OUTPUT, ERROR_COPY };

static const struct { /* longer ones first */
	const char *text;
	enum token token;
} operators[] = {
	{ "2>&1", ERROR_COPY }, { "2>", ERROR_OUTPUT }, { "&&", AND }, { "||", OR }, { ">>", APPEND },
	{ ";", SEMICOLON }, { "&", BACKGROUND }, { "|", PIPE }, { "<", INPUT }, { ">", OUTPUT },
};

static char *cursor;		/* the rest of the line */
static char words[MAXLINE];	/* the words, unquoted */
static size_t nwords;
static enum token token;	/* the one under the eye */
static char *word;
static int last_status;
static bool expanding;		/* what is parsed is to be run */
static char **arguments;	/* of the script: $0, $1, ... */
static int narguments;
static struct variable {
	char name[24], *value;
} variables[16];

static void run_line(char *line);

static void
syntax(const char *what)
{
	errx(2, "syntax error: %s", what);
}

static bool
is_operator(enum token *which, size_t *length)
{
	for (size_t i = 0; i < nitems(operators); i++)
		if (strncmp(cursor, operators[i].text, strlen(operators[i].text)) == 0) {
			*which = operators[i].token;
			*length = strlen(operators[i].text);
			return (true);
		}
	return (false);
}

static void
add(char c)
{
	if (nwords >= sizeof(words) - 1)
		syntax("the line is too long");
	words[nwords++] = c;
}

static bool
is_name(char c)
{
	return ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_');
}

/* NULL if there is no variable of that name; "" is the name of those that are free. */
static struct variable *
find_variable(const char *name, size_t n)
{
	for (size_t i = 0; i < nitems(variables); i++)
		if (strncmp(variables[i].name, name, n) == 0 && variables[i].name[n] == '\0')
			return (&variables[i]);
	return (NULL);
}

/* name=value: false if it is not that. */
static bool
assign(const char *text)
{
	const char *mark = text;
	struct variable *v;

	while (is_name(*mark))
		mark++;
	if (*mark != '=' || mark == text || (*text >= '0' && *text <= '9') || mark - text >= (ptrdiff_t)sizeof(variables[0].name))
		return (false);
	if ((v = find_variable(text, mark - text)) == NULL) {
		if ((v = find_variable("", 0)) == NULL)
			errx(2, "%.*s: too many variables", (int)(mark - text), text);
		strlcpy(v->name, text, mark - text + 1);
	}
	free(v->value);
	v->value = strdup(mark + 1);
	return (true);
}

/* $(line): what it prints, without the ends of lines at the end. */
static void
substitute(const char *line, size_t length)
{
	char copy[MAXLINE];
	size_t start = nwords;
	ssize_t got;
	pid_t pid;
	int fds[2];

	if (!expanding)
		return;
	strlcpy(copy, line, MIN(sizeof(copy), length + 1));
	if (pipe(fds) != 0 || (pid = fork()) < 0)
		err(1, "$()");
	if (pid == 0) {
		dup2(fds[1], 1);
		close(fds[0]);
		close(fds[1]);
		run_line(copy);
		exit(last_status);
	}
	close(fds[1]);
	while ((got = read(fds[0], copy, sizeof(copy))) > 0)
		for (ssize_t i = 0; i < got; i++)
			add(copy[i]);
	close(fds[0]);
	while (nwords > start && words[nwords - 1] == '\n')
		nwords--;
	while (wait4(pid, NULL, 0, NULL) == -1 && errno == EINTR)
		continue;
}

/* The text after a dollar sign. */
static void
expand(void)
{
	const char *start = ++cursor, *value = NULL;
	struct variable *v;
	char number[12];
	int depth = 1;

	if (*start == '(') {
		for (cursor++; depth > 0; cursor++) {
			if (*cursor == '\0')
				syntax("$( is not closed");
			depth += (*cursor == '(') - (*cursor == ')');
		}
		substitute(start + 1, cursor - start - 2);
		return;
	}
	if (*start == '?') {
		snprintf(number, sizeof(number), "%d", last_status);
		value = number;
		cursor++;
	} else if (*start >= '0' && *start <= '9') {
		value = *start - '0' < narguments ? arguments[*start - '0'] : NULL;
		cursor++;
	} else {
		while (is_name(*cursor))
			cursor++;
		if (cursor == start)
			add('$');
		else if ((v = find_variable(start, cursor - start)) != NULL)
			value = v->value;
	}
	while (value != NULL && *value != '\0')
		add(*value++);
}

static void
advance(void)
{
	enum token which;
	size_t length;

	while (*cursor == ' ' || *cursor == '\t')
		cursor++;
	if (*cursor == '\0' || *cursor == '#') {
		token = END;
		return;
	}
	if (is_operator(&which, &length)) {
		cursor += length;
		token = which;
		return;
	}
	token = WORD;
	word = words + nwords;
	while (*cursor != '\0' && strchr(" \t;&|<>", *cursor) == NULL) {
		char quote = *cursor;

		if (quote == '\'' || quote == '"') {
			for (cursor++; *cursor != quote; cursor++) {
				if (*cursor == '\0')
					syntax("a quote is not closed");
				if (quote == '"' && *cursor == '$') {
					expand();
					cursor--;
				} else
					add(*cursor);
			}
			cursor++;
		} else if (quote == '$')
			expand();
		else
			add(*cursor++);
	}
	add('\0');
}

static void
parse_redirection(struct command *c)
{
	static const struct { int fd, flags; } kinds[] = {
		[INPUT] = { 0, O_RDONLY }, [OUTPUT] = { 1, O_WRONLY | O_CREAT | O_TRUNC },
		[APPEND] = { 1, O_WRONLY | O_CREAT | O_APPEND }, [ERROR_OUTPUT] = { 2, O_WRONLY | O_CREAT | O_TRUNC },
	};
	struct redirection *r = &c->redirections[c->nredirections++];

	if (c->nredirections > (int)nitems(c->redirections))
		syntax("too many redirections");
	if (token == ERROR_COPY) {
		*r = (struct redirection){ .fd = 2, .flags = -1, .from = 1 };
		advance();
		return;
	}
	*r = (struct redirection){ .fd = kinds[token].fd, .flags = kinds[token].flags };
	advance();
	if (token != WORD)
		syntax("a redirection to nowhere");
	r->path = word;
	advance();
}

static void
parse_command(struct command *c)
{
	*c = (struct command){ .argc = 0 };
	for (;;)
		if (token == WORD) {
			if (c->argc == MAXWORDS)
				syntax("too many words");
			c->argv[c->argc++] = word;
			advance();
		} else if (token >= INPUT)
			parse_redirection(c);
		else
			break;
	if (c->argc == 0 && c->nredirections == 0)
		syntax("a command is missing");
}

static void
redirect(const struct command *c)
{
	for (int i = 0; i < c->nredirections; i++) {
		const struct redirection *r = &c->redirections[i];
		int fd = r->from;

		if (r->flags >= 0 && (fd = open(r->path, r->flags, 0666)) < 0)
			err(1, "%s", r->path);
		dup2(fd, r->fd);
		if (r->flags >= 0 && fd != r->fd)
			close(fd);
	}
}

static void __dead2
execute(const struct command *c)
{
	if (c->argc == 0)
		_exit(0);
	execvp(c->argv[0], c->argv);
	if (errno == ENOENT)
		errx(127, "%s: not found", c->argv[0]);
	err(126, "%s", c->argv[0]);
}

static int
status_of(int status)
{
	static const char *const names[] = { [SIGILL] = "Illegal instruction", [SIGTRAP] = "Trace/BPT trap", [SIGABRT] = "Abort trap",
		[SIGKILL] = "Killed", [SIGBUS] = "Bus error", [SIGSEGV] = "Segmentation fault", [SIGTERM] = "Terminated" };
	int sig = WTERMSIG(status);

	if (WIFEXITED(status))
		return (WEXITSTATUS(status));
	if (sig < (int)nitems(names) && names[sig] != NULL)
		warnx("%s", names[sig]);
	return (128 + sig);
}

static int
wait_for(pid_t pid)
{
	int status = 0;

	while (wait4(pid, &status, 0, NULL) == -1 && errno == EINTR)
		continue;
	return (status_of(status));
}

/* test: -n and -z of a string, -r of a file, and = and != of two strings. */
static int
test(const struct command *c)
{
	if (c->argc == 3 && strcmp(c->argv[1], "-n") == 0)
		return (*c->argv[2] == '\0');
	if (c->argc == 3 && strcmp(c->argv[1], "-z") == 0)
		return (*c->argv[2] != '\0');
	if (c->argc == 3 && strcmp(c->argv[1], "-r") == 0)
		return (access(c->argv[2], R_OK) != 0);
	if (c->argc == 4 && strcmp(c->argv[2], "=") == 0)
		return (strcmp(c->argv[1], c->argv[3]) != 0);
	if (c->argc == 4 && strcmp(c->argv[2], "!=") == 0)
		return (strcmp(c->argv[1], c->argv[3]) == 0);
	warnx("test: what is to be tested?");
	return (2);
}

/* export name=value, unset name: the environment of the programs that are run from now on. */
static int
set_environment(const char *text, bool set)
{
	static char *environment[33];
	const char *mark = strchr(text, '=');
	size_t length = mark != NULL ? (size_t)(mark - text) : strlen(text), n = 0;

	if (set && mark == NULL) {
		warnx("export: %s: a value is missing", text);
		return (2);
	}
	for (char **env = environ; *env != NULL; env++)
		if (strncmp(*env, text, length) != 0 || (*env)[length] != '=') {
			if (n == nitems(environment) - 2)
				break;
			environment[n++] = *env;
		}
	if (set)
		environment[n++] = strdup(text);
	environment[n] = NULL;
	environ = environment;
	return (0);
}

/* Assignments and these commands are the shell's own; -1 if it is another command. */
static int
builtin(const struct command *c)
{
	int status;

	if (c->argc == 0)
		return (-1);
	if (c->argc == 1 && assign(c->argv[0]))
		return (0);
	if (strcmp(c->argv[0], "test") == 0)
		return (test(c));
	if (c->argc == 2 && (strcmp(c->argv[0], "export") == 0 || strcmp(c->argv[0], "unset") == 0))
		return (set_environment(c->argv[1], c->argv[0][0] == 'e'));
	if (strcmp(c->argv[0], "cd") == 0) {
		if (chdir(c->argc > 1 ? c->argv[1] : "/") == 0)
			return (0);
		warn("cd: %s", c->argv[1]);
		return (2);
	}
	if (strcmp(c->argv[0], "exit") == 0)
		exit(c->argc > 1 ? atol(c->argv[1]) : last_status);
	if (strcmp(c->argv[0], "wait") == 0) {
		while (wait(&status) > 0)
			continue;
		return (0);
	}
	return (-1);
}

/* One command on its own. Without redirections nothing has to be done in between: vfork. */
static int
run_simple(const struct command *c)
{
	int status = builtin(c);
	pid_t pid;

	if (status >= 0)
		return (status);
	fflush();
	pid = c->nredirections == 0 ? vfork() : fork();
	if (pid < 0) {
		warn("fork");
		return (1);
	}
	if (pid == 0) {
		redirect(c);
		execute(c);
	}
	return (wait_for(pid));
}

static int
run_pipeline(struct command *commands, int n, bool background)
{
	int in = 0, fds[2] = { -1, -1 }, status = 0;
	pid_t pids[8];

	if (n == 1 && !background)
		return (run_simple(&commands[0]));
	for (int i = 0; i < n; i++) {
		if (i < n - 1 && pipe(fds) != 0)
			err(1, "pipe");
		if ((pids[i] = fork()) < 0)
			err(1, "fork");
		if (pids[i] == 0) {
			if (in != 0) {
				dup2(in, 0);
				close(in);
			}
			if (i < n - 1) {
				dup2(fds[1], 1);
				close(fds[0]);
				close(fds[1]);
			}
			redirect(&commands[i]);
			execute(&commands[i]);
		}
		if (in != 0)
			close(in);
		if (i < n - 1) {
			close(fds[1]);
			in = fds[0];
		}
	}
	for (int i = 0; i < n && !background; i++)
		status = wait_for(pids[i]);
	return (status);
}

/* Commands joined by |. run: not false && this. */
static int
pipeline(bool run)
{
	static struct command commands[8];
	int n = 0;

	for (;;) {
		if (n == (int)nitems(commands))
			syntax("the pipeline is too long");
		parse_command(&commands[n++]);
		if (token != PIPE)
			break;
		advance();
	}
	return (run ? run_pipeline(commands, n, token == BACKGROUND) : last_status);
}

/* Pipelines joined by && and ||. */
static void
and_or(void)
{
	last_status = pipeline(true);
	while (token == AND || token == OR) {
		expanding = (token == AND) == (last_status == 0); /* from the next word on */
		advance();
		last_status = pipeline(expanding);
	}
	expanding = true;
}

static void
run_line(char *line)
{
	cursor = line;
	nwords = 0;
	expanding = true;
	advance();
	while (token != END) {
		and_or();
		if (token == SEMICOLON || token == BACKGROUND)
			advance();
		else if (token != END)
			syntax("; & or the end of the line is missing");
	}
}

int
main(int argc, char *argv[])
{
	static struct reader in;
	static char line[MAXLINE];

	arguments = argv;
	narguments = argc;
	if (argc == 3 && strcmp(argv[1], "-c") == 0) {
		strlcpy(line, argv[2], sizeof(line));
		run_line(line);
		return (last_status);
	}
	if (argc > 1) {
		if ((in.fd = open(argv[1], O_RDONLY | O_CLOEXEC)) < 0)
			err(127, "%s", argv[1]);
		arguments = argv + 1;
		narguments = argc - 1;
	}
	while (readline(&in, line, sizeof(line)) != NULL)
		run_line(line);
	return (last_status);
}
