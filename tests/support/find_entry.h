/* find_entry.h: looks for an entry of a table file as an engine does: index, page, search. */
#ifndef ROLLCALL_TESTS_SUPPORT_FIND_ENTRY_H
#define ROLLCALL_TESTS_SUPPORT_FIND_ENTRY_H

#include "store/table_file.h"

/* DONE or ABSENT, with at most one pread; else what the read said. `page`: room for one. */
static inline enum table_file_result find_entry(const struct table_file *file, unsigned section,
                                                uint64_t id, uint8_t sub, void *value, void *page,
                                                char error[TABLE_FILE_ERROR_MAX])
{
    uint64_t number;
    if (!table_file_entry_page(file, section, id, sub, &number)) {
        return TABLE_FILE_ABSENT;
    }
    enum table_file_result result = table_file_read_page(file, number, page, error);
    if (result != TABLE_FILE_DONE) {
        return result;
    }
    bool found = table_file_search_page(file, section, number, page, id, sub, value);
    return found ? TABLE_FILE_DONE : TABLE_FILE_ABSENT;
}

#endif
