#include "request/command.h"

#include <stddef.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/num.h"

#define FIGURE(name)       (uint16_t) offsetof(struct command_metrics, name)
#define SPACE_FIGURE(name) (uint16_t) offsetof(struct space_metrics, name)
#define APPEND_WORDS       "append not supported"
#define NON_NUMERIC_WORDS  "cannot increment or decrement non-numeric value"
#define NOT_A_NUMBER_WORDS "value is not a number"
#define NOT_MEMBER_WORDS   "value is not 1"
#define SPACE_WORDS(name)  (uint16_t) offsetof(struct space, name)

/* How a row begins: by what it calls, with a verb of the engine. */
#define READ(engine_verb)   .call = COMMAND_CALL_READ, .verb = ENGINE_##engine_verb
#define CHANGE(engine_verb) .call = COMMAND_CALL_CHANGE, .verb = ENGINE_##engine_verb
#define VISIT(engine_verb)  .call = COMMAND_CALL_VISIT, .verb = ENGINE_##engine_verb
#define IS(reply)                                                                                  \
    {                                                                                              \
        .status = REPLY_##reply                                                                    \
    }

/* A key of no space, or a bad one: absent for reads … */
static const struct command lost_get = {
    .absent = IS(NOT_FOUND), .counts = FIGURE(cmd_get), .miss = FIGURE(get_misses)};
static const struct command lost_touch = {
    .absent = IS(NOT_FOUND), .counts = FIGURE(cmd_touch), .miss = FIGURE(touch_misses)};
/* … and refused for writes. */
static const struct command no_space_store = {
    .absent = {.status = REPLY_CLIENT_ERROR, .words = "no space for key"},
    .counts = FIGURE(cmd_set)};
static const struct command bad_key_store = {
    .absent = {.status = REPLY_CLIENT_ERROR, .own = SPACE_WORDS(bad_key_words)},
    .counts = FIGURE(cmd_set)};
static const struct command bad_slot_store = {
    .absent = {.status = REPLY_CLIENT_ERROR, .own = SPACE_WORDS(slot_words)},
    .counts = FIGURE(cmd_set)};
static const struct command bad_slot = {
    .absent = {.status = REPLY_CLIENT_ERROR, .own = SPACE_WORDS(slot_words)}};
static const struct command similar_store = {
    .absent = {.status = REPLY_CLIENT_ERROR, .own = SPACE_WORDS(similar_words)},
    .counts = FIGURE(cmd_set)};
static const struct command similar = {
    .absent = {.status = REPLY_CLIENT_ERROR, .own = SPACE_WORDS(similar_words)}};
static const struct command no_space = {
    .absent = {.status = REPLY_CLIENT_ERROR, .words = "no space for key"}};
static const struct command bad_key = {
    .absent = {.status = REPLY_CLIENT_ERROR, .own = SPACE_WORDS(bad_key_words)}};

static const struct command get = {READ(READ),
                                   .done = IS(OK),
                                   .absent = IS(NOT_FOUND),
                                   .counts = FIGURE(cmd_get),
                                   .hit = FIGURE(get_hits),
                                   .miss = FIGURE(get_misses)};
static const struct command gat = {READ(READ),
                                   .done = IS(OK),
                                   .absent = IS(NOT_FOUND),
                                   .counts = FIGURE(cmd_touch),
                                   .hit = FIGURE(touch_hits),
                                   .miss = FIGURE(touch_misses)};
static const struct command touch = {READ(TOUCH),
                                     .done = IS(TOUCHED),
                                     .absent = IS(NOT_FOUND),
                                     .counts = FIGURE(cmd_touch),
                                     .hit = FIGURE(touch_hits),
                                     .miss = FIGURE(touch_misses)};
static const struct command touch_past = {CHANGE(DELETE),
                                          .done = IS(TOUCHED),
                                          .absent = IS(NOT_FOUND),
                                          .counts = FIGURE(cmd_touch),
                                          .hit = FIGURE(touch_hits),
                                          .miss = FIGURE(touch_misses)};
static const struct command set = {CHANGE(SET),
                                   .done = IS(STORED),
                                   .absent = IS(STORED),
                                   .exists = IS(STORED),
                                   .dropped = REPLY_STORED,
                                   .counts = FIGURE(cmd_set),
                                   .stored = FIGURE(total_items)};
