/* The two lists of BSD's <sys/queue.h> this kernel uses. */
#ifndef SYS_QUEUE_H
#define SYS_QUEUE_H

#define TAILQ_HEAD(name, type)     \
	struct name {              \
		struct type *tqh_first; \
		struct type **tqh_last; \
	}
#define TAILQ_HEAD_INITIALIZER(head) { NULL, &(head).tqh_first }
#define TAILQ_ENTRY(type)          \
	struct {                   \
		struct type *tqe_next;  \
		struct type **tqe_prev; \
	}
#define TAILQ_INIT(head) ((head)->tqh_first = NULL, (head)->tqh_last = &(head)->tqh_first)
#define TAILQ_FIRST(head) ((head)->tqh_first)
#define TAILQ_EMPTY(head) ((head)->tqh_first == NULL)
#define TAILQ_NEXT(elm, field) ((elm)->field.tqe_next)
#define TAILQ_FOREACH(var, head, field) \
	for ((var) = TAILQ_FIRST(head); (var) != NULL; (var) = TAILQ_NEXT(var, field))
#define TAILQ_FOREACH_SAFE(var, head, field, next) \
	for ((var) = TAILQ_FIRST(head); (var) != NULL && ((next) = TAILQ_NEXT(var, field), 1); (var) = (next))
#define TAILQ_INSERT_TAIL(head, elm, field)                    \
	do {                                                   \
		(elm)->field.tqe_next = NULL;                  \
		(elm)->field.tqe_prev = (head)->tqh_last;      \
		*(head)->tqh_last = (elm);                     \
		(head)->tqh_last = &(elm)->field.tqe_next;     \
	} while (0)
#define TAILQ_INSERT_HEAD(head, elm, field)                                    \
	do {                                                                   \
		if (((elm)->field.tqe_next = (head)->tqh_first) != NULL)       \
			(head)->tqh_first->field.tqe_prev = &(elm)->field.tqe_next; \
		else                                                           \
			(head)->tqh_last = &(elm)->field.tqe_next;             \
		(head)->tqh_first = (elm);                                     \
		(elm)->field.tqe_prev = &(head)->tqh_first;                    \
	} while (0)
#define TAILQ_INSERT_BEFORE(listelm, elm, field)                   \
	do {                                                       \
		(elm)->field.tqe_prev = (listelm)->field.tqe_prev; \
		(elm)->field.tqe_next = (listelm);                 \
		*(listelm)->field.tqe_prev = (elm);                \
		(listelm)->field.tqe_prev = &(elm)->field.tqe_next; \
	} while (0)
#define TAILQ_REMOVE(head, elm, field)                                         \
	do {                                                                   \
		if ((elm)->field.tqe_next != NULL)                             \
			(elm)->field.tqe_next->field.tqe_prev = (elm)->field.tqe_prev; \
		else                                                           \
			(head)->tqh_last = (elm)->field.tqe_prev;              \
		*(elm)->field.tqe_prev = (elm)->field.tqe_next;                \
	} while (0)

#endif
