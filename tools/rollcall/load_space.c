/* load_space.c: what the daemon says of a space, and a row as commands. */
#include <string.h>

#include "base/num.h"
#include "tools/rollcall/load_private.h"

#define TEXT_MAX 2048

static bool space_fail(struct wire *wire, const char *what, const char *name)
{
    snprintf(wire->error, sizeof(wire->error), "%.200s: %s %.64s", wire->address, what, name);
    return false;
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
    if (who == NULL) {
        snprintf(space->behind, sizeof(space->behind), "%s", behind);
    } else {
        snprintf(space->between, sizeof(space->between), "%.*s", (int)(who - behind), behind);
    }
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
        return space_fail(wire, "no space of the name, or no rollcalld:", name);
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

static void space_put(struct buf *to, const char *bytes, size_t length)
{
    CHECK(buf_append(to, bytes, length)); /* its limit is beyond what a batch may have */
}

static void space_put_text(struct buf *to, const char *text)
{
    space_put(to, text, strlen(text));
}

void load_put_number(struct buf *to, uint64_t number)
{
    char *at = buf_room(to, NUM_DIGITS_MAX);

    CHECK(at != NULL);
    buf_commit(to, num_print(at, number));
}

bool load_space_key(const struct load_space *space, const struct load_row *row, struct buf *to)
{
    size_t start = to->length;

    space_put_text(to, space->before);
    load_put_number(to, row->id);
    if (space->members) {
        space_put_text(to, space->between);
        space_put(to, row->member, row->member_length);
    } else {
        space_put_text(to, space->behind);
    }
    return to->length - start <= LOAD_KEY_MAX;
}

static const char *verb_of(const struct load *load)
{
    return load->options->mode == LOAD_ADD ? "add " : "set ";
}

static void space_put_data(struct buf *to, const char *data, size_t length)
{
    space_put_text(to, " 0 0 ");
    load_put_number(to, length);
    space_put_text(to, "\r\n");
    space_put(to, data, length);
    space_put_text(to, "\r\n");
}

size_t load_space_print(const struct load_space *space, const struct load_row *row, char *text)
{
    char *at = text;

    for (size_t i = 0; i < space->slot_count; i++) {
        if (row->set >> i & 1) {
            at += num_print(at, row->values[i]);
        }
        *at++ = ',';
    }
    return (size_t)(at - text) - 1;
}

/* All slots are named: the record whole. */
static unsigned compose_record(const struct load *load, const struct load_row *row, struct buf *to)
{
    char text[ENGINE_VALUE_MAX + NUM_DIGITS_MAX];

    space_put_text(to, verb_of(load));
    if (!load_space_key(&load->space, row, to)) {
        return 0;
    }
    space_put_data(to, text, load_space_print(&load->space, row, text));
    return 1;
}

/* Some slots are named: each for itself. */
static unsigned compose_slots(const struct load *load, const struct load_row *row, struct buf *to)
{
    char text[NUM_DIGITS_MAX];
    unsigned commands = 0;

    for (uint32_t set = row->set; set != 0; set &= set - 1) {
        unsigned i = (unsigned)__builtin_ctz(set);

        space_put_text(to, verb_of(load));
        if (!load_space_key(&load->space, row, to)) {
            return 0;
        }
        space_put_text(to, ".");
        space_put_text(to, load->space.slots[i]);
        space_put_data(to, text, num_print(text, row->values[i]));
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
        snprintf(why, LOAD_WHY_MAX, "no number is in the line");
        return false;
    }
    if (load->space.members && !member_is_sound(row)) {
        snprintf(why, LOAD_WHY_MAX, "the member is empty, or has spaces or control characters");
        return false;
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
    if (space->members) {
        space_put_text(to, verb_of(load));
        commands = load_space_key(space, row, to);
        space_put_data(to, "1", 1);
    } else if (load_space_is_whole(load)) {
        commands = compose_record(load, row, to);
    } else {
        commands = compose_slots(load, row, to);
    }
    if (commands == 0) {
        buf_truncate(to, start);
        snprintf(why, LOAD_WHY_MAX, "the key would be longer than %u bytes", LOAD_KEY_MAX);
    }
    return commands;
}