static const struct command add = {CHANGE(ADD),
                                   .done = IS(STORED),
                                   .absent = IS(NOT_STORED),
                                   .exists = IS(NOT_STORED),
                                   .dropped = REPLY_STORED,
                                   .counts = FIGURE(cmd_set),
                                   .stored = FIGURE(total_items)};
/* An add of nothing is how clients ask whether a key exists (memcached_exist): it only looks. */
static const struct command look_slot = {
    READ(TOUCH), .done = IS(NOT_STORED),
    .absent = {.status = REPLY_CLIENT_ERROR, .words = NOT_A_NUMBER_WORDS},
    .counts = FIGURE(cmd_set), .refused = SPACE_FIGURE(refused_value)};
static const struct command look_record = {
    READ(TOUCH), .done = IS(NOT_STORED),
    .absent = {.status = REPLY_CLIENT_ERROR, .own = SPACE_WORDS(record_words)},
    .counts = FIGURE(cmd_set), .refused = SPACE_FIGURE(refused_value)};
static const struct command look_member = {
    READ(TOUCH), .done = IS(NOT_STORED),
    .absent = {.status = REPLY_CLIENT_ERROR, .words = NOT_MEMBER_WORDS}, .counts = FIGURE(cmd_set),
    .refused = SPACE_FIGURE(refused_value)};
/* The same with a past exptime: what is not there would be gone at once. */
static const struct command look_past = {READ(TOUCH), .done = IS(NOT_STORED), .absent = IS(STORED),
                                         .counts = FIGURE(cmd_set)};
static const struct command replace = {CHANGE(REPLACE),
                                       .done = IS(STORED),
                                       .absent = IS(NOT_STORED),
                                       .exists = IS(NOT_STORED),
                                       .dropped = REPLY_STORED,
                                       .counts = FIGURE(cmd_set),
                                       .stored = FIGURE(total_items)};
static const struct command cas = {CHANGE(CAS),
                                   .done = IS(STORED),
                                   .absent = IS(NOT_FOUND),
                                   .exists = IS(EXISTS),
                                   .dropped = REPLY_STORED,
                                   .counts = FIGURE(cmd_set),
                                   .hit = FIGURE(cas_hits),
                                   .miss = FIGURE(cas_misses),
                                   .badval = FIGURE(cas_badval),
                                   .stored = FIGURE(total_items)};
/* append and prepend only look whether something is there. */
static const struct command append = {
    READ(TOUCH), .done = {.status = REPLY_CLIENT_ERROR, .words = APPEND_WORDS},
    .absent = IS(NOT_STORED), .counts = FIGURE(cmd_set), .refused = SPACE_FIGURE(refused_append)};
static const struct command incr = {CHANGE(INCR),
                                    .done = IS(NUMBER),
                                    .absent = IS(NOT_FOUND),
                                    .exists = IS(EXISTS),
                                    .dropped = REPLY_NOT_FOUND,
                                    .hit = FIGURE(incr_hits),
                                    .miss = FIGURE(incr_misses)};
static const struct command decr = {CHANGE(DECR),
                                    .done = IS(NUMBER),
                                    .absent = IS(NOT_FOUND),
                                    .exists = IS(EXISTS),
                                    .dropped = REPLY_NOT_FOUND,
                                    .hit = FIGURE(decr_hits),
                                    .miss = FIGURE(decr_misses)};
/* A member is no number: refused when there. */
static const struct command incr_member = {
    READ(TOUCH),
    .done = {REPLY_CLIENT_ERROR, NON_NUMERIC_WORDS, DETAIL_NON_NUMERIC, 0},
    .absent = IS(NOT_FOUND),
    .miss = FIGURE(incr_misses),
    .refused = SPACE_FIGURE(refused_delta),
    .delta = true};
static const struct command decr_member = {
    READ(TOUCH),
    .done = {REPLY_CLIENT_ERROR, NON_NUMERIC_WORDS, DETAIL_NON_NUMERIC, 0},
    .absent = IS(NOT_FOUND),
    .miss = FIGURE(decr_misses),
    .refused = SPACE_FIGURE(refused_delta),
    .delta = true};
static const struct command delete = {CHANGE(DELETE),
                                      .done = IS(DELETED),
                                      .absent = IS(NOT_FOUND),
                                      .exists = IS(EXISTS),
                                      .hit = FIGURE(delete_hits),
                                      .miss = FIGURE(delete_misses),
                                      .badval = FIGURE(delete_misses)};

