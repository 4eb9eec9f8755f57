/*
 * load_batch.c: batches sent and answered. Answers come in the order of the commands, so each item
 * has its own. Where the daemon was busy, what is on its way is taken in first; then all that was
 * refused so is sent again, and with it whatever came later for the same id.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/fail.h"
#include "tools/rollcall/load_private.h"

#define PAUSE_MS       20
#define STORED         "STORED\r\n"
#define FULL_TRIES_MAX 5 /* of a row that finds no table free: a dump may be on its way */

bool load_fail(struct load *load, const char *what)
{
    return fail_with(load->why_failed, sizeof(load->why_failed), "%s", what);
}

/* ---- answers ---- */

static bool answer_begins(const char *line, const char *words)
{
    return strncmp(line, words, strlen(words)) == 0;
}

static bool is_busy(const char *line)
{
    return answer_begins(line, "SERVER_ERROR busy") ||
           answer_begins(line, "SERVER_ERROR journal") ||
           answer_begins(line, "SERVER_ERROR loading") ||
           answer_begins(line, "SERVER_ERROR out of disk space");
}

static void note_why(const struct load_batch *batch, const struct load_item *item, const char *line)
{
    snprintf(load_why(batch, item), LOAD_WHY_MAX, "%.*s", LOAD_WHY_MAX - 1, line);
}

bool load_take_answer(const struct load_batch *batch, struct load_item *item, const char *line,
                      bool *busy)
{
    bool full = answer_begins(line, "SERVER_ERROR no table free");

    *busy = is_busy(line) || (full && item->tries < FULL_TRIES_MAX);
    item->tries = (uint8_t)(item->tries + full);
    if (*busy) {
        note_why(batch, item, line);
        return true;
    }
    if (strcmp(line, "STORED") == 0) {
        item->result = item->result == LOAD_REFUSED ? LOAD_REFUSED : LOAD_STORED;
    } else if (strcmp(line, "NOT_STORED") == 0) {
        item->result = item->result == LOAD_PENDING ? LOAD_KEPT : item->result;
    } else if (answer_begins(line, "SERVER_ERROR") || answer_begins(line, "CLIENT_ERROR") ||
               answer_begins(line, "ERROR")) {
        item->result = LOAD_REFUSED;
        note_why(batch, item, line);
    } else {
        return false;
    }
    return true;
}

/* The answers of one item. *busy: one of them was. */
static bool batch_take_item(struct load *load, const struct load_batch *batch,
                            struct load_item *item, bool *busy)
{
    struct wire *wire = &load->wires[item->part];

    *busy = false;
    if (item->commands == 1 && wire_take(wire, STORED, sizeof(STORED) - 1)) {
        item->result = LOAD_STORED;
        return true;
    }
    for (unsigned i = 0; i < item->commands; i++) {
        size_t length;
        bool one;
        const char *line = wire_line(wire, &length);

        if (line == NULL) {
            return load_fail(load, wire->error);
        }
        if (!load_take_answer(batch, item, line, &one)) {
            return load_fail(load, "an answer is none to a set or add: not a rollcalld?");
        }
        *busy = *busy || one;
    }
    if (*busy) {
        item->result = LOAD_PENDING;
    }
    return true;
}

/* *busy: some item was. In the order of the lines: what others have sent waits meanwhile. */
static bool take_batch(struct load *load, struct load_batch *batch, bool *busy)
{
    batch->sent = true;
    for (size_t i = 0; i < batch->count; i++) {
        struct load_item *item = &batch->items[i];
        bool one;

        if (item->result == LOAD_PENDING) {
            if (!batch_take_item(load, batch, item, &one)) {
                return false;
            }
            *busy = *busy || one;
        }
    }
    return true;
}

/* ---- sending ---- */

/* Returns the next pending items of a part, one after the other, and *bytes of them. NULL: there
 * are none. */
static const char *next_run(const struct load_batch *batch, unsigned part, size_t *at,
                            size_t *bytes)
{
    const char *run = NULL;

    *bytes = 0;
    for (; *at < batch->count; (*at)++) {
        const struct load_item *item = &batch->items[*at];
        bool pending = item->result == LOAD_PENDING;

        if (item->part == part && pending) {
            run = run != NULL ? run : batch->requests[part].data + item->request_at;
            *bytes += item->request_length;
        } else if (item->part == part && run != NULL && item->request_length > 0) {
            break;
        }
    }
    return run;
}

bool load_batch_send(struct load *load, struct load_batch *batch)
{
    load->begun = load->begun || batch->count > 0;
    for (unsigned part = 0; part < load->options->connections; part++) {
        struct wire *wire = &load->wires[part];
        const char *run;
        const struct buf *requests = &batch->requests[part];
        size_t at = 0;
        size_t bytes;

        if (!batch->sent) { /* nothing is answered: all of it */
            if (!wire_send(wire, requests->data, requests->length)) {
                return load_fail(load, wire->error);
            }
            continue;
        }
        while ((run = next_run(batch, part, &at, &bytes)) != NULL) {
            if (!wire_send(wire, run, bytes)) {
                return load_fail(load, wire->error);
            }
        }
    }
    return true;
}

