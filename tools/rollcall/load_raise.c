/*
 * load_raise.c: --mode max: what is there is read with its token, and replaced by the larger
 * numbers unless it changed meanwhile; then again.
 */
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "tools/rollcall/load_private.h"

#define KEYS_A_GET 100u

struct found {
    bool there;
    uint32_t set;
    uint64_t values[ENGINE_SLOTS_MAX];
    uint64_t token;
};

/* max: one batch is on its way, and it keeps its rows. */
static const struct load_row *raise_row(const struct load *load, const struct load_item *item)
{
    return &load->batches[0].rows[item - load->batches[0].items];
}

static void raise_put(struct buf *to, const char *text)
{
    CHECK(buf_append(to, text, strlen(text)));
}

static bool send_scratch(struct load *load)
{
    bool sent = wire_send(&load->wires[0], load->scratch.data, load->scratch.length);

    buf_truncate(&load->scratch, 0);
    return sent || load_fail(load, load->wires[0].error);
}

/* "1,,3" */
static bool raise_read_record(const struct load_space *space, const char *text, struct found *found)
{
    for (size_t i = 0; i < space->slot_count; i++) {
        size_t length = strcspn(text, ",");

        if (length > 0 && !num_parse(text, length, &found->values[i])) {
            return false;
        }
        found->set |= (uint32_t)(length > 0) << i;
        text += length + (text[length] == ',');
    }
    return *text == '\0';
}

/* VALUE key flags bytes token, and its data. *index: which of the keys from there on. */
static bool raise_take_value(struct load *load, const char *line, const char *const *keys,
                             size_t count, size_t *index, struct found *found)
{
    char key[LOAD_KEY_MAX + 1];
    unsigned long long token;
    size_t length;

    if (sscanf(line, "VALUE %250s %*u %*u %llu", key, &token) != 2) {
        return load_fail(load, line);
    }
    while (*index < count && strcmp(keys[*index], key) != 0) {
        (*index)++;
    }
    const char *data = *index < count ? wire_line(&load->wires[0], &length) : NULL;

    if (data == NULL) {
        return load_fail(load,
                         *index < count ? load->wires[0].error : "a key that was not asked for");
    }
    found[*index] = (struct found){.there = true, .token = token};
    return raise_read_record(&load->space, data, &found[(*index)++]) ||
           load_fail(load, "a record is no numbers: were the slots changed?");
}

/* Reads what is there of up to KEYS_A_GET items. *busy: it cannot be told now. */
static bool raise_read(struct load *load, struct load_item *const *items, size_t count,
                       struct found *found, bool *busy)
{
    const char *keys[KEYS_A_GET];
    struct buf names;
    size_t index = 0;
    bool good = true;

    buf_init(&names, KEYS_A_GET * (LOAD_KEY_MAX + 2), NULL);
    CHECK(buf_room(&names, KEYS_A_GET * (LOAD_KEY_MAX + 2)) != NULL); /* keys point into it */
    raise_put(&load->scratch, "gets");
    for (size_t i = 0; i < count; i++) {
        keys[i] = names.data + names.length;
        load_space_key(&load->space, raise_row(load, items[i]), &names);
        CHECK(buf_append(&names, "", 1));
        raise_put(&load->scratch, " ");
        raise_put(&load->scratch, keys[i]);
        found[i] = (struct found){.there = false};
    }
    raise_put(&load->scratch, "\r\n");
    good = send_scratch(load);
    *busy = false;
    while (good) {
        size_t length;
        const char *line = wire_line(&load->wires[0], &length);

        if (line == NULL) {
            good = load_fail(load, load->wires[0].error);
        } else if (strncmp(line, "VALUE ", 6) == 0) {
            good = raise_take_value(load, line, keys, count, &index, found);
        } else {
            *busy = strcmp(line, "END") != 0;
            good = !*busy || strncmp(line, "SERVER_ERROR", 12) == 0 || load_fail(load, line);
            break;
        }
    }
    buf_fini(&names);
    return good;
}