/* A delete that leaves what it finds, stale. */
static const struct command plain_mark = {
    CHANGE(DELETE),       .done = IS(DELETED),           .absent = IS(NOT_FOUND),
    .exists = IS(EXISTS), .miss = FIGURE(delete_misses), .badval = FIGURE(delete_misses)};
/* A flag that only plain values honour. */
static const struct command invalid_flag = {
    .absent = {.status = REPLY_CLIENT_ERROR, .words = "invalid flag"}};

/* A value too long for an id's space. */
static const struct command too_large = {
    .absent = {REPLY_SERVER_ERROR, "object too large for cache", DETAIL_TOO_LARGE, 0},
    .counts = FIGURE(cmd_set)};

/* Kind plain: values of any length, looked at where they lie, that expire. */
static const struct command plain_get = {VISIT(READ), .counts = FIGURE(cmd_get),
                                         .hit = FIGURE(get_hits), .miss = FIGURE(get_misses)};
static const struct command plain_gat = {VISIT(READ), .counts = FIGURE(cmd_touch),
                                         .hit = FIGURE(touch_hits), .miss = FIGURE(touch_misses)};
static const struct command plain_touch = {CHANGE(TOUCH),
                                           .done = IS(TOUCHED),
                                           .absent = IS(NOT_FOUND),
                                           .counts = FIGURE(cmd_touch),
                                           .hit = FIGURE(touch_hits),
                                           .miss = FIGURE(touch_misses)};
static const struct command plain_append = {
    CHANGE(APPEND),       .done = IS(STORED),        .absent = IS(NOT_STORED),
    .exists = IS(EXISTS), .counts = FIGURE(cmd_set), .stored = FIGURE(total_items)};
static const struct command plain_prepend = {
    CHANGE(PREPEND),      .done = IS(STORED),        .absent = IS(NOT_STORED),
    .exists = IS(EXISTS), .counts = FIGURE(cmd_set), .stored = FIGURE(total_items)};

/* verb x kind of key */
const struct command *const command_rows[VERB_COUNT][KEY_KINDS] = {
    /* clang-format off */
    /*                 of no space      bad key         slot      record    member        plain           too large    unknown slot     similar */
    [VERB_GET]     = {&lost_get,       &lost_get,      &get,     &get,     &get,         &plain_get,     &lost_get, &lost_get, &lost_get},
    [VERB_GAT]     = {&lost_touch,     &lost_touch,    &gat,     &gat,     &gat,         &plain_gat,     &lost_touch, &lost_touch, &lost_touch},
    [VERB_TOUCH]   = {&lost_touch,     &lost_touch,    &touch,   &touch,   &touch,       &plain_touch,   &lost_touch, &lost_touch, &lost_touch},
    [VERB_SET]     = {&no_space_store, &bad_key_store, &set,     &set,     &set,         &set,           &too_large, &bad_slot_store, &similar_store},
    [VERB_ADD]     = {&no_space_store, &bad_key_store, &add,     &add,     &add,         &add,           &too_large, &bad_slot_store, &similar_store},
    [VERB_REPLACE] = {&no_space_store, &bad_key_store, &replace, &replace, &replace,     &replace,       &too_large, &bad_slot_store, &similar_store},
    [VERB_APPEND]  = {&no_space_store, &bad_key_store, &append,  &append,  &append,      &plain_append,  &too_large, &bad_slot_store, &similar_store},
    [VERB_PREPEND] = {&no_space_store, &bad_key_store, &append,  &append,  &append,      &plain_prepend, &too_large, &bad_slot_store, &similar_store},
    [VERB_CAS]     = {&no_space_store, &bad_key_store, &cas,     &cas,     &cas,         &cas,           &too_large, &bad_slot_store, &similar_store},
    [VERB_INCR]    = {&no_space,       &bad_key,       &incr,    &incr,    &incr_member, &incr,          &too_large, &bad_slot, &similar},
    [VERB_DECR]    = {&no_space,       &bad_key,       &decr,    &decr,    &decr_member, &decr,          &too_large, &bad_slot, &similar},
    [VERB_DELETE]  = {&no_space,       &bad_key,       &delete,  &delete,  &delete,      &delete,        &delete, &bad_slot, &similar},
    /* clang-format on */
};