bool load_pause(struct load *load, uint64_t *since_us, const char *why)
{
    const struct timespec pause = {0, PAUSE_MS * 1000000l};
    uint64_t now_us = clock_monotonic_us();

    load->waits++;
    *since_us = *since_us == 0 ? now_us : *since_us;
    if (now_us - *since_us > load->options->patience_ms * 1000ull) {
        return load_fail(load, why);
    }
    nanosleep(&pause, NULL);
    return true;
}

/* What was sent and not answered may have been done: all of it is harmless when done twice. */
bool load_connect(struct load *load)
{
    for (unsigned part = 0; part < load->options->connections; part++) {
        if (!wire_connect(&load->wires[part], NULL, NULL)) {
            return load_fail(load, load->wires[part].error);
        }
    }
    wire_close(&load->life_wire); /* it may be of the life before */
    return load_life_see(load);
}

void load_disconnect(struct load *load)
{
    for (unsigned part = 0; part < load->options->connections; part++) {
        wire_close(&load->wires[part]);
    }
}

bool load_is_connected(const struct load *load)
{
    return load->wires[0].fd >= 0;
}

/* ---- again ---- */

static int by_id_number(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;

    return (left > right) - (left < right);
}

/* Ids of what is pending, sorted. To be freed. */
static uint64_t *pending_ids(struct load_batch *const batches[2], size_t *count)
{
    uint64_t *ids = NULL;

    *count = 0;
    for (unsigned b = 0; b < 2; b++) {
        for (size_t i = 0; batches[b] != NULL && i < batches[b]->count; i++) {
            const struct load_item *item = &batches[b]->items[i];

            if (item->result == LOAD_PENDING) {
                ids = realloc(ids, (*count + 1) * sizeof(*ids));
                CHECK(ids != NULL);
                ids[(*count)++] = item->id;
            }
        }
    }
    if (*count > 0) {
        qsort(ids, *count, sizeof(*ids), by_id_number);
    }
    return ids;
}

/* Later rows of an id are sent again after the row that is sent again. */
static void renew_later(struct load_batch *const batches[2])
{
    size_t count;
    uint64_t *ids = pending_ids(batches, &count);

    for (unsigned b = 0; b < 2; b++) {
        for (size_t i = 0; count > 0 && batches[b] != NULL && i < batches[b]->count; i++) {
            struct load_item *item = &batches[b]->items[i];

            if (item->result == LOAD_STORED &&
                bsearch(&item->id, ids, count, sizeof(*ids), by_id_number) != NULL) {
                item->result = LOAD_PENDING;
            }
        }
    }
    free(ids);
}

static const char *why_pending(struct load_batch *const batches[2])
{
    for (unsigned b = 0; b < 2; b++) {
        for (size_t i = 0; batches[b] != NULL && i < batches[b]->count; i++) {
            if (batches[b]->items[i].result == LOAD_PENDING) {
                return batches[b]->whys[i];
            }
        }
    }
    return "busy";
}

/* Sends again until nothing is pending. lost: the connection is lost. */
static bool send_again(struct load *load, struct load_batch *const batches[2], bool lost)
{
    uint64_t since_us = 0;
    unsigned losses = 0;
    bool busy = true;

    while (busy) {
        losses = lost ? losses + 1 : 0;
        if (losses > LOAD_LOSSES_MAX) {
            return false;
        }
        if (lost ? !load_connect(load) : !load_pause(load, &since_us, why_pending(batches))) {
            return false;
        }
        if (load->options->mode == LOAD_SET) { /* lost or not: later rows of an id come later */
            renew_later(batches);
        }
        lost = busy = false;
        for (unsigned b = 0; b < 2 && !lost; b++) {
            if (batches[b] != NULL) {
                lost = !load_batch_send(load, batches[b]) || !take_batch(load, batches[b], &busy);
            }
        }
        if (lost) {
            load_disconnect(load);
        }
        busy = busy || lost;
        progress_tell(&load->progress, load->stored + load->kept + load->refused, 0,
                      lost ? "connecting again" : "the daemon is busy");
    }
    return true;
}

bool load_batch_finish(struct load *load, struct load_batch *batch, struct load_batch *next)
{
    bool busy = false;
    bool lost = !load_is_connected(load) || !take_batch(load, batch, &busy);

    if (!lost && !busy) {
        return true;
    }
    if (next != NULL && !lost) {
        lost = !take_batch(load, next, &busy);
    }
    struct load_batch *const batches[2] = {batch, next};

    if (lost) {
        load_disconnect(load);
    }
    return send_again(load, batches, lost);
}
