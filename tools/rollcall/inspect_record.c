/* inspect_record.c: a record of the journal as a line: changes and events as engine/change_record.h
 * reads them, all else in hex. */
#include <inttypes.h>
#include <string.h>

#include "engine/change_record.h"
#include "store/journal_format.h"
#include "tools/rollcall/inspect_kind.h"
#include "tools/rollcall/inspect_private.h"

static const char *const type_names[] = {
    [JOURNAL_PAD] = "pad",
    [JOURNAL_CLOSED] = "closed",
    [JOURNAL_REIGN] = "reign",
    [CHANGE_RECORD_SLOT] = "slot",
    [CHANGE_RECORD_SLOTS] = "slots",
    [CHANGE_RECORD_DELETE] = "delete",
    [CHANGE_RECORD_MEMBER_ADD] = "add",
    [CHANGE_RECORD_MEMBER_DELETE] = "remove",
    [CHANGE_RECORD_EVENT] = "event",
};

static const char *const event_names[] = {
    [CHANGE_EVENT_SPACE] = "space",      [CHANGE_EVENT_FIRST] = "first table",
    [CHANGE_EVENT_SETTLE] = "settle",    [CHANGE_EVENT_OPEN] = "open",
    [CHANGE_EVENT_LAYER] = "layer",      [CHANGE_EVENT_DROP] = "drop",
    [CHANGE_EVENT_APART] = "apart anew", [CHANGE_EVENT_WHOLE] = "whole",
    [CHANGE_EVENT_PART] = "part",
};

static const char *const slot_places[] = {
    [CHANGE_THERE] = "",
    [CHANGE_INSIDE] = " (new, inside)",
    [CHANGE_APART] = " (new, apart)",
    [CHANGE_THERE_APART] = " (apart)",
};
static const char *const add_places[] = {
    [CHANGE_THERE] = " (an exception less)",
    [CHANGE_INSIDE] = " (inside)",
    [CHANGE_APART] = " (apart)",
    [CHANGE_BOTH] = " (both)",
};
static const char *const remove_places[] = {
    [CHANGE_THERE] = "",
    [CHANGE_INSIDE] = " (an exception more)",
    [CHANGE_APART] = " (no longer apart)",
    [CHANGE_BOTH] = " (no longer apart, an exception more)",
};

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

static const char *name_of(const char *const *names, size_t count, unsigned index)
{
    return index < count && names[index] ? names[index] : "?";
}

const char *inspect_record_name(uint8_t type)
{
    return name_of(type_names, LENGTH(type_names), type);
}

static void put_slots(FILE *to, const struct change *change)
{
    const char *before = " ";
    for (unsigned i = 0; i < CHANGE_SLOTS_MAX; i++) {
        if ((change->named >> i & 1) == 0) {
            continue;
        }
        if (change->set >> i & 1) {
            fprintf(to, "%s%u=%" PRIu64, before, i, change->values[i]);
        } else {
            fprintf(to, "%s%u=unset", before, i);
        }
        before = ",";
    }
}

static void put_change(FILE *to, const struct change *change)
{
    fprintf(to, "space %u id %" PRIu64 ":", change->space, change->id);
    switch (change->type) {
    case CHANGE_SLOTS:
        put_slots(to, change);
        fputs(name_of(slot_places, LENGTH(slot_places), change->place), to);
        break;
    case CHANGE_DELETE:
        fputs(" deleted", to);
        if (change->place == CHANGE_INSIDE) {
            fprintf(to, " (of layer %u)", change->layer);
        }
        break;
    case CHANGE_MEMBER_ADD:
    case CHANGE_MEMBER_DELETE:
        fprintf(to, " member %016" PRIx64 " %016" PRIx64 "%s", change->member[0], change->member[1],
                change->type == CHANGE_MEMBER_ADD
                    ? name_of(add_places, LENGTH(add_places), change->place)
                    : name_of(remove_places, LENGTH(remove_places), change->place));
        break;
    }
}

static void inspect_record_put_event(FILE *to, const struct change_record_event *event)
{
    struct change_space_head head;
    size_t at = 0;
    if (event->event == CHANGE_EVENT_SPACE &&
        change_space_head_decode(event->bytes, event->length, &head)) {
        fprintf(to, " %s, of kind %s;", head.name, head.kind);
        at = CHANGE_SPACE_HEAD_BYTES;
    }
    inspect_event(to, (const unsigned char *)event->bytes + at, event->length - at);
}

void inspect_record(FILE *to, const struct journal_record *record)
{
    struct change change;
    struct change_record_event event;
    enum change_record_kind kind = CHANGE_RECORD_IS_BAD;
    if (record->type == JOURNAL_REIGN) {
        uint64_t words[JOURNAL_REIGN_BYTES / JOURNAL_UNIT - 1];
        memcpy(words, record->payload, sizeof(words));
        fprintf(to, "epoch %" PRIu64 " of node %016" PRIx64 " since %" PRIu64, words[0], words[1],
                words[2]);
        return;
    }
    if (record->type >= JOURNAL_TYPES_RESERVED) {
        kind = change_record_decode(record->type, record->a, record->b, record->payload,
                                    record->bytes, &change, &event);
    }
    switch (kind) {
    case CHANGE_RECORD_IS_CHANGE:
        put_change(to, &change);
        break;
    case CHANGE_RECORD_IS_EVENT:
        fprintf(to, "space %u %s:", event.space,
                name_of(event_names, LENGTH(event_names), event.event));
        inspect_record_put_event(to, &event);
        break;
    case CHANGE_RECORD_IS_BAD:
        if (record->bytes > 0 && record->type >= JOURNAL_TYPES_RESERVED) {
            inspect_hex(to, record->payload, record->bytes);
        }
        break;
    }
}
