/*
 * agent_etcd.h: etcd, through its JSON gateway (/v3/...): seven calls of its KV and lease services.
 * Only transactions and reads are trusted, never a lease's time.
 *
 * Several endpoints: the one that answered last is asked first, then the others, all within the
 * timeout. So the result of a call that failed is not known: look again. One thread.
 */
#ifndef ROLLCALL_TOOLS_AGENT_ETCD_H
#define ROLLCALL_TOOLS_AGENT_ETCD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AGENT_ETCD_ERROR_MAX     300
#define AGENT_ETCD_ENDPOINTS_MAX 16
#define AGENT_ETCD_KEY_MAX       256
#define AGENT_ETCD_COMPARES_MAX  2
#define AGENT_ETCD_PUTS_MAX      2
#define AGENT_ETCD_ANSWER_MAX    (4u << 20) /* bytes */

struct agent_etcd;

struct agent_etcd_options {
    const char *endpoints;       /* URLs with commas between them */
    const char *auth_file;       /* its first line is name:password; NULL: no login */
    const char *ca, *cert, *key; /* files, PEM; NULL: the system's, none, none */
    unsigned timeout_ms;         /* of a call, at all endpoints together */
};

/* NULL with `error`: a file or an endpoint is wrong. Connects to nobody yet. */
struct agent_etcd *agent_etcd_create(const struct agent_etcd_options *options,
                                     char error[AGENT_ETCD_ERROR_MAX]);
void agent_etcd_destroy(struct agent_etcd *etcd); /* NULL: no-op */
/* Why the last call failed. */
const char *agent_etcd_error(const struct agent_etcd *etcd);
/* It did because etcd refused it, as for a wrong login: it answers, and will no better next time.
 */
bool agent_etcd_refused(const struct agent_etcd *etcd);

/* All below: false: it failed. */

/* *ttl_s: what it was given, which may be more. */
bool agent_etcd_grant(struct agent_etcd *etcd, uint64_t wanted_s, int64_t *lease, uint64_t *ttl_s);
/* *ttl_s 0: there is no such lease any more. */
bool agent_etcd_keep(struct agent_etcd *etcd, int64_t lease, uint64_t *ttl_s);
bool agent_etcd_revoke(struct agent_etcd *etcd, int64_t lease);

struct agent_etcd_item {
    const char *key, *value; /* during the call */
    int64_t lease;           /* 0: none */
    int64_t revision;        /* of its last change */
};
typedef void agent_etcd_fn(void *context, const struct agent_etcd_item *item);
/* Reads all keys with this beginning, as of one moment that a majority agrees on. */
bool agent_etcd_read(struct agent_etcd *etcd, const char *prefix, agent_etcd_fn *take,
                     void *context);

/* All that is put if all compares hold. */
struct agent_etcd_txn {
    size_t compare_count, put_count;
    struct {
        char key[AGENT_ETCD_KEY_MAX];
        int64_t revision; /* 0: there is no such key */
    } compares[AGENT_ETCD_COMPARES_MAX];
    struct {
        char key[AGENT_ETCD_KEY_MAX];
        const char *value;
        int64_t lease; /* 0: none */
    } puts[AGENT_ETCD_PUTS_MAX];
};
/* *revision: of what was put; 0: a compare did not hold. */
bool agent_etcd_commit(struct agent_etcd *etcd, const struct agent_etcd_txn *txn,
                       int64_t *revision);

#endif
