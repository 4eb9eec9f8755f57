#include "tools/rollcall/inspect_kind.h"

#include <inttypes.h>
#include <string.h>

#include "counter/table.h"
#include "phantom/table.h"
#include "row/row_log.h"
#include "tools/rollcall/inspect_private.h"

static void put_line(void *context, const char *name, uint64_t value)
{
    fprintf(context, "  %s: %" PRIu64 "\n", name, value);
}

static void inspect_kind_put_word(void *context, const char *name, uint64_t value)
{
    fprintf(context, " %s=%" PRIu64, name, value);
}

static void hex_page(FILE *to, const struct table_file_info *info, uint64_t number,
                     const void *page)
{
    (void)info;
    (void)number;
    inspect_dump(to, page, TABLE_FILE_PAGE_BYTES, 0);
}

static void hex_entry(FILE *to, const struct table_file_info *info, unsigned section, uint64_t id,
                      uint8_t sub, const void *value)
{
    (void)id;
    (void)sub;
    inspect_hex(to, value, info->section[section].value_bytes);
}

/* ---- descriptions: a row's state, then the engine's part ---- */

typedef bool explain(const void *bytes, size_t length, row_state_field *field, void *context);

static bool explain_nothing(const void *bytes, size_t length, row_state_field *field, void *context)
{
    (void)bytes;
    (void)length;
    (void)field;
    (void)context;
    return false;
}

/* What cannot be read so far is shown in hex. */
static void describe(FILE *to, const struct table_file_info *info, explain *engine)
{
    const unsigned char *bytes = info->description;
    size_t length = info->description_bytes;
    size_t at = 0;
    if (!row_state_read(bytes, length, put_line, to, &at) ||
        !engine(bytes + at, length - at, put_line, to)) {
        inspect_dump(to, bytes + at, length - at, at);
    }
}

static void counter_description(FILE *to, const struct table_file_info *info)
{
    describe(to, info, counter_table_explain);
}

static void phantom_description(FILE *to, const struct table_file_info *info)
{
    describe(to, info, phantom_shape_explain);
}

static void other_description(FILE *to, const struct table_file_info *info)
{
    describe(to, info, explain_nothing);
}

/* ---- entries ---- */

static void nowhere(void *context, const char *name, uint64_t value)
{
    (void)context;
    (void)name;
    (void)value;
}

static void counter_entry(FILE *to, const struct table_file_info *info, unsigned section,
                          uint64_t id, uint8_t sub, const void *value)
{
    const unsigned char *bytes = info->description;
    size_t at = 0;
    if (!row_state_read(bytes, info->description_bytes, nowhere, NULL, &at) ||
        !counter_table_explain_entry(bytes + at, info->description_bytes - at, section, sub, value,
                                     info->section[section].value_bytes, inspect_kind_put_word,
                                     to)) {
        hex_entry(to, info, section, id, sub, value);
    }
}

static const struct inspect_kind kinds[] = {
    {"counter", counter_description, hex_page, counter_entry},
    {"phantom", phantom_description, hex_page, hex_entry},
    {"", other_description, hex_page, hex_entry}, /* the last: any other */
};
#define KINDS (sizeof(kinds) / sizeof(*kinds))

const struct inspect_kind *inspect_kind_find(const char *name)
{
    size_t i = 0;
    while (i + 1 < KINDS && strcmp(kinds[i].name, name) != 0) {
        i++;
    }
    return &kinds[i];
}

/* ---- events ---- */

void inspect_event(FILE *to, const void *bytes, size_t length)
{
    size_t at = 0;
    uint64_t serial;
    uint64_t base;
    struct row_dropped dropped;
    if (row_drop_read(bytes, length, &serial, &base, &dropped)) {
        inspect_kind_put_word(to, "serial", serial);
        inspect_kind_put_word(to, "base", base);
        for (uint64_t i = 0; i < dropped.count; i++) {
            inspect_kind_put_word(to, "dropped_first", dropped.at[i].first);
            inspect_kind_put_word(to, "dropped_last", dropped.at[i].last);
        }
    } else if (!row_state_read(bytes, length, inspect_kind_put_word, to, &at)) {
        fputc(' ', to);
        inspect_hex(to, bytes, length);
    }
}
