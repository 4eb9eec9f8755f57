/*
 * load_fill.c: load --offline: rows in the order of their ids into a data directory that no daemon
 * has begun. Rows are the same changes as over the wire, so tables open, are dumped and refuse as
 * they do there.
 */
#include <inttypes.h>
#include <string.h>

#include "base/num.h"
#include "tools/rollcall/load_fill.h"
#include "tools/rollcall/load_private.h"

/* The next operations, and which item each is of. */
struct filling {
    struct load *load;
    const struct load_batch *batch;
    size_t count;
    struct load_item *of[FILL_OPS];
};

bool load_fill_open(struct load *load)
{
    const struct load_options *options = load->options;
    struct load_space *space = &load->space;

    load->fill_options = (struct fill_options){.directory = options->offline,
                                               .config = options->config,
                                               .space = options->space,
                                               .patience_ms = options->patience_ms};
    load->fill = fill_open(&load->fill_options);
    if (load->fill == NULL) {
        return false;
    }
    const struct space_settings *settings = fill_space(load->fill);
    struct engine_op *ops = fill_ops(load->fill);

    for (size_t i = 0; i < FILL_OPS; i++) {
        ops[i].verb = options->mode == LOAD_ADD ? ENGINE_ADD : ENGINE_SET;
        ops[i].text = "1"; /* of a member */
        ops[i].text_length = 1;
    }

    space->members = settings->kind == SPACE_PHANTOM;
    space->slot_count = settings->slot_count;
    for (size_t i = 0; i < space->slot_count; i++) {
        snprintf(space->slots[i], sizeof(space->slots[i]), "%s", settings->slots[i].name);
    }
    return true;
}

/* ---- results ---- */

static const char *fill_words(enum engine_error error)
{
    switch (error) {
    case ENGINE_E_ID_TOO_LARGE:
        return "the id is above max-id";
    case ENGINE_E_ID_TOO_FAR:
        return "the id is too far ahead";
    case ENGINE_E_NO_TABLE_FREE:
        return "no table is free: the space's tables are full";
    case ENGINE_E_OUT_OF_MEMORY:
        return "no place is left for it";
    case ENGINE_E_NOT_A_NUMBER:
    case ENGINE_E_RECORD_FIELDS:
        return "a number is too large";
    default:
        return "the space refuses it";
    }
}

static void fill_take_result(const struct load_batch *batch, struct load_item *item,
                             const struct engine_op *op)
{
    if (op->status == ENGINE_ERROR) {
        item->result = LOAD_REFUSED;
        snprintf(load_why(batch, item), LOAD_WHY_MAX, "%s", fill_words(op->error));
    } else if (op->status == ENGINE_DONE) {
        item->result = item->result == LOAD_REFUSED ? LOAD_REFUSED : LOAD_STORED;
    } else {
        item->result = item->result == LOAD_PENDING ? LOAD_KEPT : item->result;
    }
}

static bool fill_hand_over(struct filling *filling)
{
    struct load *load = filling->load;
    const struct engine_op *ops = fill_ops(load->fill);

    if (!fill_carry_out(load->fill, filling->count)) {
        return load_fail(load, fill_error(load->fill));
    }
    for (size_t i = 0; i < filling->count; i++) {
        fill_take_result(filling->batch, filling->of[i], &ops[i]);
    }
    filling->count = 0;
    return true;
}

/* ---- rows ---- */

static void fill_add(struct filling *filling, struct load_item *item, int slot, const char *text,
                     size_t length)
{
    struct engine_op *op = &fill_ops(filling->load->fill)[filling->count];

    op->slot = slot; /* what is not said here stays as it is in all of them */
    op->id = item->id;
    if (filling->load->space.members) {
        op->member = text;
        op->member_length = (uint32_t)length;
    } else {
        op->text = text;
        op->text_length = (uint32_t)length;
    }
    filling->of[filling->count++] = item;
}

/* Its numbers stand in `text` with commas between. */
static void fill_add_slots(struct filling *filling, struct load_item *item, const char *text)
{
    for (uint32_t set = item->set; set != 0; set &= set - 1) {
        size_t length = strspn(text, "0123456789");

        fill_add(filling, item, __builtin_ctz(set), text, length);
        text += length + 1;
    }
}

static bool fill_is_in_order(struct load *load, const struct load_item *item)
{
    if (item->id >= load->fill_last) {
        load->fill_last = item->id;
        return true;
    }
    snprintf(load->why_failed, sizeof(load->why_failed),
             "line %" PRIu64 ": id %" PRIu64 " comes after id %" PRIu64
             ": --offline takes rows in the order of their ids; sort them first, or load them into "
             "a running daemon",
             item->line, item->id, load->fill_last);
    return false;
}

bool load_fill_batch(struct load *load, struct load_batch *batch)
{
    struct filling filling;
    const char *texts = batch->requests[0].data;

    filling.load = load;
    filling.batch = batch;
    filling.count = 0;
    load->begun = true;
    for (size_t i = 0; i < batch->count; i++) {
        struct load_item *item = &batch->items[i];
        const char *text = texts + item->request_at;

        if (item->result != LOAD_PENDING) {
            continue;
        }
        if (!fill_is_in_order(load, item) ||
            (filling.count + item->commands > FILL_OPS && !fill_hand_over(&filling))) {
            return false;
        }
        if (item->whole) {
            fill_add(&filling, item, ENGINE_SLOT_RECORD, text, item->request_length);
        } else {
            fill_add_slots(&filling, item, text);
        }
    }
    return fill_hand_over(&filling);
}

unsigned load_fill_compose(const struct load *load, const struct load_row *row, struct buf *to,
                           char why[LOAD_WHY_MAX])
{
    size_t start = to->length;

    if (!load_space_takes(load, row, why)) {
        return 0;
    }
    if (load->space.members) {
        CHECK(buf_append(to, row->member, row->member_length));
        return 1;
    }
    if (load_space_is_whole(load)) {
        char *at = buf_room(to, LOAD_RECORD_MAX);

        CHECK(at != NULL);
        buf_commit(to, load_space_print(&load->space, row, at));
        return 1;
    }
    for (uint32_t set = row->set; set != 0; set &= set - 1) {
        load_put_number(to, row->values[__builtin_ctz(set)]);
        CHECK(buf_append(to, ",", 1));
    }
    CHECK(to->length > start);
    return (unsigned)__builtin_popcount(row->set);
}