/* The words for what an engine refuses, and whether role cache rather drops the write. */
static const struct refusal {
    enum reply_status status;
    const char *words;
    uint16_t figure;
    bool drop;
    enum reply_detail detail;
    uint16_t own; /* offset in struct space of its own words; 0: `words` */
} refusals[] = {
    [ENGINE_E_NONE] = {REPLY_SERVER_ERROR, "internal error", SPACE_FIGURE(none), false, DETAIL_NONE,
                       0},
    [ENGINE_E_NOT_A_NUMBER] = {REPLY_CLIENT_ERROR, NOT_A_NUMBER_WORDS, SPACE_FIGURE(refused_value),
                               false, DETAIL_NONE, 0},
    [ENGINE_E_RECORD_FIELDS] = {REPLY_CLIENT_ERROR, NULL, SPACE_FIGURE(refused_value), false,
                                DETAIL_NONE, SPACE_WORDS(record_words)},
    [ENGINE_E_SOME_FIELDS] = {REPLY_CLIENT_ERROR, "needs a number for each slot of the key",
                              SPACE_FIGURE(refused_value), false, DETAIL_NONE, 0},
    [ENGINE_E_NOT_MEMBER] = {REPLY_CLIENT_ERROR, NOT_MEMBER_WORDS, SPACE_FIGURE(refused_value),
                             false, DETAIL_NONE, 0},
    [ENGINE_E_NON_NUMERIC] = {REPLY_CLIENT_ERROR, NON_NUMERIC_WORDS, SPACE_FIGURE(refused_delta),
                              false, DETAIL_NON_NUMERIC, 0},
    [ENGINE_E_BAD_DELTA] = {REPLY_CLIENT_ERROR, "invalid numeric delta argument",
                            SPACE_FIGURE(refused_delta), false, DETAIL_NONE, 0},
    [ENGINE_E_DELETES_OFF] = {REPLY_CLIENT_ERROR, "deletes are off for this space",
                              SPACE_FIGURE(refused_deletes_off), false, DETAIL_NONE, 0},
    [ENGINE_E_OUT_OF_MEMORY] = {REPLY_SERVER_ERROR, "out of memory storing object",
                                SPACE_FIGURE(refused_memory), true, DETAIL_OUT_OF_MEMORY, 0},
    [ENGINE_E_NO_TABLE_FREE] = {REPLY_SERVER_ERROR, "no table free", SPACE_FIGURE(refused_no_table),
                                true, DETAIL_OUT_OF_MEMORY, 0},
    [ENGINE_E_ID_TOO_LARGE] = {REPLY_CLIENT_ERROR, NULL, SPACE_FIGURE(refused_id_large), false,
                               DETAIL_NONE, SPACE_WORDS(id_large_words)},
    [ENGINE_E_ID_TOO_FAR] = {REPLY_CLIENT_ERROR, "id too far ahead", SPACE_FIGURE(refused_id_far),
                             false, DETAIL_NONE, 0},
    [ENGINE_E_ID_BELOW] = {REPLY_CLIENT_ERROR, "id below the oldest table",
                           SPACE_FIGURE(refused_id_below), true, DETAIL_NONE, 0},
    [ENGINE_E_BUSY] = {REPLY_SERVER_ERROR, "busy", SPACE_FIGURE(refused_busy), false, DETAIL_BUSY,
                       0},
    [ENGINE_E_JOURNAL_BUSY] = {REPLY_SERVER_ERROR, "journal busy", SPACE_FIGURE(refused_busy),
                               false, DETAIL_BUSY, 0},
    [ENGINE_E_JOURNAL_FULL] = {REPLY_SERVER_ERROR, "out of disk space", SPACE_FIGURE(refused_busy),
                               false, DETAIL_NONE, 0},
    [ENGINE_E_NO_REPLICA] = {REPLY_SERVER_ERROR, "no replica", SPACE_FIGURE(refused_busy), false,
                             DETAIL_NONE, 0},
    [ENGINE_E_JOURNAL_FAILED] = {REPLY_SERVER_ERROR, "journal failed", SPACE_FIGURE(refused_busy),
                                 false, DETAIL_NONE, 0},
    [ENGINE_E_READ_FAILED] = {REPLY_SERVER_ERROR, "disk read failed", SPACE_FIGURE(refused_read),
                              false, DETAIL_NONE, 0},
    [ENGINE_E_TOO_LARGE] = {REPLY_SERVER_ERROR, "object too large for cache",
                            SPACE_FIGURE(refused_value), false, DETAIL_TOO_LARGE, 0},
};

