/* settings_check.c: a draft as a whole: what depends on more than one key, and what is left to the
 * program. */
#include "config/settings_draft.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/size.h"
#include "config/auth.h"
#include "row/row.h"

#define SEGMENT_ENDS_MORE  3     /* journal_ring.c's margin, in records */
#define SEGMENT_ROOM_LEAST 73728 /* of a segment, for pieces of room and a few changes */
#define WORKERS_SHARE      4     /* threads: auto gives the workers at most this part of memory */
#define MIB                1048576.0

/* ---- one space ---- */

/* Adds a mistake if a given key means nothing here. */
static void check_given(struct settings_draft *draft, const struct space_settings *space,
                        const struct settings_row *row, const struct settings_place *place)
{
    const struct option_row *option = &row->option;
    const char *ids = (option->flags & ROW_ANY_ONLY) != 0 ? "ids: any" : "ids: growing";

    if ((row->kinds & 1u << space->kind) == 0) {
        settings_error(draft, place, "%s is not a key of kind %s", option->name,
                       settings_space_rows.rows[0].option.words[space->kind]);
    } else if (!settings_row_applies(row, space)) {
        settings_error(draft, place, "%s holds only with %s", option->name,
                       (option->flags & ROW_STORE_ONLY) != 0 ? "role: store" : ids);
    }
}

static void check_keys(struct settings_draft *draft, size_t number)
{
    const struct space_settings *space = &draft->settings->spaces[number];

    for (size_t i = 0; i < settings_space_rows.count; i++) {
        const struct settings_row *row = &settings_space_rows.rows[i];
        const struct settings_place *place = &draft->spaces[number][i];
        bool mandatory = (row->option.flags & ROW_MANDATORY) != 0;

        if (place->given && !place->bad) {
            check_given(draft, space, row, place);
        }
        if (!place->given && mandatory && settings_row_applies(row, space)) {
            settings_error(draft, &draft->space_names[number], "space %s lacks the key %s",
                           space->name, row->option.name);
        }
    }
}

static void check_slots(struct settings_draft *draft, size_t number)
{
    const struct space_settings *space = &draft->settings->spaces[number];
    const struct settings_place *place = settings_draft_space_place(draft, number, "slots");
    unsigned bits = 0;

    if (!place->given || place->bad) {
        return;
    }
    for (size_t i = 0; i < space->slot_count; i++) {
        bits += space->slots[i].bits;
    }
    if (space->slot_count == 0) {
        settings_error(draft, place, "slots is empty: it must name 1 to %d", ENGINE_SLOTS_MAX);
    }
    if (bits > SETTINGS_RECORD_BITS_MAX) {
        settings_error(draft, place, "slots have %u bits together: at most %d", bits,
                       SETTINGS_RECORD_BITS_MAX);
    }
}

/* A slot that is configured must not be in `forget`, or a later mistake in its name would lose it.
 */
static void check_forget(struct settings_draft *draft, size_t number)
{
    const struct space_settings *space = &draft->settings->spaces[number];

    for (size_t i = 0; i < space->forget_count; i++) {
        for (size_t j = 0; j < space->slot_count; j++) {
            if (strcmp(space->forget[i], space->slots[j].name) == 0) {
                settings_error(draft, settings_draft_space_place(draft, number, "forget"),
                               "forget names the slot %s, which slots names too: take it out of "
                               "one of them",
                               space->forget[i]);
            }
        }
    }
}

/* Completes the key and says whether it can be a pattern. */
static bool check_key(struct settings_draft *draft, size_t number)
{
    struct space_settings *space = &draft->settings->spaces[number];
    struct settings_place place = *settings_draft_space_place(draft, number, "key");
    bool member = space->kind == SPACE_PHANTOM;
    char error[PATTERN_ERROR_MAX];
    size_t at = 0;

    if (place.bad) {
        return false;
    }
    if (!place.given) {
        strcpy(space->key, space->name);
        strcat(space->key, member ? ":{id}:{member}" : ":{id}");
    }
    if (pattern_valid(space->key, member, error, &at)) {
        return true;
    }
    if (place.column > 0) {
        place.column += at + place.quoted;
    }
    settings_error(draft, &place, "key: %s", error);
    return false;
}

