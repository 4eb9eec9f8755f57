/*
 * dispatch_records.c: records of spaces of ids, in the order of their ids, as lists of keys or as
 * an export. The lister collects a batch (lister.h) while the request is suspended; a turn answers
 * LIST_ITEMS_MAX items of it. Items that no file has told are read here as any get reads them, so a
 * page of a dumped table may be waited for.
 *
 * A request that waits is run at each tick: whether the lister has gone on, or there is room for
 * its reads. Its time begins anew with each step.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/num.h"
#include "request/dispatch_private.h"
#include "request/lister.h"

#define LIST_ITEMS_MAX 4096
#define HEAD_MAX       1024 /* bytes of the first line of an export … */
#define LIST_END_MAX   16   /* … and of the last one of any list, at most */

static const char placeholder[] = "{id}";

static struct ticket ticket_of(const struct dispatch_worker *worker)
{
    return (struct ticket){net_wake, worker->net, worker->serial};
}

void dispatch_records_closed(struct dispatch_worker *worker, const struct net_conn *conn)
{
    const struct ticket ticket = {net_wake, worker->net, net_conn_serial(conn)};

    lister_drop(worker->server->lister, &ticket);
}

bool dispatch_records_lists(const struct dispatch_worker *worker, const struct net_conn *conn)
{
    const struct ticket ticket = {net_wake, worker->net, net_conn_serial(conn)};

    return lister_find(worker->server->lister, &ticket) != NULL;
}

static void records_drop(struct dispatch_worker *worker)
{
    const struct ticket ticket = ticket_of(worker);

    lister_drop(worker->server->lister, &ticket);
}

static enum dispatch_end records_say(struct dispatch_worker *worker, const struct request *request,
                                     enum reply_status status, const char *words)
{
    const struct reply reply = {.status = status, .value = words, .value_length = strlen(words)};

    dispatch_reply(worker, request, &reply);
    return DISPATCH_DONE;
}

/* A client that reads a list waits for its end, so the connection ends instead. */
static enum dispatch_end records_fail(struct dispatch_worker *worker, const struct request *request,
                                      const char *words)
{
    (void)records_say(worker, request, REPLY_SERVER_ERROR, words);
    records_drop(worker);
    return DISPATCH_CLOSE;
}

/* ---- reading ---- */

static const struct engine_collected *item_at(const struct lister_list *list, size_t i)
{
    return &list->collect.items[i];
}

/* Fills operations for the next items without a text; how many. */
static size_t begin_reading(struct dispatch_worker *worker, struct lister_list *list)
{
    size_t left = list->collect.count - list->at;
    size_t n = 0;

    list->read_from = list->at;
    list->read_to = list->at + (left < LISTER_OPS ? left : LISTER_OPS);
    for (size_t i = list->read_from; i < list->read_to; i++) {
        struct engine_op *op = &list->ops[i - list->read_from];

        if (item_at(list, i)->text_length > 0) {
            continue;
        }
        *op = (struct engine_op){.verb = ENGINE_READ,
                                 .slot = ENGINE_SLOT_RECORD,
                                 .id = item_at(list, i)->id,
                                 .want_cas = list->listing == LISTING_META,
                                 .ticket = ticket_of(worker),
                                 .value = list->values[i - list->read_from]};
        list->op_list[n++] = op;
    }
    return n;
}

/* DONE: the next items are read. */
static enum dispatch_end read_items(struct dispatch_worker *worker, const struct request *request,
                                    struct lister_list *list, struct engine *engine)
{
    size_t n = begin_reading(worker, list);
    struct engine_op *pending = NULL;
    bool busy = false;

    if (n == 0) {
        return DISPATCH_DONE;
    }
    engine->functions->prepare(engine, list->op_list, n);
    engine->functions->read(engine, list->op_list, n);
    dispatch_cold_look(worker, list->op_list, n);
    for (size_t i = 0; i < n; i++) {
        struct engine_op *op = list->op_list[i];

        pending = op->status == ENGINE_PENDING ? op : pending;
        busy = busy || (op->status == ENGINE_ERROR && op->error == ENGINE_E_BUSY);
        if (op->status == ENGINE_ERROR && op->error != ENGINE_E_BUSY) {
            return records_fail(worker, request, "disk read failed");
        }
    }
    if (pending == NULL && !busy) {
        return DISPATCH_DONE;
    }
    list->read_to = list->read_from; /* all of them again */
    if (pending == NULL && worker->conn->cold) {
        return DISPATCH_AGAIN; /* what it holds, and gives back, may be the room it wants */
    }
    worker->conn->waits_for = WATCH_DISK;
    bool waits = pending != NULL ? dispatch_wait_op(worker, request, engine, pending)
                                 : dispatch_wait(worker, request);

