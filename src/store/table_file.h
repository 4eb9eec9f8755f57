/*
 * table_file.h: a table on the disk. One format for dump, checkpoint and full copy: the table's
 * pages as they are in memory, its dicts as sections of sorted entries, a checksum a page. What the
 * table is and how it is to be read is the engine's; here it is a description of opaque bytes. The
 * format stands at the top of table_file_format.h.
 *
 * Writing: from front to back, once: all pages, then the entries section by section, in rising
 * order. It goes out in blocks of 1 MiB, each given to the disk at once, so that the sync at the
 * end has little left to do and nobody else is held up by it. Between two calls the caller may
 * pause, or give up with abandon. A file is never overwritten, and never changed once it is
 * committed.
 *
 * table_file_commit: all but header and footer; fdatasync; header and footer; fdatasync; sync_dir.
 * So a file with header and footer is whole after any power cut, and a committed one is durable.
 * Whatever goes wrong before, the file is unlinked; after a kill or a cut a part of one may be left
 * under its name, which table_file_open refuses: the manifest does not name it, delete it.
 *
 * Reading: open reads header, footer, checksums and the first key of each page of entries, and
 * keeps the latter two: 4 bytes a page, and 16 more a page of entries. From then on a page, or the
 * entry of a key, costs one pread of 4096 bytes, and that a key is not there one or none; one more
 * if the file has to be opened for it (table_file_share). Every byte read is checked: a wrong one
 * is an error that names file, page and offset.
 *
 * Page numbers: the pages of the table are 0 .. pages - 1, those of entries follow.
 *
 * Thread rule: a writer belongs to one thread. An open file may be used by any number of threads at
 * once; opened and closed by one.
 */
#ifndef ROLLCALL_STORE_TABLE_FILE_H
#define ROLLCALL_STORE_TABLE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/vfs.h"

struct open_files;

#define TABLE_FILE_PAGE_BYTES      4096u
#define TABLE_FILE_BLOCK_BYTES     (1u << 20) /* of a write, and of a read of many pages */
#define TABLE_FILE_SECTIONS_MAX    8          /* of entries */
#define TABLE_FILE_KEY_BYTES       9u         /* of an entry, before its value */
#define TABLE_FILE_VALUE_MAX       1024u      /* bytes of an entry's value; 0 is allowed */
#define TABLE_FILE_DESCRIPTION_MAX 2048u      /* bytes */
#define TABLE_FILE_KIND_MAX        15         /* characters */
#define TABLE_FILE_SPACE_MAX       32         /* characters */
#define TABLE_FILE_ERROR_MAX       512        /* bytes of an error text, NUL included */

struct table_file_section {
    uint32_t value_bytes; /* of every entry of the section */
    uint64_t entries;     /* open: how many. create: ignored */
};

struct table_file_info {
    char kind[TABLE_FILE_KIND_MAX + 1];
    char space[TABLE_FILE_SPACE_MAX + 1];
    uint64_t serial; /* of the table in its space */
    uint64_t generation;
    uint32_t layer;
    uint64_t start_lsn; /* S: all changes below it are in the image */
    unsigned sections;
    struct table_file_section section[TABLE_FILE_SECTIONS_MAX];
    const void *description; /* create: the caller's. open: lives as long as the open file */
    size_t description_bytes;
    /* Known by open; ignored by create. */
    uint64_t end_lsn; /* E: no change at or above it is in the image */
    uint64_t identity;
    uint64_t pages;
    uint64_t file_bytes;
};

enum table_file_result {
    TABLE_FILE_DONE,
    TABLE_FILE_ABSENT,  /* no such file; no such entry */
    TABLE_FILE_STOPPED, /* the callback wanted no more */
    TABLE_FILE_DAMAGED, /* what was read is not what was written */
    TABLE_FILE_NEWER,   /* of a version or with features this program does not know */
    TABLE_FILE_FAILED,  /* the system refused: no memory, or the file could not be read */
};
/* An `error` is a sentence with file, offset and page, and what to do. It means something only if
 * the result is DAMAGED, NEWER or FAILED, a pointer NULL or a bool false. */

/* ---- writing ---- */

struct table_file_writer;

/* NULL with `error`: also if there is a file of that name. `info` is copied. */
struct table_file_writer *table_file_create(struct vfs *vfs, const char *directory,
                                            const char *name, const struct table_file_info *info,
                                            char error[TABLE_FILE_ERROR_MAX]);
/*
 * The next `count` pages. CHECKs that no entry came yet. `pages` needs no alignment. False: the
 * file is unlinked already, the reason is table_file_writer_error(); only abandon is left to do.
 */