static enum space_oldest usual_oldest(const struct settings *settings,
                                      const struct space_settings *space)
{
    if (space->ids != SPACE_IDS_GROWING || space->kind == SPACE_PLAIN) {
        return SPACE_OLDEST_REFUSE;
    }
    if (settings->data != NULL) {
        return SPACE_OLDEST_DUMP;
    }
    return space->role == SPACE_CACHE ? SPACE_OLDEST_RECYCLE : SPACE_OLDEST_REFUSE;
}

/* Ids of a space of any are of no age: its parts leave memory for want of that, and come back. */
static bool wrong_oldest_of_any(const struct space_settings *space)
{
    return space->ids == SPACE_IDS_ANY &&
           (space->oldest == SPACE_OLDEST_RECYCLE ||
            (space->oldest == SPACE_OLDEST_DUMP && space->kind != SPACE_COUNTER));
}

static void check_oldest(struct settings_draft *draft, size_t number)
{
    struct space_settings *space = &draft->settings->spaces[number];

    if (wrong_oldest_of_any(space)) {
        settings_error(draft, settings_draft_space_place(draft, number, "oldest"),
                       "oldest: with ids: any it is refuse, or dump for kind: counter");
    } else if (space->oldest == SPACE_OLDEST_DEFAULT) {
        space->oldest = usual_oldest(draft->settings, space);
    } else if (space->oldest == SPACE_OLDEST_DUMP && draft->settings->data == NULL) {
        settings_error(draft, settings_draft_space_place(draft, number, "oldest"),
                       "oldest: dump needs a directory for the tables: give the key data");
    }
}

/* Returns whether its key can be looked at together with the others'. */
static bool check_space(struct settings_draft *draft, size_t number)
{
    struct space_settings *space = &draft->settings->spaces[number];
    const struct settings_place *kind = settings_draft_space_place(draft, number, "kind");

    if (!kind->given) {
        settings_error(draft, &draft->space_names[number], "space %s lacks the key kind",
                       space->name);
    }
    if (!kind->given || kind->bad) {
        return false;
    }
    check_keys(draft, number);
    check_oldest(draft, number);
    if (space->kind == SPACE_COUNTER) {
        check_slots(draft, number);
    }
    check_forget(draft, number);
    return space->kind != SPACE_PLAIN && check_key(draft, number);
}

/* ---- spaces together ---- */

static void refuse_pair(struct settings_draft *draft, size_t first, size_t second,
                        const char *error)
{
    const struct settings_place *key = settings_draft_space_place(draft, second, "key");

    settings_error(draft, key->given ? key : &draft->space_names[second],
                   "spaces %s and %s could own one key: %s", draft->settings->spaces[first].name,
                   draft->settings->spaces[second].name, error);
}

/* Numbers are those of the spaces whose keys are patterns. */
static void check_patterns(struct settings_draft *draft, size_t numbers[], size_t count)
{
    const char *texts[SETTINGS_SPACES_MAX];
    struct pattern_set *set = NULL;
    char error[PATTERN_ERROR_MAX];
    uint32_t first, second;

    for (;;) {
        for (size_t i = 0; i < count; i++) {
            texts[i] = draft->settings->spaces[numbers[i]].key;
        }
        if (count == 0 ||
            (set = pattern_set_create(texts, count, error, &first, &second)) != NULL) {
            break;
        }
        CHECK(first < count && second < count);
        refuse_pair(draft, numbers[first], numbers[second], error);
        /* Without the second there may be further pairs to report. */
        memmove(&numbers[second], &numbers[second + 1], (count - second - 1) * sizeof(numbers[0]));
        count--;
    }
    pattern_set_destroy(set);
}

