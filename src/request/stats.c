#include "request/stats.h"

#include <stdio.h>
#include <string.h>

#include "request/stats_private.h"

void stats_text(void *context, const char *name, const char *text)
{
    struct stats_out *out = context;
    struct dispatch_worker *worker = out->worker;
    char whole[STATS_NAME_MAX];

    if (out->prefix != NULL) {
        snprintf(whole, sizeof(whole), "%s:%s", out->prefix, name);
        name = whole;
    }
    out->full |= !worker->codec->compose_stat(worker->out, out->request, name, text);
}

void stats_number(struct stats_out *out, const char *name, uint64_t number)
{
    char text[24];

    snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
    stats_text(out, name, text);
}

uint64_t stats_sum(const void *figures, size_t stride, size_t n, size_t offset)
{
    const char *at = (const char *)figures + offset;
    uint64_t sum = 0;

    for (size_t i = 0; i < n; i++) {
        sum += metric_read((const metric *)(at + i * stride));
    }
    return sum - metric_read((const metric *)(at + n * stride));
}

/* Notes the present figures of n who count in the entry after theirs, which is subtracted from now
 * on. */
static void rebase(void *figures, size_t stride, size_t n)
{
    for (size_t offset = 0; offset + sizeof(metric) <= stride; offset += sizeof(metric)) {
        metric *base = (metric *)((char *)figures + n * stride + offset);

        metric_add(base, stats_sum(figures, stride, n, offset));
    }
}

/* Makes the sums of the moment those that are subtracted. Any worker, in its turn. */
static void stats_reset(struct dispatch_worker *worker)
{
    struct server *server = worker->server;
    struct engine_figures held;
    struct net_metrics net;

    rebase(server->metrics, sizeof(server->metrics[0]), server_counting(server));
    for (size_t i = 0; i < worker->spaces->count; i++) {
        struct space *space = worker->spaces->at[i];

        rebase(space->metrics, sizeof(space->metrics[0]), server->threads);
    }
    stats_engines(worker->spaces, &held);
    atomic_store(&server->recycled_base, metric_read(&server->recycled_gone) + held.recycled);
    atomic_store(&server->log_lost_base, log_lost());
    net_metrics_sum(server->net, &net);
#define KEEP(name, meaning) atomic_store(&server->net_base.name, metric_read(&net.name));
    NET_METRICS(KEEP)
#undef KEEP
    atomic_store(&server->net_base.curr_connections, 0); /* not a count of events */
}

static void stats_settings(struct stats_out *out)
{
    settings_each(out->worker->settings, stats_text, out);
}

/* memcached's answer where it is off: that would be a walk over all values. */
static void stats_sizes(struct stats_out *out)
{
    stats_text(out, "sizes_status", "disabled");
}

static void stats_sizes_enable(struct stats_out *out)
{
    stats_text(out, "sizes_status", "error");
    stats_text(out, "sizes_error", "cannot_enable");
}

/* Tools ask for it and must get an answer; there is nothing to tell. */
static void stats_nothing(struct stats_out *out)
{
    (void)out;
}

struct group {
    const char *argument;
    stats_fn *emit;
    bool takes_words;
};

static const struct group groups[] = {
    {"", stats_general, false},
    {"settings", stats_settings, false},
    {"items", stats_items, false},
    {"slabs", stats_slabs, false},
    {"conns", stats_conns, false},
    {"spaces", stats_spaces, false},
    {"tables", stats_tables, true},
    {"extstore", stats_nothing, false},
    {"cold", stats_cold, false},
    {"replication", stats_replication, false},
    {"sizes", stats_sizes, false},
    {"sizes_enable", stats_sizes_enable, false},
    {"sizes_disable", stats_sizes, false},
    {"hot", stats_hot, false},
    {"slow", stats_slow, false},
    {"latency", stats_latency, false},
};

size_t stats_word(const char *words, size_t length)
{
    size_t n = 0;

    while (n < length && words[n] != ' ') {
        n++;
    }
    return n;
}

/* The first word names the group; `words` gets the others. */
static const struct group *group_find(const struct request *request, struct stats_out *out)
{
    const char *argument = request->value_length > 0 ? request->value : "";
    size_t name = stats_word(argument, request->value_length);

    out->words = argument + name;
    out->words_length = request->value_length - name;
    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        if (strlen(groups[i].argument) == name &&
            strncmp(groups[i].argument, argument, name) == 0) {
            return out->words_length == 0 || groups[i].takes_words ? &groups[i] : NULL;
        }
    }
    return NULL;
}

static bool is_reset(const struct request *request)
{
    return request->value_length == strlen("reset") &&
           memcmp(request->value, "reset", strlen("reset")) == 0;
}

/* Returns whether the first word of the request is this one. */
static bool is_word(const struct request *request, const char *word)
{
    return request->value_length > 0 &&
           stats_word(request->value, request->value_length) == strlen(word) &&
           memcmp(request->value, word, strlen(word)) == 0;
}

/* More figures than an empty output holds: of hundreds of connections, or spaces. */
static enum dispatch_end answer_full(struct dispatch_worker *worker, const struct request *request,
                                     size_t start)
{
    static const char words[] = "out of memory writing stats";
    const struct reply reply = {
        .status = REPLY_SERVER_ERROR, .value = words, .value_length = sizeof(words) - 1};

    buf_truncate(worker->out, start);
    if (start > 0) {
        return DISPATCH_FULL;
    }
    dispatch_reply(worker, request, &reply);
    return DISPATCH_DONE;
}

static enum dispatch_end answer_group(struct stats_out *out, stats_fn *emit)
{
    struct dispatch_worker *worker = out->worker;
    size_t start = worker->out->length;

    emit(out);
    if (out->wrong != NULL) {
        const struct reply reply = {
            .status = REPLY_CLIENT_ERROR, .value = out->wrong, .value_length = strlen(out->wrong)};

        dispatch_reply(worker, out->request, &reply);
        return DISPATCH_DONE;
    }
    if (out->full) {
        return answer_full(worker, out->request, start);
    }
    worker->codec->compose_stats_end(worker->out, out->request);
    return DISPATCH_DONE;
}

enum dispatch_end stats_answer(struct dispatch_worker *worker, const struct request *request)
{
    static const char no_detail[] = "stats detail not allowed"; /* memcached's, with -X */
    struct reply reply = {.status = REPLY_ERROR};
    struct stats_out out = {.worker = worker, .request = request};
    const struct group *group = group_find(request, &out);

    if (group != NULL) {
        return answer_group(&out, group->emit);
    }
    if (is_word(request, "cachedump")) {
        return dispatch_list_items(worker, request);
    }
    if (is_word(request, "detail")) {
        reply = (struct reply){.status = REPLY_CLIENT_ERROR,
                               .value = no_detail,
                               .value_length = sizeof(no_detail) - 1};
    }
    if (is_reset(request)) {
        stats_reset(worker);
        dispatch_log_deed(worker, "stats reset");
        reply.status = REPLY_RESET;
    }
    dispatch_reply(worker, request, &reply);
    return DISPATCH_DONE;
}
