/* admin_http.c: which answer a request gets. */
#include <stdio.h>
#include <string.h>

#include "admin/admin_private.h"
#include "admin/admin_survey.h"
#include "base/barrier.h"
#include "base/base64.h"
#include "base/clock.h"
#include "config/auth.h"
#include "data/follow.h"
#include "net/peer.h"
#include "request/auth_delay.h"

#define PLAIN_TEXT "text/plain; charset=utf-8"

/* ---- users ---- */

/* Cuts "Basic BASE64" of "name:password". False: it is not that. */
static bool parse_basic(const char *header, char given[2 * AUTH_LINE_MAX], size_t *name,
                        size_t *length)
{
    static const char scheme[] = "Basic ";
    const char *text = header + sizeof(scheme) - 1;

    if (evutil_ascii_strncasecmp(header, scheme, sizeof(scheme) - 1) != 0 ||
        strlen(text) > 2 * AUTH_LINE_MAX) {
        return false;
    }
    const char *colon =
        base64_decode(text, given, 2 * AUTH_LINE_MAX, length) ? memchr(given, ':', *length) : NULL;

    *name = colon != NULL ? (size_t)(colon - given) : 0;
    return colon != NULL;
}

enum door { DOOR_OPEN, DOOR_WHO, DOOR_WRONG, DOOR_LATER };

/* Counts as the memcached port does, whose logins wait for wrong passwords given here. */
static enum door look_at_password(struct server *server, const struct auth *users,
                                  const char *header, int fd)
{
    struct command_metrics *metrics = server_admin_metrics(server);
    char given[2 * AUTH_LINE_MAX];
    uint64_t now_us = clock_monotonic_us();
    uint64_t origin = net_peer_origin(fd);
    size_t name, length;

    if (header == NULL || !parse_basic(header, given, &name, &length)) {
        return DOOR_WHO;
    }
    if (!auth_delay_begin(server->auth_delay, origin, 0, now_us)) {
        explicit_bzero(given, sizeof(given));
        metric_add(&metrics->auth_refused, 1);
        return DOOR_LATER;
    }
    bool right = auth_check(users, given, name, given + name + 1, length - name - 1);

    auth_delay_end(server->auth_delay, origin, now_us, right);
    explicit_bzero(given, sizeof(given));
    metric_add(&metrics->auth_cmds, 1);
    metric_add(&metrics->auth_errors, right ? 0 : 1);
    return right ? DOOR_OPEN : DOOR_WRONG;
}

static enum door door_of(struct admin *admin, struct evhttp_request *request)
{
    struct evkeyvalq *headers = evhttp_request_get_input_headers(request);
    int fd = bufferevent_getfd(
        evhttp_connection_get_bufferevent(evhttp_request_get_connection(request)));
    enum door door = DOOR_OPEN;

    barrier_enter(admin->member);
    const struct auth *users = admin->server->settings->admin_auth;

    if (users != NULL) {
        door = look_at_password(admin->server, users, evhttp_find_header(headers, "Authorization"),
                                fd);
    }
    barrier_leave(admin->member);
    if (door == DOOR_WRONG || door == DOOR_LATER) {
        net_peer_log_refused(fd, door == DOOR_WRONG
                                     ? "wrong user or password for the admin listener"
                                     : "too many wrong passwords, this one for the admin listener");
    }
    return door;
}

/* ---- what there is ---- */

static double loaded_share(const struct data *data)
{
    struct data_stats stats;

    if (data == NULL) {
        return 0;
    }
    data_stats(data, &stats);
    return stats.load_total_bytes > 0
               ? (double)stats.load_done_bytes / (double)stats.load_total_bytes
               : 0;
}

static struct admin_view view_of(struct admin *admin)
{
    struct admin_figures *figures = admin->figures;
    bool serving = atomic_load(&admin->serving);
    uint64_t now_us = clock_monotonic_us();

    if (serving && (admin->figures_us == 0 || now_us - admin->figures_us >= ADMIN_SHARED_US)) {
        admin_figures_read(figures, admin->server, admin->member, true);
        admin_history_tell(admin->history, figures);
        admin_survey_tell(admin->survey, figures);
        admin->figures_us = now_us;
    }
    figures->serving = serving;
    figures->loaded = serving ? 1 : loaded_share(admin->data);
    figures->reload_well = !atomic_load(&admin->reload_failed);
    return (struct admin_view){figures, admin->history};
}

struct route {
    const char *path, *type;
    admin_make_fn *make; /* NULL: health() answers */
    bool (*is_so)(const struct admin *admin);
    const char *yes, *no;
};

static bool is_serving(const struct admin *admin)
{
    return atomic_load(&admin->serving);
}

static bool is_follower(const struct admin *admin)
{
    const struct server *server = admin->server;

    return is_serving(admin) && server->data != NULL && data_follows(server->data);
}

/* Returns whether this daemon is a leader. One that no longer takes changes is none. */
static bool is_leader(const struct admin *admin)
{
    return is_serving(admin) && !is_follower(admin) && !server_is_fenced(admin->server) &&
           (admin->server->journal == NULL || !journal_failed(admin->server->journal));
}

