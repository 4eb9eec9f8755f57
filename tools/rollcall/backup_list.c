/*
 * backup_list.c: the file BACKUP: up to where a backup goes, and every file of it with its bytes
 * and their checksum. Text; it is written last, so a directory without it is no backup.
 *
 *     rollcall-backup 2
 *     lsn N
 *     time SECONDS         when it was made
 *     from DIRECTORY
 *     file NAME BYTES SUM  16 hex digits; `-`: the file was not read (--no-verify, and a link)
 *     checksum SUM         XXH3 of all lines before
 *
 * The sum of a file is that of its pieces of 1 MiB, each XXH3 seeded with the sum so far.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/memory.h"
#include "store/vfs.h"
#include "tools/rollcall/backup_private.h"

#define HEAD        "rollcall-backup 2\n"
#define LAST_LINE   "checksum "
#define LAST_BYTES  (sizeof(LAST_LINE) + 16) /* its newline with it */
#define PIECE_BYTES (1u << 20)

/* ---- one file ---- */

static bool sum_piece(struct copy *copy, int fd, char *piece, struct backup_listed *file)
{
    ssize_t got = pread(fd, piece, PIECE_BYTES, (off_t)file->bytes);

    if (got <= 0) {
        return false;
    }
    file->sum = hash_bytes(piece, (size_t)got, file->sum);
    file->bytes += (uint64_t)got;
    copy->done += (uint64_t)got;
    progress_tell(&copy->progress, copy->done, copy->whole, file->name);
    return true;
}

/* Reads a file of copy->to: its bytes and sum. False with copy->error. */
static bool sum_file(struct copy *copy, const char *name, struct backup_listed *file)
{
    int fd = vfs_open_in(vfs_real(), copy->to, name, O_RDONLY);

    if (fd < 0) {
        return copy_fail(copy, name, strerror(errno));
    }
    char *piece = memory_zalloc(PIECE_BYTES);

    *file = (struct backup_listed){.summed = true};
    snprintf(file->name, sizeof(file->name), "%s", name);
    errno = 0;
    while (sum_piece(copy, fd, piece, file)) {
    }
    int error = errno;

    free(piece);
    close(fd);
    return error == 0 || copy_fail(copy, name, strerror(error));
}

/* ---- writing ---- */

static bool list_put_file(struct copy *copy, struct buf *text, const char *name)
{
    struct backup_listed file;

    if (!sum_file(copy, name, &file)) {
        return false;
    }
    CHECK(buf_print(text, "file %s %" PRIu64 " %016" PRIx64 "\n", name, file.bytes, file.sum));
    return true;
}

static bool list_put_files(struct copy *copy, const struct backup_set *set, bool all,
                           struct buf *text)
{
    for (size_t i = 0; i < set->table_count; i++) {
        const struct copy_pin *pin = &set->tables[i];

        if (!all && copy->link) {
            CHECK(buf_print(text, "file %s %" PRIu64 " -\n", pin->name, pin->bytes));
        } else if (!list_put_file(copy, text, pin->name)) {
            return false;
        }
    }
    for (size_t i = 0; i < set->segment_count; i++) {
        if (!list_put_file(copy, text, set->segments[i].pin.name)) {
            return false;
        }
    }
    return list_put_file(copy, text, MANIFEST_NAME);
}

bool backup_list_write(struct copy *copy, const struct backup_set *set, uint64_t lsn, bool all)
{
    struct buf text;

    buf_init(&text, BACKUP_LIST_MAX, NULL);
    CHECK(buf_print(&text, HEAD "lsn %" PRIu64 "\ntime %" PRIu64 "\nfrom %.2000s\n", lsn,
                    clock_wall_s(), copy->from));
    bool good = list_put_files(copy, set, all, &text);

    if (good) {
        CHECK(
            buf_print(&text, LAST_LINE "%016" PRIx64 "\n", hash_bytes(text.data, text.length, 0)));
        good = copy_write(copy, BACKUP_NAME, text.data, text.length, 0);
    }
    buf_fini(&text);
    return good;
}

/* ---- reading ---- */

static bool read_file_line(struct backup_list *list, const char *line)
{
    char sum[17];
    char *end;

    list->files = realloc(list->files, (list->count + 1) * sizeof(*list->files));
    CHECK(list->files != NULL);
    struct backup_listed *file = &list->files[list->count];

    *file = (struct backup_listed){.bytes = 0};
    if (sscanf(line, "file %95s %" SCNu64 " %16s", file->name, &file->bytes, sum) != 3) {
        return false;
    }
    list->count++;
    file->summed = strcmp(sum, "-") != 0;
    file->sum = strtoull(sum, &end, 16);
    return !file->summed || (*end == '\0' && end == sum + 16);
}

static bool read_lines(struct backup_list *list, char *text)
{
    char *save = NULL;
    char *line = strtok_r(text, "\n", &save); /* the head */

    while ((line = strtok_r(NULL, "\n", &save)) != NULL) {
        if (sscanf(line, "lsn %" SCNu64, &list->lsn) != 1 && strncmp(line, "file ", 5) == 0 &&
            !read_file_line(list, line)) {
            return false;
        }
    }
    return list->count > 0;
}

/* Cuts the last line off, which is the sum of the rest. */
static bool cut_sum(char *text, size_t length, uint64_t *sum)
{
    if (length <= LAST_BYTES) {
        return false;
    }
    char *last = text + length - LAST_BYTES;
    bool good = sscanf(last, LAST_LINE "%16" SCNx64 "\n", sum) == 1 &&
                *sum == hash_bytes(text, length - LAST_BYTES, 0);

    *last = '\0';
    return good;
}

enum backup_state backup_list_read(const char *directory, struct backup_list *list)
{
    size_t length;
    char *text = vfs_read_in(vfs_real(), directory, BACKUP_NAME, BACKUP_LIST_MAX, &length);

    *list = (struct backup_list){.lsn = 0};
    if (text == NULL) {
        return BACKUP_NONE;
    }
    bool sound = strncmp(text, HEAD, sizeof(HEAD) - 1) == 0 && cut_sum(text, length, &list->sum) &&
                 read_lines(list, text);

    free(text);
    if (!sound) {
        backup_list_fini(list);
    }
    return sound ? BACKUP_WHOLE : BACKUP_DAMAGED;
}

void backup_list_fini(struct backup_list *list)
{
    free(list->files);
    *list = (struct backup_list){.lsn = 0};
}

/* ---- judging ---- */

const struct backup_listed *backup_list_find(const struct backup_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->files[i].name, name) == 0) {
            return &list->files[i];
        }
    }
    return NULL;
}

bool backup_list_check(struct copy *copy, const struct backup_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct backup_listed *listed = &list->files[i];
        struct backup_listed found;

        if (!sum_file(copy, listed->name, &found)) {
            return false;
        }
        if (found.bytes != listed->bytes || (listed->summed && found.sum != listed->sum)) {
            (void)copy_remove(copy, listed->name); /* a further try copies it again */
            return copy_fail(
                copy, listed->name,
                "it is not as it was when the backup was made (its checksum in " BACKUP_NAME
                "): the backup is damaged");
        }
    }
    return true;
}
