/*
 * dispatch_list.c: lists the keys of the plain space, then those of spaces of ids
 * (dispatch_records.c): lru_crawler metadump and mgdump, stats cachedump; lru_crawler export.
 *
 * A list goes on over as many turns as it takes: the connection remembers how far it is, and the
 * request is run again. A turn ends when the output is full or LIST_STEPS_MAX steps of the engine's
 * walk were made, so that others have theirs.
 */
#include <string.h>

#include "base/clock.h"
#include "base/num.h"
#include "plain/plain.h"
#include "request/dispatch_private.h"

#define LIST_STEPS_MAX       4096
#define LIST_PLAIN_DONE      UINT64_MAX /* list_cursor: plain keys are listed, others follow */
#define LIST_WORDS_MAX       4          /* of a request */
#define CRAWLER_CLASS_MAX    64         /* as memcached's: a list of classes names none beyond */
#define CRAWLER_SLEEP_MAX_US 1000000

struct list_words {
    size_t count;
    struct {
        const char *bytes;
        size_t length;
    } at[LIST_WORDS_MAX];
};

static void list_split(const struct request *request, struct list_words *words)
{
    const char *at = request->value;
    const char *end = at + request->value_length;
    words->count = 0;
    while (request->value_length > 0 && at < end) {
        const char *space = memchr(at, ' ', (size_t)(end - at));
        const char *stop = space != NULL ? space : end;
        if (stop > at && words->count++ < LIST_WORDS_MAX) {
            words->at[words->count - 1].bytes = at;
            words->at[words->count - 1].length = (size_t)(stop - at);
        }
        at = stop + 1;
    }
}

static bool word_is(const struct list_words *words, size_t i, const char *word)
{
    return i < words->count && words->at[i].length == strlen(word) &&
           memcmp(words->at[i].bytes, word, strlen(word)) == 0;
}

static bool word_number(const struct list_words *words, size_t i, uint64_t *number)
{
    return i < words->count && num_parse(words->at[i].bytes, words->at[i].length, number);
}

static enum dispatch_end list_say(struct dispatch_worker *worker, const struct request *request,
                                  enum reply_status status, const char *words)
{
    const struct reply reply = {
        .status = status, .value = words, .value_length = words != NULL ? strlen(words) : 0};
    dispatch_reply(worker, request, &reply);
    return DISPATCH_DONE;
}

/* A step of the walk, as it is composed. */
struct list_step {
    struct dispatch_worker *worker;
    enum listing listing;
    uint64_t left;   /* keys that may still be listed */
    uint64_t listed; /* by this step */
    bool full;
};

static void list_key(void *context, const char *bytes, size_t length, const struct plain_hit *hit)
{
    struct list_step *step = context;
    uint64_t now = clock_wall_s();
    const struct listed_key key = {
        .bytes = bytes,
        .length = length,
        .value_length = hit->value_length,
        .cas = hit->cas,
        .flags = hit->flags,
        .expires_at = hit->ttl_s < 0 ? 0 : now + (uint32_t)hit->ttl_s,
        .accessed_at = now - hit->idle_s,
        .item_bytes = hit->item_bytes,
        .class = ENGINE_MEMORY_PLAIN,
        .fetched = hit->fetched,
    };
    if (step->full || step->listed == step->left) {
        return;
    }
    step->full = !step->worker->codec->list_key(step->worker->out, step->listing, &key);
    step->listed += !step->full;
}

/* Plain keys; most: to list at most. */
static enum dispatch_end list_plain(struct dispatch_worker *worker, enum listing listing,
                                    uint64_t most)
{
    struct dispatch_conn *conn = worker->conn;
    struct space *plain = worker->spaces->plain;
    bool more = plain != NULL && conn->listed < most;
    for (unsigned i = 0; more && i < LIST_STEPS_MAX; i++) {
        struct list_step step = {worker, listing, most - conn->listed, 0, false};
        uint64_t cursor = conn->list_cursor;
        size_t before = worker->out->length;
        more = plain_walk(plain->engine, &cursor, list_key, &step);
        if (step.full) { /* again, with an empty output */
            buf_truncate(worker->out, before);
            return before > 0 ? DISPATCH_AGAIN : DISPATCH_CLOSE;
        }
        conn->list_cursor = cursor;
        conn->listed += step.listed;
        more = more && conn->listed < most;
    }
    if (more) {
        return DISPATCH_AGAIN;
    }
    conn->list_cursor = LIST_PLAIN_DONE;
    return DISPATCH_DONE;
}

/* Which keys a list of classes means. */
struct list_classes {
    bool plain;
    bool ids; /* of spaces of ids */
};

/* most: plain keys to list at most. */
static enum dispatch_end list_keys(struct dispatch_worker *worker, const struct request *request,
                                   enum listing listing, const struct list_classes *classes,
                                   uint64_t most)
{
    struct dispatch_conn *conn = worker->conn;
    enum dispatch_end end = DISPATCH_DONE;
    if (conn->list_cursor != LIST_PLAIN_DONE) {
        end = list_plain(worker, listing, classes->plain ? most : 0);
    }
    if (end == DISPATCH_DONE && classes->ids) {
        end = dispatch_records_all(worker, request, listing);
    }
    if (end == DISPATCH_DONE && !worker->codec->list_end(worker->out, listing)) {
        return DISPATCH_AGAIN;
    }
    if (end == DISPATCH_DONE || end == DISPATCH_CLOSE) {
        conn->list_cursor = conn->listed = 0;
    }
    return end;
}