    return waits ? DISPATCH_PENDING : records_fail(worker, request, "disk read failed");
}

/* ---- composing ---- */

static size_t print_key(const struct space *space, uint64_t id, enum listing listing,
                        char key[PATTERN_KEY_MAX])
{
    if (listing == LISTING_RECORDS) {
        return num_print(key, id);
    }
    const char *pattern = space->settings.key;
    const char *at = strstr(pattern, placeholder);
    size_t before = (size_t)(at - pattern);
    const char *behind = at + sizeof(placeholder) - 1;

    memcpy(key, pattern, before);
    size_t length = before + num_print(key + before, id);

    memcpy(key + length, behind, strlen(behind));
    return length + strlen(behind);
}

/* False: there is no room in the output. */
static bool records_put(struct dispatch_worker *worker, const struct lister_list *list,
                        const struct space *space)
{
    const struct engine_collected *item = item_at(list, list->at);
    const struct engine_op *op = &list->ops[list->at - list->read_from];
    bool told = item->text_length > 0;
    char bytes[PATTERN_KEY_MAX];

    if (!told && op->status != ENGINE_DONE) {
        return true; /* it has gone meanwhile */
    }
    struct listed_key key = {
        .bytes = bytes,
        .length = print_key(space, item->id, list->listing, bytes),
        .value = told ? list->collect.texts + item->text_at : op->value,
        .value_length = told ? item->text_length : op->value_length,
        .cas = told ? 0 : op->cas_now,
        .flags = space->settings.value_flags,
        .accessed_at = clock_wall_s(),
        .class = ENGINE_MEMORY_TABLES,
    };

    key.item_bytes = (uint32_t)(key.length + key.value_length);
    return worker->codec->list_key(worker->out, list->listing, &key);
}

/* DONE: the batch is used up. */
static enum dispatch_end put_batch(struct dispatch_worker *worker, const struct request *request,
                                   struct lister_list *list, const struct space *space)
{
    if (list->fresh) { /* that it came is a step */
        list->fresh = false;
        worker->conn->waits_since_us = 0;
    }
    for (unsigned n = 0; n < LIST_ITEMS_MAX && list->at < list->collect.count; n++) {
        if (list->at >= list->read_to) {
            enum dispatch_end end = read_items(worker, request, list, space->engine);

            if (end != DISPATCH_DONE) {
                return end;
            }
            worker->conn->waits_since_us = 0;
        }
        if (!records_put(worker, list, space)) {
            return worker->out->length > 0 ? DISPATCH_AGAIN : DISPATCH_CLOSE;
        }
        list->at++;
    }
    return list->at < list->collect.count ? DISPATCH_AGAIN : DISPATCH_DONE;
}

/* ---- the list ---- */

/* Returns the first space of ids after the one of that name; "": the first of all. NULL: there is
 * none. */
static struct space *space_behind(const struct spaces *spaces, const char *name)
{
    bool behind = name[0] == '\0';

    for (size_t i = 0; i < spaces->count; i++) {
        if (behind && spaces->at[i]->settings.kind == SPACE_COUNTER) {
            return spaces->at[i];
        }
        behind = behind || strcmp(spaces->at[i]->name, name) == 0;
    }
    return NULL;
}

/* Texts of a batch have the slots of when it was collected. */
static uint64_t slots_hash(const struct space *space)
{
    uint64_t hash = space->settings.slot_count;

    for (size_t i = 0; i < space->settings.slot_count; i++) {
        const char *name = space->settings.slots[i].name;

        hash = hash_bytes(name, strlen(name) + 1, hash);
    }
    return hash;
}

/* A list begins with a space. */
static void take_space(struct lister_list *list, const struct space *space, uint64_t from)
{
    memcpy(list->space, space->name, sizeof(list->space));
    list->slots = slots_hash(space);
    list->from = from;
}

/* False: there is none. */
static bool take_next_space(struct dispatch_worker *worker, struct lister_list *list)
{
    const struct space *next = list->alone ? NULL : space_behind(worker->spaces, list->space);

    if (next == NULL) {
        return false;
    }
    take_space(list, next, 0);
    return true;
}

/* Waits for the lister, unless that has done nothing for as long as a request may wait. */
static enum dispatch_end records_await(struct dispatch_worker *worker,
                                       const struct request *request, struct lister_list *list)
{
    uint64_t steps = lister_steps(worker->server->lister);

    worker->conn->waits_for = WATCH_DISK;
    if (steps != list->steps_seen) {
        list->steps_seen = steps;
        worker->conn->waits_since_us = 0;
    }
    return dispatch_wait(worker, request) ? DISPATCH_PENDING
                                          : records_fail(worker, request, "disk read failed");
}