/* A key of no other space must have one owner. */
static void check_plain(struct settings_draft *draft)
{
    const char *first = NULL;

    for (size_t i = 0; i < draft->settings->space_count; i++) {
        const struct space_settings *space = &draft->settings->spaces[i];

        if (space->kind != SPACE_PLAIN) {
            continue;
        }
        if (first != NULL) {
            settings_error(draft, settings_draft_space_place(draft, i, "kind"),
                           "spaces %s and %s are both of kind plain: at most one may be", first,
                           space->name);
        }
        first = space->name;
    }
}

static void check_spaces(struct settings_draft *draft)
{
    static const struct settings_place start = {.line = 1, .column = 1};
    size_t numbers[SETTINGS_SPACES_MAX];
    size_t count = 0;

    if (draft->settings->space_count == 0 && !draft->unread &&
        !settings_draft_place(draft, "spaces")->bad) {
        settings_error(draft, &start, "no space: the key spaces must name at least one");
    }
    for (size_t i = 0; i < draft->settings->space_count; i++) {
        if (check_space(draft, i)) {
            numbers[count++] = i;
        }
    }
    check_patterns(draft, numbers, count);
    check_plain(draft);
}

/* ---- the rest ---- */

/* "1.6.45": a library that finds anything else takes the server for a very old one, or fails. */
static void check_version_shown(struct settings_draft *draft)
{
    const struct settings_place *place = settings_draft_place(draft, "version-shown");
    const char *text = draft->settings->version_shown;
    size_t dots = 0;
    bool good = *text >= '1' && *text <= '9';

    for (const char *at = text; *at != '\0'; at++) {
        bool digit = *at >= '0' && *at <= '9';
        dots += *at == '.';
        good = good && (digit || (*at == '.' && at[1] >= '0' && at[1] <= '9'));
    }
    if (!good || dots != 2) {
        settings_error(draft, place,
                       "version-shown must be three numbers such as 1.6.45, the first not 0");
    }
}

/* The working directory of the start is not that of a daemon in the background. */
static void complete_data(struct settings_draft *draft)
{
    const struct settings_place *place = settings_draft_place(draft, "data");
    char **data = &draft->settings->data;
    char folder[PATH_MAX], *whole;

    if (*data == NULL || **data == '/') {
        return;
    }
    if (getcwd(folder, sizeof(folder)) == NULL) {
        settings_error(draft, place, "the working directory: %s", strerror(errno));
        return;
    }
    CHECK(asprintf(&whole, "%s/%s", folder, *data) >= 0);
    free(*data);
    *data = whole;
    if (strlen(whole) > SETTINGS_DATA_PATH_MAX) {
        settings_error(draft, place, "data: the path has more than %d bytes",
                       SETTINGS_DATA_PATH_MAX);
    }
}

static void check_segment(struct settings_draft *draft)
{
    if (draft->settings->journal.segment_bytes % SETTINGS_SEGMENT_UNIT != 0) {
        settings_error(draft, settings_draft_place(draft, "journal.segment"),
                       "journal.segment must be a multiple of 4KiB");
    }
}

/* The journal keeps room for a pad at each segment's end that lies in the buffer, and takes and
 * gives room in pieces. */
static void check_buffer(struct settings_draft *draft)
{
    uint64_t capacity = draft->settings->journal.segment_bytes - SETTINGS_SEGMENT_UNIT;
    uint64_t ends = draft->settings->journal.buffer_bytes / capacity + SEGMENT_ENDS_MORE;

    if (ends * JOURNAL_RECORD_MAX + SEGMENT_ROOM_LEAST > capacity) {
        settings_error(draft, settings_draft_place(draft, "journal.buffer"),
                       "journal.buffer is too large for segments this small: a larger "
                       "journal.segment, or a smaller buffer");
    }
}

static void complete_threads(struct settings *settings)
{
    uint64_t most = settings->memory_bytes / WORKERS_SHARE / SETTINGS_WORKER_BYTES;
    cpu_set_t processors;
    uint64_t threads = 1;

    if (settings->threads != 0) {
        return;
    }
    if (sched_getaffinity(0, sizeof(processors), &processors) == 0) {
        threads = (uint64_t)CPU_COUNT(&processors);
    }
    if (threads > most) {
        threads = most;
    }
    if (threads > SETTINGS_THREADS_MAX) {
        threads = SETTINGS_THREADS_MAX;
    }
    settings->threads = threads == 0 ? 1 : (unsigned)threads;
}