static const struct route routes[] = {
    {.path = "/", .type = "text/html; charset=utf-8", .make = admin_make_page},
    {.path = "/status.js", .type = "text/javascript; charset=utf-8", .make = admin_make_script},
    {.path = "/metrics",
     .type = "text/plain; version=0.0.4; charset=utf-8",
     .make = admin_make_metrics},
    {.path = "/status.json", .type = "application/json", .make = admin_make_json},
    {.path = "/healthz", .is_so = is_serving, .yes = "serving", .no = "not serving"},
    {.path = "/leader", .is_so = is_leader, .yes = "takes writes", .no = "takes no writes"},
    {.path = "/follower", .is_so = is_follower, .yes = "follows", .no = "follows nobody"},
};
#define ROUTES (sizeof(routes) / sizeof(routes[0]))
_Static_assert(ROUTES <= ADMIN_CACHED_MAX, "one cached answer a route");

static const struct route *route_of(const struct evhttp_request *request)
{
    const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(request);
    const char *path = uri != NULL ? evhttp_uri_get_path(uri) : NULL;

    for (size_t i = 0; path != NULL && i < ROUTES; i++) {
        if (strcmp(routes[i].path, path) == 0) {
            return &routes[i];
        }
    }
    return NULL;
}

/* ---- answering ---- */

/* One request a connection, so nobody holds a connection without using it. */
static void send_answer(struct evhttp_request *request, int code, const char *reason,
                        const char *type, struct evbuffer *body)
{
    static const char *const headers[][2] = {
        {"Connection", "close"},
        {"Cache-Control", "no-store"},
        {"X-Content-Type-Options", "nosniff"},
        {"Referrer-Policy", "no-referrer"},
        {"Content-Security-Policy",
         "default-src 'none'; style-src 'unsafe-inline'; script-src 'self'; connect-src 'self'; "
         "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
    };
    struct evkeyvalq *out = evhttp_request_get_output_headers(request);

    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
        evhttp_add_header(out, headers[i][0], headers[i][1]);
    }
    evhttp_add_header(out, "Content-Type", type);
    evhttp_send_reply(request, code, reason, body);
}

static void send_words(struct evhttp_request *request, int code, const char *reason,
                       const char *words)
{
    struct evbuffer *body = evbuffer_new();

    evbuffer_add_printf(body, "%s\n", words);
    send_answer(request, code, reason, PLAIN_TEXT, body);
    evbuffer_free(body);
}

static void send_health(struct admin *admin, struct evhttp_request *request,
                        const struct route *route)
{
    char words[64];
    bool is_so = route->is_so(admin);

    snprintf(words, sizeof(words), "%s", is_so ? route->yes : route->no);
    if (!is_serving(admin) && admin->data != NULL) {
        snprintf(words, sizeof(words), "loading, %.0f %%", 100 * loaded_share(admin->data));
    }
    send_words(request, is_so ? HTTP_OK : HTTP_SERVUNAVAIL, is_so ? "OK" : "Service Unavailable",
               words);
}

/* Requests of the same second share the bytes; slow readers hold no copies of their own. */
static void send_made(struct admin *admin, struct evhttp_request *request,
                      const struct route *route)
{
    struct admin_cached *cached = &admin->cached[route - routes];
    struct evbuffer *body = evbuffer_new();
    uint64_t now_us = clock_monotonic_us();

    if (cached->bytes == NULL || now_us - cached->made_us >= ADMIN_SHARED_US) {
        struct admin_view view = view_of(admin);

        if (cached->bytes != NULL) {
            evbuffer_free(cached->bytes);
        }
        cached->bytes = evbuffer_new();
        route->make(&view, cached->bytes);
        cached->made_us = now_us;
    }
    evbuffer_add_buffer_reference(body, cached->bytes);
    send_answer(request, HTTP_OK, "OK", route->type, body);
    evbuffer_free(body);
}

void admin_http_request(struct evhttp_request *request, void *context)
{
    struct admin *admin = context;
    const struct route *route = route_of(request);

    if (route == NULL) {
        send_words(request, HTTP_NOTFOUND, "Not Found",
                   "there are /, /metrics, /status.json, /healthz, /leader and /follower");
        return;
    }
    if ((evhttp_request_get_command(request) & ADMIN_ANSWERED) == 0) {
        evhttp_add_header(evhttp_request_get_output_headers(request), "Allow", "GET, HEAD");
        send_words(request, HTTP_BADMETHOD, "Method Not Allowed", "this listener only tells");
        return;
    }
    switch (route->make != NULL ? door_of(admin, request) : DOOR_OPEN) {
    case DOOR_WHO:
    case DOOR_WRONG:
        evhttp_add_header(evhttp_request_get_output_headers(request), "WWW-Authenticate",
                          "Basic realm=\"rollcalld\", charset=\"UTF-8\"");
        send_words(request, 401, "Unauthorized", "a user and password of admin-auth are needed");
        return;
    case DOOR_LATER:
        send_words(request, 429, "Too Many Requests", "too many wrong passwords, try again later");
        return;
    case DOOR_OPEN:
        break;
    }
    if (route->make == NULL) {
        send_health(admin, request, route);
    } else {
        send_made(admin, request, route);
    }
}
