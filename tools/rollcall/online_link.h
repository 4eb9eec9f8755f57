/*
 * online_link.h: a connection to a daemon: over the memcached protocol, which every daemon speaks,
 * or over HTTP to its status page, for those who may only look.
 *
 * Every wait ends after the timeout. What goes wrong is told on stderr once, with the exit status
 * that it means; after that a link only fails. One thread.
 */
#ifndef ROLLCALL_TOOLS_ONLINE_LINK_H
#define ROLLCALL_TOOLS_ONLINE_LINK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/exit_status.h"
#include "tools/rollcall/wire_peer.h"

#define ONLINE_ADMIN_PORT "11280"
#define ONLINE_ERROR_MAX  WIRE_ERROR_MAX

/* Whom to ask, and how. */
struct online_target {
    struct wire_target wire; /* its server also http://host:port */
    unsigned timeout_ms;
};

struct online_link;

bool online_is_http(const struct online_target *target);

/*
 * Opens a link, and logs in with an auth_file. Never NULL: online_status() says whether it is good.
 * quiet: errors are kept, not printed. `target` outlives the link.
 */
struct online_link *online_open(const struct online_target *target, bool quiet);
void online_close(struct online_link *link); /* NULL: no-op */

/* A line of an answer, without its end; the last one (END, STORED, an error) too. */
typedef void online_line_fn(void *context, const char *line, size_t length);
/*
 * Sends a command, with its \r\n, and reads the answer. False: it was lost, or refused for want of
 * a login: told. An error line of the daemon's is an answer.
 */
bool online_ask(struct online_link *link, const char *command, online_line_fn *take, void *context);
/* Over HTTP: the body of a path, the caller's to free; NULL: told. */
char *online_get(struct online_link *link, const char *path);

/* Tells (or keeps) an error and returns false. */
__attribute__((format(printf, 3, 4))) bool
online_fail(struct online_link *link, enum exit_status status, const char *format, ...);
/* Why it failed: EXIT_STATUS_DONE if it did not. */
enum exit_status online_status(const struct online_link *link);
const char *online_error(const struct online_link *link);
/* It could not be opened because no process listens there. */
bool online_is_absent(const struct online_link *link);

#endif