/* The batch is used up. False: so is the list. */
static bool go_on(struct dispatch_worker *worker, struct lister_list *list)
{
    lister_used(worker->server->lister, list);
    list->from = list->collect.next;
    return !list->collect.ended || take_next_space(worker, list);
}

/* DONE: all is listed, and the list is gone. */
static enum dispatch_end run_list(struct dispatch_worker *worker, const struct request *request,
                                  struct lister_list *list)
{
    struct lister *lister = worker->server->lister;
    bool more = !list->ended && (list->space[0] != '\0' || take_next_space(worker, list));

    while (more) {
        const struct space *space = spaces_find(worker->spaces, list->space);
        bool same = space != NULL && slots_hash(space) == list->slots;
        enum lister_state state = lister_look(lister, list);

        if (state == LISTER_IDLE && same) {
            lister_ask(lister, list);
            state = LISTER_WAITS;
        }
        if (state == LISTER_WAITS) {
            return records_await(worker, request, list);
        }
        if (state == LISTER_FAILED) {
            return records_fail(worker, request, list->collect.error);
        }
        if (!same || state == LISTER_GONE) {
            return records_fail(worker, request, "the configuration changed; try again");
        }
        enum dispatch_end end = put_batch(worker, request, list, space);

        if (end != DISPATCH_DONE) {
            return end;
        }
        more = go_on(worker, list);
    }
    list->ended = true;
    if (worker->out->length > 0 && buf_room(worker->out, LIST_END_MAX) == NULL) {
        return DISPATCH_AGAIN;
    }
    records_drop(worker);
    return DISPATCH_DONE;
}

/* NULL: there are as many as there may be. */
static struct lister_list *list_of(struct dispatch_worker *worker, enum listing listing)
{
    const struct ticket ticket = ticket_of(worker);
    struct lister_list *list = lister_find(worker->server->lister, &ticket);

    if (list == NULL) {
        list = lister_begin(worker->server->lister, &ticket);
        if (list != NULL) {
            list->listing = listing;
        }
    }
    return list;
}

/* Answers BUSY in memcached's words, where one list at a time can be had. */
static enum dispatch_end say_busy(struct dispatch_worker *worker, const struct request *request)
{
    (void)records_say(worker, request, REPLY_WORDS, "BUSY currently processing crawler request");
    return DISPATCH_CLOSE;
}

enum dispatch_end dispatch_records_all(struct dispatch_worker *worker,
                                       const struct request *request, enum listing listing)
{
    struct lister_list *list;

    if (space_behind(worker->spaces, "") == NULL) {
        return DISPATCH_DONE;
    }
    list = list_of(worker, listing);
    return list != NULL ? run_list(worker, request, list) : say_busy(worker, request);
}

/* "EXPORT feed repost,comment,like" */
static void say_head(struct dispatch_worker *worker, const struct request *request,
                     const struct space *space)
{
    char head[HEAD_MAX];
    int length = snprintf(head, sizeof(head), "EXPORT %s ", space->name);

    for (size_t i = 0; i < space->settings.slot_count; i++) {
        length += snprintf(head + length, sizeof(head) - (size_t)length, "%s%s", i > 0 ? "," : "",
                           space->settings.slots[i].name);
    }
    (void)records_say(worker, request, REPLY_WORDS, head);
}

enum dispatch_end dispatch_records_export(struct dispatch_worker *worker,
                                          const struct request *request, const char *name,
                                          uint64_t from)
{
    const struct ticket ticket = ticket_of(worker);
    struct lister_list *list = lister_find(worker->server->lister, &ticket);
    const struct space *space = spaces_find(worker->spaces, name);

    if (list == NULL && space == NULL) {
        return records_say(worker, request, REPLY_CLIENT_ERROR, "export: no space of that name");
    }
    if (list == NULL && space->settings.kind != SPACE_COUNTER) {
        return records_say(worker, request, REPLY_CLIENT_ERROR,
                           "export: only spaces of kind counter can be listed");
    }
    if (list == NULL) {
        list = list_of(worker, LISTING_RECORDS);
        if (list == NULL) {
            return say_busy(worker, request);
        }
        list->alone = true;
        take_space(list, space, from);
        say_head(worker, request, space);
    }
    enum dispatch_end end = run_list(worker, request, list);

    if (end == DISPATCH_DONE) {
        (void)worker->codec->list_end(worker->out, LISTING_RECORDS);
    }
    return end;
}