/* "all", "hash", or numbers of classes with commas between. */
static bool read_classes(const char *bytes, size_t length, struct list_classes *classes)
{
    const char *end = bytes + length;
    bool all = (length == 3 && memcmp(bytes, "all", 3) == 0) ||
               (length == 4 && memcmp(bytes, "hash", 4) == 0);
    *classes = (struct list_classes){all, all};
    if (all) {
        return true;
    }
    while (bytes < end) {
        const char *comma = memchr(bytes, ',', (size_t)(end - bytes));
        const char *stop = comma != NULL ? comma : end;
        uint64_t class;
        if (!num_parse(bytes, (size_t)(stop - bytes), &class) || class == 0 ||
            class >= CRAWLER_CLASS_MAX) {
            return false;
        }
        classes->plain |= class == ENGINE_MEMORY_PLAIN;
        classes->ids |= class == ENGINE_MEMORY_TABLES;
        bytes = stop + 1;
    }
    return true;
}

static enum dispatch_end list_dump(struct dispatch_worker *worker, const struct request *request,
                                   const struct list_words *words)
{
    enum listing listing = word_is(words, 0, "mgdump") ? LISTING_GETS : LISTING_META;
    struct list_classes classes;
    if (!worker->settings->list_keys) {
        return list_say(worker, request, REPLY_ERROR,
                        listing == LISTING_META ? " metadump not allowed"
                                                : " key dump not allowed");
    }
    if (!read_classes(words->at[1].bytes, words->at[1].length, &classes)) {
        return list_say(worker, request, REPLY_WORDS, "BADCLASS invalid class id");
    }
    return list_keys(worker, request, listing, &classes, UINT64_MAX);
}

/* export SPACE [FROM] */
static enum dispatch_end list_export(struct dispatch_worker *worker, const struct request *request,
                                     const struct list_words *words)
{
    uint64_t from = 0;
    if (!worker->settings->list_keys) {
        return list_say(worker, request, REPLY_ERROR, " export not allowed");
    }
    if (words->count == 3 && (!word_number(words, 2, &from) || from > PATTERN_ID_MAX)) {
        return list_say(worker, request, REPLY_CLIENT_ERROR,
                        "export SPACE [FROM]: FROM is an id, 0 to 9223372036854775807");
    }
    char name[ENGINE_SPACE_NAME_MAX + 1] = "";
    if (words->at[1].length < sizeof(name)) {
        memcpy(name, words->at[1].bytes, words->at[1].length);
    }
    return dispatch_records_export(worker, request, name, from);
}

/* What else there is sets up a crawler. There is none: what has expired goes as it is met. */
static enum dispatch_end crawler_set_up(struct dispatch_worker *worker,
                                        const struct request *request,
                                        const struct list_words *words)
{
    uint64_t number;
    struct list_classes classes;
    if (words->count == 1 && (word_is(words, 0, "enable") || word_is(words, 0, "disable"))) {
        return list_say(worker, request, REPLY_OK, NULL);
    }
    if (words->count == 2 && word_is(words, 0, "crawl")) {
        return read_classes(words->at[1].bytes, words->at[1].length, &classes)
                   ? list_say(worker, request, REPLY_OK, NULL)
                   : list_say(worker, request, REPLY_WORDS, "BADCLASS invalid class id");
    }
    bool sleep = word_is(words, 0, "sleep");
    if (words->count != 2 || !(sleep || word_is(words, 0, "tocrawl"))) {
        return list_say(worker, request, REPLY_ERROR, NULL);
    }
    if (!word_number(words, 1, &number) || number > UINT32_MAX) {
        return list_say(worker, request, REPLY_CLIENT_ERROR, "bad command line format");
    }
    if (sleep && number > CRAWLER_SLEEP_MAX_US) {
        return list_say(worker, request, REPLY_CLIENT_ERROR, "sleep must be one second or less");
    }
    return list_say(worker, request, REPLY_OK, NULL);
}

enum dispatch_end dispatch_list_crawler(struct dispatch_worker *worker,
                                        const struct request *request)
{
    struct list_words words;
    list_split(request, &words);
    if (words.count == 2 && (word_is(&words, 0, "metadump") || word_is(&words, 0, "mgdump"))) {
        return list_dump(worker, request, &words);
    }
    if ((words.count == 2 || words.count == 3) && word_is(&words, 0, "export")) {
        return list_export(worker, request, &words);
    }
    return crawler_set_up(worker, request, &words);
}

/* stats cachedump CLASS LIMIT; a limit of 0 is none */
enum dispatch_end dispatch_list_items(struct dispatch_worker *worker, const struct request *request)
{
    struct list_words words;
    uint64_t class;
    uint64_t limit;
    list_split(request, &words);
    if (worker->codec->list_key == NULL) {
        return list_say(worker, request, REPLY_ERROR, NULL);
    }
    if (!worker->settings->list_keys) {
        return list_say(worker, request, REPLY_CLIENT_ERROR, "stats cachedump not allowed");
    }
    if (words.count < 3) {
        return list_say(worker, request, REPLY_CLIENT_ERROR, "bad command line");
    }
    if (!word_number(&words, 1, &class) || !word_number(&words, 2, &limit)) {
        return list_say(worker, request, REPLY_CLIENT_ERROR, "bad command line format");
    }
    if (class >= CRAWLER_CLASS_MAX) {
        return list_say(worker, request, REPLY_CLIENT_ERROR, "Illegal slab id");
    }
    limit = limit == 0 ? UINT64_MAX : limit;
    const struct list_classes classes = {.plain = class == ENGINE_MEMORY_PLAIN};
    return list_keys(worker, request, LISTING_ITEMS, &classes, limit);
}
