/* table_file_private.h: what reading a table file, verifying and rescuing it share. Included by
 * these only.
 */
#ifndef ROLLCALL_STORE_TABLE_FILE_PRIVATE_H
#define ROLLCALL_STORE_TABLE_FILE_PRIVATE_H

#include "store/open_files.h"
#include "store/table_file_format.h"

#define TABLE_FILE_CLASS       0x7461626cu
#define TABLE_FILE_BLOCK_PAGES (TABLE_FILE_BLOCK_BYTES / TABLE_FILE_PAGE_BYTES)
#define TABLE_FILE_RESTORE     "restore the file from a copy"

/*
 * Invariants, all set by open and never changed:
 *   F1 section_begin[] rises; section_begin[0] = info.pages; [info.sections] is where the index is
 *   F2 the file has exactly the bytes its header says
 *   F3 first_keys rise within a section (not promised to verify, which looks for itself)
 */
struct table_file {
    uint32_t class;
    int fd; /* -1: shared */
    bool direct;
    struct open_files *shared;   /* whose the descriptor is; NULL: this file's own */
    struct open_file *open_file; /* in that set */
    struct vfs *vfs;
    char *path;
    struct table_file_header *header; /* NULL once it is open: what is needed of it is kept apart */
    uint64_t header_sum;              /* its checksum, which is of the identity too */
    struct table_file_info info;
    uint64_t section_begin[TABLE_FILE_SECTIONS_MAX + 1]; /* page numbers */
    uint64_t index_pages;
    uint64_t sum_pages;
    /* Index and checksums, in one piece of memory that begins at first_keys: at first whole pages,
     * as in the file; once it is open just what they say, the description after them. */
    struct table_file_key *first_keys;
    uint32_t *checksums;
    size_t kept_bytes; /* of that piece */
};

/* As table_file_open, without a look at the index. */
enum table_file_result table_file_open_core(struct vfs *vfs, const char *path, bool direct,
                                            struct table_file **file, char *error);

/* What opening is made of: is the header sound; into info; where things are, and the bytes the file
 * has when it is whole. */
enum table_file_result table_file_check_header(const struct table_file *file, char *error);
void table_file_take_info(struct table_file *file);
uint64_t table_file_lay_out(struct table_file *file);

/* Pages with checksums: from the first of the table to the last of the index. */
static inline uint64_t table_file_summed_pages(const struct table_file *file)
{
    return file->section_begin[file->info.sections] + file->index_pages;
}

/* Reads all of `bytes`; `what` is their name in an error. */
enum table_file_result table_file_read_at(const struct table_file *file, void *to, size_t bytes,
                                          uint64_t offset, const char *what, char *error);
/* Reads `count` whole pages without a look at their checksums. */
enum table_file_result table_file_read_run(const struct table_file *file, uint64_t first,
                                           uint64_t count, void *to, char *error);
/* Returns whether the page matches its checksum. False with `error`. */
bool table_file_page_sound(const struct table_file *file, uint64_t number, const void *page,
                           char *error);
/* Entries in a page of that section. */
size_t table_file_entries_in(const struct table_file *file, unsigned section, uint64_t number);
/* Do the entries of a page rise, above `last` (NULL: nothing came before)? False with `error`. */
bool table_file_order_sound(const struct table_file *file, unsigned section, uint64_t number,
                            const unsigned char *page, const struct table_file_key *last,
                            char *error);
/* Page-aligned memory, freed with free(). NULL when refused. */
void *table_file_pages_alloc(uint64_t pages);

#endif