/* True: something becomes larger; `found` is what it becomes. */
static bool larger(const struct load_row *row, struct found *found)
{
    bool any = false;

    for (uint32_t set = row->set; set != 0; set &= set - 1) {
        unsigned i = (unsigned)__builtin_ctz(set);

        if (!(found->set >> i & 1) || found->values[i] < row->values[i]) {
            found->values[i] = row->values[i];
            found->set |= 1u << i;
            any = true;
        }
    }
    return any;
}

static void compose(struct load *load, const struct load_item *item, const struct found *found)
{
    struct buf *to = &load->scratch;
    char text[ENGINE_VALUE_MAX + NUM_DIGITS_MAX];
    char *at = text;

    for (size_t i = 0; i < load->space.slot_count; i++) {
        if (found->set >> i & 1) {
            at += num_print(at, found->values[i]);
        }
        *at++ = ',';
    }
    *--at = '\0';
    raise_put(to, found->there ? "cas " : "add ");
    load_space_key(&load->space, raise_row(load, item), to);
    raise_put(to, " 0 0 ");
    load_put_number(to, strlen(text));
    if (found->there) {
        raise_put(to, " ");
        load_put_number(to, found->token);
    }
    raise_put(to, "\r\n");
    raise_put(to, text);
    raise_put(to, "\r\n");
}

/* The answer to a cas or add: what lost a race is pending still. */
static bool take_raised(struct load *load, struct load_item *item, bool *busy)
{
    size_t length;
    const char *line = wire_line(&load->wires[0], &length);

    if (line == NULL) {
        return load_fail(load, load->wires[0].error);
    }
    if (strcmp(line, "EXISTS") == 0 || strcmp(line, "NOT_FOUND") == 0 ||
        strcmp(line, "NOT_STORED") == 0) {
        return true;
    }
    return load_take_answer(&load->batches[0], item, line, busy) || load_fail(load, line);
}

/* One attempt of up to KEYS_A_GET items. */
static bool raise_some(struct load *load, struct load_item *const *items, size_t count, bool *busy)
{
    struct found found[KEYS_A_GET];
    bool sent[KEYS_A_GET];

    if (!raise_read(load, items, count, found, busy) || *busy) {
        return *busy;
    }
    for (size_t i = 0; i < count; i++) {
        sent[i] = larger(raise_row(load, items[i]), &found[i]);
        if (sent[i]) {
            compose(load, items[i], &found[i]);
        } else {
            items[i]->result = LOAD_KEPT;
        }
    }
    if (!send_scratch(load)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        bool one = false;

        if (sent[i] && !take_raised(load, items[i], &one)) {
            return false;
        }
        *busy = *busy || one;
    }
    return true;
}

/* Returns the next pending items after *at. */
static size_t next_pending(struct load_batch *batch, size_t *at, struct load_item **items)
{
    size_t count = 0;

    for (; *at < batch->count && count < KEYS_A_GET; (*at)++) {
        if (batch->items[*at].result == LOAD_PENDING) {
            items[count++] = &batch->items[*at];
        }
    }
    return count;
}

/* The connection is of no use any more. */
static bool begin_again(struct load *load, unsigned *losses)
{
    buf_truncate(&load->scratch, 0);
    load_disconnect(load);
    return ++*losses <= LOAD_LOSSES_MAX && load_connect(load);
}

bool load_raise(struct load *load, struct load_batch *batch)
{
    struct load_item *items[KEYS_A_GET];
    uint64_t since_us = 0;
    unsigned losses = 0;

    load->begun = true;
    for (;;) {
        size_t at = 0;
        size_t pending = 0;
        bool busy = false;
        size_t count;

        while ((count = next_pending(batch, &at, items)) > 0) {
            bool one = false;

            pending += count;
            if (raise_some(load, items, count, &one)) {
                losses = 0;
            } else if (!begin_again(load, &losses)) {
                return false;
            }
            busy = busy || one;
        }
        if (pending == 0) {
            return true;
        }
        if (busy ? !load_pause(load, &since_us, "the daemon is busy") : false) {
            return false;
        }
        since_us = busy ? since_us : 0;
    }
}