/* Returns whether ids may come to lie below the oldest table of the space, and be written there all
 * the same. */
static bool takes_below(const struct space_settings *space)
{
    bool drops = space->oldest == SPACE_OLDEST_RECYCLE ||
                 (space->oldest == SPACE_OLDEST_DUMP && space->row.dumps_max > 0);

    return drops && space->kind == SPACE_COUNTER && space->ids == SPACE_IDS_GROWING &&
           space->role == SPACE_CACHE;
}

/* cold.cache has a share for each of these spaces, and one for pages, which also have what is left.
 */
static void complete_below(struct settings *settings)
{
    uint64_t shares = settings_dumps(settings) ? 1 : 0;

    for (size_t i = 0; i < settings->space_count; i++) {
        shares += takes_below(&settings->spaces[i]) ? 1 : 0;
    }
    for (size_t i = 0; i < settings->space_count; i++) {
        struct space_settings *space = &settings->spaces[i];
        uint64_t share = takes_below(space) ? settings->cold.cache_bytes / shares : 0;

        space->below_bytes = share < space->row.table_bytes ? share : space->row.table_bytes;
    }
}

/* Returns the users of the file that the option `name` gives; NULL: no file is given, or the file
 * has a mistake. */
static struct auth *load_users(struct settings_draft *draft, const char *name, const char *file)
{
    const struct settings_place *place = settings_draft_place(draft, name);
    char error[AUTH_ERROR_MAX];
    unsigned exposed_mode;

    if (file == NULL) {
        return NULL;
    }
    struct auth *users = auth_load(file, &exposed_mode, error);

    if (users == NULL) {
        settings_error(draft, place, "%s %s", name, error);
    } else if (exposed_mode != 0) {
        settings_warning(draft, place,
                         "%s %s: every user of this machine can read or change the "
                         "passwords (mode %04o); do: chmod o-rwx %s",
                         name, file, exposed_mode, file);
    }
    return users;
}

/* What the engines say beyond the table's limits. */
static void check_engines(struct settings_draft *draft)
{
    char error[COUNTER_ERROR_MAX];

    for (size_t i = 0; i < draft->settings->space_count; i++) {
        if (!settings_kind_valid(&draft->settings->spaces[i], (uint32_t)i, error)) {
            settings_error(draft, &draft->space_names[i], "space %s: %s",
                           draft->settings->spaces[i].name, error);
        }
    }
}

static void check_memory(struct settings_draft *draft)
{
    const struct settings *settings = draft->settings;
    const struct settings_place *place = settings_draft_place(draft, "memory");
    char given[SIZE_TEXT_MAX];
    char *note = NULL;
    size_t length;
    FILE *out = open_memstream(&note, &length);
    uint64_t sum;

    CHECK(out != NULL);
    sum = settings_memory_sum(settings, out);
    CHECK(fclose(out) == 0);
    if (sum <= settings->memory_bytes) {
        free(note);
        return;
    }
    size_exact(given, settings->memory_bytes);
    settings_error(draft, place->given ? place : NULL,
                   "memory of %s is too little: this configuration holds up to %.1f MiB", given,
                   (double)sum / MIB);
    settings_error_note(draft, note);
}

void settings_check(struct settings_draft *draft)
{
    struct settings *settings = draft->settings;

    settings_address_check(draft);
    settings_address_check_admin(draft);
    check_spaces(draft);
    check_version_shown(draft);
    settings->auth = load_users(draft, "auth-file", settings->auth_file);
    settings->admin_auth = load_users(draft, "admin-auth", settings->admin_auth_file);
    settings_tls_check(draft);
    complete_data(draft);
    settings_replication_check(draft);
    check_segment(draft);
    check_buffer(draft);
    complete_threads(settings);
    complete_below(settings);
    if (draft->error_count == 0) {
        check_engines(draft);
    }
    /* A sum of wrong parts would say nothing. */
    if (draft->error_count == 0) {
        check_memory(draft);
    }
}
