/* admin_private.h: the listener's state, and what the answers are made of; for admin*.c. */
#ifndef ROLLCALL_ADMIN_ADMIN_PRIVATE_H
#define ROLLCALL_ADMIN_ADMIN_PRIVATE_H

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <event2/http.h>
#include <pthread.h>

#include "admin/admin.h"
#include "admin/admin_figures.h"
#include "admin/admin_history.h"

#define ADMIN_HEADERS_MAX 8192 /* bytes of a request */
#define ADMIN_ANSWERED    (EVHTTP_REQ_GET | EVHTTP_REQ_HEAD)
#define ADMIN_SHARED_US   1000000 /* an answer is good for so long */
#define ADMIN_CACHED_MAX  8

/* What an answer tells; while it loads nothing but that. */
struct admin_view {
    const struct admin_figures *figures;
    const struct admin_history *history;
};

/* Appends the answer. */
typedef void admin_make_fn(const struct admin_view *view, struct evbuffer *out);
admin_make_fn admin_make_metrics; /* admin_metrics.c */
admin_make_fn admin_make_json;    /* admin_json.c */
admin_make_fn admin_make_page;    /* admin_page.c */
admin_make_fn admin_make_script;  /* of the page */

/*
 * A connection. evhttp closes and frees its own without telling anybody, so one more reference is
 * held here; evhttp takes its callbacks off a bufferevent it has done with, and by that it is
 * known.
 */
struct admin_conn {
    struct bufferevent *bev; /* NULL: none */
    uint64_t since_us;
};

struct admin_cached {
    struct evbuffer *bytes; /* NULL: never made */
    uint64_t made_us;
};

struct admin {
    struct server *server;
    struct data *data;
    struct barrier_member *member;
    struct event_base *base;
    struct evhttp *http;
    struct evhttp_bound_socket *bound;
    struct event stop_event, tick_event, pause_event;
    int stop_fd; /* eventfd */
    pthread_t thread;
    bool started;
    _Atomic bool serving;
    _Atomic bool reload_failed; /* the last one */
    size_t conn_count;
    struct admin_conn conns[ADMIN_CONNECTIONS_MAX];
    struct admin_cached cached[ADMIN_CACHED_MAX]; /* by route */
    struct admin_figures *figures;
    uint64_t figures_us; /* 0: never read */
    struct admin_history *history;
    struct admin_survey *survey;
    char address[128];
};

/* admin_http.c: answers any request. */
void admin_http_request(struct evhttp_request *request, void *admin);

#endif