bool table_file_append_pages(struct table_file_writer *writer, const void *pages, size_t count);
/* The next entry of a section; `value`: as many bytes as the section has. CHECKs that sections and
 * keys rise. False: as above. */
bool table_file_append_entry(struct table_file_writer *writer, unsigned section, uint64_t id,
                             uint8_t sub, const void *value);
/* Why it failed; "" if it did not. Valid until commit or abandon. errno has its reason too. */
const char *table_file_writer_error(const struct table_file_writer *writer);
/*
 * Makes the file whole and durable, its name too, and ends the writer in any case. `end_lsn` not
 * below S. The size is put in *file_bytes (may be NULL). False with `error`: the file is unlinked.
 * Blocks for what the disk has not written yet.
 */
bool table_file_commit(struct table_file_writer *writer, uint64_t end_lsn, uint64_t *file_bytes,
                       char error[TABLE_FILE_ERROR_MAX]);
void table_file_abandon(struct table_file_writer *writer); /* unlinks it. NULL: no-op */

/* ---- reading ---- */

struct table_file;

/*
 * `direct`: with O_DIRECT if the file system has it, so that reads leave the system's memory to
 * others; without for a file that is read as a whole at a start. The buffers of all functions below
 * are aligned to 4096 bytes (CHECKed). DONE: *file is open, to be closed.
 */
enum table_file_result table_file_open(struct vfs *vfs, const char *path, bool direct,
                                       struct table_file **file, char error[TABLE_FILE_ERROR_MAX]);
void table_file_close(struct table_file *file); /* NULL: no-op */

/*
 * From here on its descriptor is of that set (store/open_files.h), which closes it for others; the
 * next read opens the file again under its name, and refuses one that has another header. So the
 * name has to stay until the file is closed. A reader must not hold another file of the set.
 */
void table_file_share(struct table_file *file, struct open_files *files);

/* Valid until it is closed. */
const struct table_file_info *table_file_info(const struct table_file *file);
const char *table_file_path(const struct table_file *file);
struct vfs *table_file_vfs(const struct table_file *file); /* it was opened with */
bool table_file_is_direct(const struct table_file *file);
uint64_t table_file_pages(const struct table_file *file); /* that may be read: entries' too */
uint64_t table_file_memory_bytes(const struct table_file *file); /* held while it is open */

/* Gets the pages done so far; false stops. */
typedef bool table_file_piece_fn(void *context, uint64_t pages_done);

/* Pages first .. first + count - 1 of the table to `to`, a MiB at a time; `piece` (may be NULL) is
 * called after each. Several threads may load parts of one file. What is not DONE leaves `to` with
 * whatever. */
enum table_file_result table_file_load_pages(const struct table_file *file, uint64_t first,
                                             uint64_t count, void *to, table_file_piece_fn *piece,
                                             void *context, char error[TABLE_FILE_ERROR_MAX]);

/* Gets an entry; `value` has no alignment and is valid during the call. False stops. */
typedef bool table_file_entry_fn(void *context, uint64_t id, uint8_t sub, const void *value);

/* Every entry of a section, rising, read a MiB at a time. A page is given only if it is sound. */
enum table_file_result table_file_each_entry(const struct table_file *file, unsigned section,
                                             table_file_entry_fn *entry, void *context,
                                             char error[TABLE_FILE_ERROR_MAX]);

/* Page `number`, of the table or of entries, to `page`, with one pread. */
enum table_file_result table_file_read_page(const struct table_file *file, uint64_t number,
                                            void *page, char error[TABLE_FILE_ERROR_MAX]);

/* The only page that may hold a key of a section; no disk. False: none, the key is not there. */
bool table_file_entry_page(const struct table_file *file, unsigned section, uint64_t id,
                           uint8_t sub, uint64_t *number);
/* Looks for the key in that page, as read_page read it. False: not there. `value` (may be NULL)
 * gets the section's value_bytes. */
bool table_file_search_page(const struct table_file *file, unsigned section, uint64_t number,
                            const void *page, uint64_t id, uint8_t sub, void *value);

/* ---- offline ---- */

/* Gets a sentence as `error`; false stops. */
typedef bool table_file_report_fn(void *context, const char *finding);

/*
 * Reads everything (`direct`: as in table_file_open; else what the system has in memory is taken
 * from there): checksums, order of entries, index, zeroes after the last entry; reports every
 * finding, page by page. DONE: sound. STOPPED: findings, but not all was looked at. ABSENT is
 * reported too. A file whose header, footer or section of checksums is bad gets that one finding.
 */
enum table_file_result table_file_verify(struct vfs *vfs, const char *path, bool direct,
                                         table_file_report_fn *report, void *context);

#endif