static void count(struct command_metrics *metrics, uint16_t figure)
{
    command_count(metrics, figure, 1);
}

static void count_space(struct space_metrics *own, uint16_t figure)
{
    if (own != NULL) {
        metric_add((metric *)((char *)own + figure), 1);
    }
}

const struct command *command_find(enum verb verb, enum key_kind kind, bool past)
{
    const struct command *command = command_rows[verb][kind];

    return past && command == &touch ? &touch_past : command;
}

const struct command *command_find_extended(const struct command *command,
                                            const struct request *request, enum key_kind kind)
{
    if (kind == KEY_PLAIN) {
        bool marks = request->verb == VERB_DELETE && request->extended != NULL &&
                     request->extended->invalidate;
        return marks ? &plain_mark : command;
    }
    return request->plain_only ? &invalid_flag : command;
}

const struct command *command_find_look(const struct space *space, enum key_kind kind, bool past)
{
    bool empty_record = kind == KEY_RECORD && space->settings.slot_count == 1 &&
                        space->settings.role == SPACE_STORE; /* a value, as such */
    if (empty_record || (kind != KEY_SLOT && kind != KEY_RECORD && kind != KEY_MEMBER)) {
        return NULL;
    }
    if (past) {
        return &look_past;
    }
    return kind == KEY_SLOT ? &look_slot : kind == KEY_RECORD ? &look_record : &look_member;
}

bool command_deletes_after(enum verb verb, enum key_kind kind)
{
    return kind != KEY_PLAIN && verb == VERB_GAT;
}

bool command_exptime_past(int64_t exptime)
{
    return exptime < 0 ||
           (exptime > COMMAND_EXPTIME_RELATIVE_MAX && (uint64_t)exptime <= clock_wall_s());
}

uint64_t command_exptime_at(int64_t exptime)
{
    if (exptime == 0) {
        return 0;
    }
    if (command_exptime_past(exptime)) {
        return 1;
    }
    uint64_t left = (uint64_t)exptime;

    if (exptime > COMMAND_EXPTIME_RELATIVE_MAX) {
        uint64_t wall_s = clock_wall_s();

        left = left > wall_s ? left - wall_s : 0;
    }
    return clock_monotonic_s() + left;
}

static void command_say(struct command_result *result, enum reply_status status, const char *words,
                        enum reply_detail detail)
{
    result->reply.status = status;
    result->reply.detail = detail;
    result->reply.value = words;
    result->reply.value_length = strlen(words);
    result->refused = true;
}

/* An incr or decr of a whole record by one number, or by what is no list of numbers. */
static bool wants_fields(const struct space *space, const struct engine_op *op)
{
    return (op->error == ENGINE_E_NON_NUMERIC || op->error == ENGINE_E_BAD_DELTA) &&
           space->settings.kind == SPACE_COUNTER && space->settings.slot_count > 1 &&
           op->slot == ENGINE_SLOT_RECORD;
}

void command_refuse(const struct space *space, const struct engine_op *op,
                    struct space_metrics *own, struct command_result *result)
{
    CHECK(op->error < sizeof(refusals) / sizeof(refusals[0]));
    const struct refusal *refusal = &refusals[op->error];
    const char *words = refusal->own == 0 ? refusal->words : (const char *)space + refusal->own;
    bool fields = wants_fields(space, op);
    if ((fields || op->error == ENGINE_E_RECORD_FIELDS) &&
        space_words_unknown(space, op->text, op->text_length, result->words)) {
        command_say(result, refusal->status, result->words, DETAIL_NONE);
        count_space(own, refusal->figure);
        return;
    }
    command_say(result, refusal->status, fields ? space->delta_words : words,
                fields ? DETAIL_NONE : refusal->detail);
    count_space(own, refusal->figure);
}

static void finish_error(const struct command *command, const struct space *space,
                         const struct engine_op *op, struct command_metrics *metrics,
                         struct space_metrics *own, struct command_result *result)
{
    if (!space->engine->role_cache || command->dropped == REPLY_OK || !refusals[op->error].drop) {
        command_refuse(space, op, own, result);
        return;
    }
    result->reply = (struct reply){.status = command->dropped, .ttl_s = -1};
    /* A member has no older value that could be read instead. */
    result->dropped = space->settings.kind != SPACE_PHANTOM;
    metric_add(&metrics->evictions, 1);
    metric_add(&own->evictions, 1);
    if (command->dropped == REPLY_NOT_FOUND) {
        count(metrics, command->miss);
    }
}

