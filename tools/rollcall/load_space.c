/* load_space.c: what the daemon says of a space, and a row as commands. */
#include <string.h>

#include "base/fail.h"
#include "base/num.h"
#include "tools/rollcall/load_private.h"

#define TEXT_MAX 2048
#define KEY_ROOM (4 * LOAD_KEY_MAX + NUM_DIGITS_MAX + LOAD_NAME_MAX)
/* A verb, a key of parts that may prove too long together, the numbers of a record. */
#define COMMAND_MAX (KEY_ROOM + LOAD_RECORD_MAX + 64)

static bool space_fail(struct wire *wire, const char *what, const char *name)
{
    return fail_with(wire->error, sizeof(wire->error), "%.200s: %s %.64s", wire->peer->address,
                     what, name);
}

static bool space_ask(struct wire *wire, const char *space, const char *what, char text[TEXT_MAX])
{
    char name[2 * LOAD_NAME_MAX];

    snprintf(name, sizeof(name), "space_%s_%s", space, what);
    return wire_stat(wire, "settings", name, text, TEXT_MAX);
}

/* feed:{id} or liked:{id}:{member} */
static bool read_pattern(struct load_space *space, const char *text)
{
    static const char id[] = "{id}";
    static const char member[] = "{member}";
    const char *at = strstr(text, id);
    const char *who = strstr(text, member);

    if (at == NULL || strlen(text) >= LOAD_KEY_MAX || space->members != (who != NULL)) {
        return false;
    }
    const char *behind = at + sizeof(id) - 1;

    snprintf(space->before, sizeof(space->before), "%.*s", (int)(at - text), text);
    space->before_length = strlen(space->before);
    if (who == NULL) {
        snprintf(space->behind, sizeof(space->behind), "%s", behind);
    } else {
        snprintf(space->between, sizeof(space->between), "%.*s", (int)(who - behind), behind);
    }
    space->between_length = strlen(space->between);
    space->behind_length = strlen(space->behind);
    return true;
}

/* {repost:20,comment:20} */
static bool read_slots(struct load_space *space, char *text)
{
    char *save = NULL;

    for (char *slot = strtok_r(text, "{,}", &save); slot != NULL;
         slot = strtok_r(NULL, "{,}", &save)) {
        size_t length = strcspn(slot, ":");

        if (space->slot_count == ENGINE_SLOTS_MAX || length > ENGINE_SPACE_NAME_MAX) {
            return false;
        }
        memcpy(space->slots[space->slot_count], slot, length);
        space->slots[space->slot_count++][length] = '\0';
    }
    return space->slot_count > 0;
}

bool load_space_ask(struct load_space *space, struct wire *wire, const char *name)
{
    char text[TEXT_MAX];

    memset(space, 0, sizeof(*space));
    if (!space_ask(wire, name, "kind", text)) {
        return wire->answered && space_fail(wire, "no space of the name, or no rollcalld:", name);
    }
    space->members = strcmp(text, "phantom") == 0;
    if (!space->members && strcmp(text, "counter") != 0) {
        return space_fail(wire, "only spaces of kind counter and phantom are loaded, not", name);
    }
    if (!space_ask(wire, name, "key", text) || !read_pattern(space, text)) {
        return space_fail(wire, "it does not tell the keys of", name);
    }
    if (!space->members && (!space_ask(wire, name, "slots", text) || !read_slots(space, text))) {
        return space_fail(wire, "it does not tell the slots of", name);
    }
    return true;
}

/* ---- commands ---- */

void load_put_number(struct buf *to, uint64_t number)
{
    char *at = buf_room(to, NUM_DIGITS_MAX);

    CHECK(at != NULL);
    buf_commit(to, num_print(at, number));
}

static char *space_add(char *at, const char *bytes, size_t length)
{
    memcpy(at, bytes, length);
    return at + length;
}

/* The key; there is room for all parts of it. */
static char *space_add_key(const struct load_space *space, const struct load_row *row, char *at)
{
    at = space_add(at, space->before, space->before_length);
    at += num_print(at, row->id);
    if (space->members) {
        at = space_add(at, space->between, space->between_length);
        return space_add(at, row->member, row->member_length);
    }
    return space_add(at, space->behind, space->behind_length);
}

