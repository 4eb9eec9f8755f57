#include "tools/rollcall/inspect_kind.h"

#include <string.h>

#include "tools/rollcall/inspect_private.h"

static void hex_description(FILE *to, const struct table_file_info *info)
{
    inspect_dump(to, info->description, info->description_bytes, 0);
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

static const struct inspect_kind kinds[] = {
    {"counter", hex_description, hex_page, hex_entry},
    {"phantom", hex_description, hex_page, hex_entry},
    {"", hex_description, hex_page, hex_entry}, /* the last: any other */
};
#define KINDS (sizeof kinds / sizeof *kinds)

const struct inspect_kind *inspect_kind_find(const char *name)
{
    size_t i = 0;
    while (i + 1 < KINDS && strcmp(kinds[i].name, name) != 0) {
        i++;
    }
    return &kinds[i];
}