/* The engine's (or nobody's) plain answer in the words of the row. */
static void finish_answer(const struct command *command, const struct command_answer *answer,
                          const struct space *space, const struct engine_op *op,
                          struct space_metrics *own, struct command_result *result)
{
    result->reply.status = answer->status;
    result->reply.cas = op->want_cas && op->status == ENGINE_DONE ? op->cas_now : 0;
    bool plain = space != NULL && space->settings.kind == SPACE_PLAIN;
    result->reply.ttl_s = plain ? op->ttl_s : -1;
    result->reply.ttl_touched_s = plain ? op->ttl_touched_s : -1;
    result->reply.ttl_made_s = plain ? op->ttl_made_s : -1;
    result->reply.size = plain && op->status == ENGINE_DONE ? op->stored_bytes : 0;
    result->reply.created = op->created;
    if (answer->status == REPLY_TOUCHED) {
        result->reply.flags = plain ? op->flags : space->engine->flags;
    }
    if (answer->status == REPLY_NUMBER) {
        result->reply.value = op->value;
        result->reply.value_length = op->value_length;
    } else if (answer->status == REPLY_CLIENT_ERROR || answer->status == REPLY_SERVER_ERROR) {
        command_say(result, answer->status,
                    answer->own == 0 ? answer->words : (const char *)space + answer->own,
                    answer->detail);
        count_space(own, command->refused);
    }
}

void command_done(const struct command *command, const struct space *space,
                  const struct engine_op *op, struct reply *reply)
{
    bool number = command->done.status == REPLY_NUMBER;
    *reply = (struct reply){.status = command->done.status,
                            .value = op->value,
                            .value_length = number ? op->value_length : 0,
                            .cas = op->want_cas ? op->cas_now : 0,
                            .flags = space->engine->flags,
                            .created = op->created,
                            .ttl_s = -1,
                            .ttl_touched_s = -1,
                            .ttl_made_s = -1};
}

/* What an engine that counts looks at first. */
static bool delta_is_bad(const struct command *command, const struct engine_op *op)
{
    uint64_t delta;

    return command->delta && op->status != ENGINE_ERROR &&
           !num_parse(op->text, op->text_length, &delta);
}

void command_finish(const struct command *command, const struct space *space,
                    const struct engine_op *op, struct command_metrics *metrics,
                    struct space_metrics *own, struct command_result *result)
{
    result->reply.value = NULL;
    result->reply.value_length = 0;
    result->refused = false;
    result->dropped = false;
    count(metrics, command->counts);
    if (command->call == COMMAND_CALL_NONE) {
        if (space == NULL) {
            metric_add(&metrics->no_space, 1);
        } else if (command == &too_large || command == &invalid_flag) {
            metric_add(&own->refused_value, 1);
        } else {
            metric_add(&own->bad_keys, 1);
        }
        count(metrics, command->miss);
        finish_answer(command, &command->absent, space, op, own, result);
        return;
    }
    if (UNLIKELY(delta_is_bad(command, op))) {
        command_refuse(space, &(struct engine_op){.error = ENGINE_E_BAD_DELTA}, own, result);
        return;
    }
    switch (op->status) {
    case ENGINE_DONE:
        count(metrics, command->hit);
        count(metrics, command->stored);
        count_space(own, command->call == COMMAND_CALL_CHANGE ? SPACE_FIGURE(changes)
                                                              : SPACE_FIGURE(none));
        finish_answer(command, &command->done, space, op, own, result);
        return;
    case ENGINE_ABSENT:
        count(metrics, command->miss);
        finish_answer(command, &command->absent, space, op, own, result);
        return;
    case ENGINE_EXISTS:
        count(metrics, command->badval);
        finish_answer(command, &command->exists, space, op, own, result);
        return;
    case ENGINE_ERROR:
        finish_error(command, space, op, metrics, own, result);
        return;
    case ENGINE_PENDING:
        break;
    }
    CHECK(op->status != ENGINE_PENDING); /* it has no answer yet */
}