void load_space_key(const struct load_space *space, const struct load_row *row, struct buf *to)
{
    char *at = buf_room(to, KEY_ROOM);

    CHECK(at != NULL && row->member_length <= LOAD_KEY_MAX);
    buf_commit(to, (size_t)(space_add_key(space, row, at) - at));
}

/* " 0 0 BYTES", the data, and the ends of both lines: room for it is there. */
static char *space_add_data(char *at, const char *data, size_t length)
{
    at = space_add(at, " 0 0 ", 5);
    at += num_print(at, length);
    at = space_add(at, "\r\n", 2);
    at = space_add(at, data, length);
    return space_add(at, "\r\n", 2);
}

size_t load_space_print(const struct load_space *space, const struct load_row *row, char *text)
{
    char *at = text;

    if (row->text != NULL && row->text_length <= LOAD_RECORD_MAX) {
        for (size_t i = 0; i < row->text_length; i++) {
            text[i] = row->text[i] == '\t' ? ',' : row->text[i];
        }
        return row->text_length;
    }
    for (size_t i = 0; i < space->slot_count; i++) {
        if (row->set >> i & 1) {
            at += num_print(at, row->values[i]);
        }
        *at++ = ',';
    }
    return (size_t)(at - text) - 1;
}

/* One command: of the record (slot NULL), of a slot, or of a member. False: the key is too long. */
static bool compose_one(const struct load *load, const struct load_row *row, const char *slot,
                        uint64_t value, struct buf *to)
{
    const struct load_space *space = &load->space;
    char text[LOAD_RECORD_MAX];
    size_t start = to->length;
    char *at = buf_room(to, COMMAND_MAX);

    CHECK(at != NULL); /* its limit is beyond what a batch may have */
    char *key = space_add(at, load->options->mode == LOAD_ADD ? "add " : "set ", 4);

    if (space->members && row->member_length > LOAD_KEY_MAX) {
        return false;
    }
    char *end = space_add_key(space, row, key);

    if (slot != NULL) {
        end = space_add(end, ".", 1);
        end = space_add(end, slot, strlen(slot));
    }
    if ((size_t)(end - key) > LOAD_KEY_MAX) {
        return false;
    }
    size_t length = space->members ? 1
                    : slot != NULL ? num_print(text, value)
                                   : load_space_print(space, row, text);

    end = space_add_data(end, space->members ? "1" : text, length);
    buf_commit(to, (size_t)(end - at));
    CHECK(to->length - start <= COMMAND_MAX);
    return true;
}

/* Some slots are named: each for itself. */
static unsigned compose_slots(const struct load *load, const struct load_row *row, struct buf *to)
{
    unsigned commands = 0;

    for (uint32_t set = row->set; set != 0; set &= set - 1) {
        unsigned i = (unsigned)__builtin_ctz(set);

        if (!compose_one(load, row, load->space.slots[i], row->values[i], to)) {
            return 0;
        }
        commands++;
    }
    return commands;
}

static bool member_is_sound(const struct load_row *row)
{
    for (size_t i = 0; i < row->member_length; i++) {
        unsigned char byte = (unsigned char)row->member[i];

        if (byte <= ' ' || byte == 0x7f) {
            return false;
        }
    }
    return row->member_length > 0;
}

bool load_space_is_whole(const struct load *load)
{
    return load->columns.named == (uint32_t)((1ull << load->space.slot_count) - 1);
}

bool load_space_takes(const struct load *load, const struct load_row *row, char why[LOAD_WHY_MAX])
{
    if (!load->space.members && row->set == 0) {
        return fail_with(why, LOAD_WHY_MAX, "no number is in the line");
    }
    if (load->space.members && !member_is_sound(row)) {
        return fail_with(why, LOAD_WHY_MAX,
                         "the member is empty, or has spaces or control characters");
    }
    return true;
}

unsigned load_space_compose(const struct load *load, const struct load_row *row, struct buf *to,
                            char why[LOAD_WHY_MAX])
{
    const struct load_space *space = &load->space;
    size_t start = to->length;
    unsigned commands = 0;

    if (!load_space_takes(load, row, why)) {
        return 0;
    }
    if (space->members || load_space_is_whole(load)) {
        commands = compose_one(load, row, NULL, 0, to);
    } else {
        commands = compose_slots(load, row, to);
    }
    if (commands == 0) {
        buf_truncate(to, start);
        snprintf(why, LOAD_WHY_MAX, "the key would be longer than %u bytes", LOAD_KEY_MAX);
    }
    return commands;
}
