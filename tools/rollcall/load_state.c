/*
 * load_state.c: what outlives a run. The checkpoint is a small text file, replaced as a whole after
 * every batch that was answered, and made durable now and then; a run that is killed goes on there.
 *
 *     rollcall-load 2
 *     space NAME mode MODE format F columns NAMES
 *     files N HASH         names, so that another input is not taken for this one
 *     at FILE OFFSET LINE  everything before it is answered
 *     rows STORED KEPT REFUSED
 *     rejects BYTES INODE  the file of rejected lines then: what is after them comes again; 0 0:
 * none daemon PID START JOURNAL WRITTEN   the life that answered; not there: not known
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/hash.h"
#include "store/vfs.h"
#include "tools/rollcall/load_private.h"
#include "tools/rollcall/verb.h"

#define STATE_MAX         4096
#define COMPLAINTS_MAX    10 /* refused lines that are shown */
#define SHOWN_MAX         120
#define SUFFIX            ".tmp"
#define WORDS_BEFORE_LIFE 8 /* of its three lines */

static uint64_t files_hash(const struct load_options *options)
{
    uint64_t hash = 0;

    for (size_t i = 0; i < options->file_count; i++) {
        hash = hash_bytes(options->files[i], strlen(options->files[i]) + 1, hash);
    }
    return hash;
}

/* What a run must have in common with the one before. */
static int print_same(const struct load_options *options, char *text, size_t size)
{
    return snprintf(text, size,
                    "rollcall-load 2\nspace %.64s mode %d format %d columns %.1024s\n"
                    "files %zu %016" PRIx64 "\n",
                    options->space, (int)options->mode, (int)options->format,
                    options->columns != NULL ? options->columns : "-", options->file_count,
                    files_hash(options));
}

bool load_state_read(struct load *load)
{
    const struct load_options *options = load->options;
    char same[STATE_MAX];
    size_t length;

    if (options->checkpoint == NULL) {
        return true;
    }
    char *text = vfs_read_file(vfs_real(), options->checkpoint, STATE_MAX, &length);

    if (text == NULL) {
        return errno == ENOENT ||
               (verb_complain(stderr, "%s: %s", options->checkpoint, strerror(errno)), false);
    }
    size_t prefix = (size_t)print_same(options, same, sizeof(same));
    struct load_life *life = &load->life;
    int has_journal = 0;
    int count = strncmp(text, same, prefix) != 0
                    ? 0
                    : sscanf(text + prefix,
                             "at %" SCNu64 " %" SCNu64 " %" SCNu64 "\nrows %" SCNu64 " %" SCNu64
                             " %" SCNu64 "\nrejects %" SCNu64 " %" SCNu64 "\ndaemon %" SCNu64
                             " %" SCNu64 " %d %" SCNu64 "\n",
                             &load->done.file, &load->done.offset, &load->done.line, &load->stored,
                             &load->kept, &load->refused, &load->reject_bytes, &load->reject_inode,
                             &life->pid, &life->started_s, &has_journal, &life->written);
    bool read = count >= WORDS_BEFORE_LIFE && load->done.file <= options->file_count;

    life->known = count == WORDS_BEFORE_LIFE + 4;
    life->journal = has_journal != 0;

    free(text);
    if (!read && length == 0) {
        verb_complain(stderr, "%s: it is empty, no checkpoint; delete it to begin anew",
                      options->checkpoint);
    } else if (!read) {
        verb_complain(stderr,
                      "%s: the checkpoint of another load (space, mode, format, columns or files "
                      "differ); delete it to begin anew",
                      options->checkpoint);
    }
    load->before = load->stored + load->kept + load->refused;
    return read;
}

static bool write_whole(const char *path, const char *text, size_t length, bool durable)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool written =
        fd >= 0 && write(fd, text, length) == (ssize_t)length && (!durable || fdatasync(fd) == 0);

    return (fd < 0 || close(fd) == 0) && written;
}

static bool state_fail(struct load *load, const char *file)
{
    return fail_with(load->why_failed, sizeof(load->why_failed), "%.200s: %s", file,
                     strerror(errno));
}

/* All that was rejected so far is in the file. */
static bool note_rejects(struct load *load)
{
    struct stat is;

    if (fflush(load->rejects) != 0 || fstat(fileno(load->rejects), &is) != 0) {
        return false;
    }
    load->reject_bytes = (uint64_t)is.st_size;
    load->reject_inode = is.st_ino;
    return true;
}

bool load_state_write(struct load *load, bool durable)
{
    const struct load_options *options = load->options;
    char text[STATE_MAX];
    char temporary[VFS_PATH_MAX];

    load->saved_us = durable ? clock_monotonic_us() : load->saved_us;
    if (options->checkpoint == NULL) {
        return true;
    }
    if (load->rejects != NULL && !note_rejects(load)) {
        return state_fail(load, options->reject);
    }
    int length = print_same(options, text, sizeof(text));

    length += snprintf(text + length, sizeof(text) - (size_t)length,
                       "at %" PRIu64 " %" PRIu64 " %" PRIu64 "\nrows %" PRIu64 " %" PRIu64
                       " %" PRIu64 "\nrejects %" PRIu64 " %" PRIu64 "\n",
                       load->done.file, load->done.offset, load->done.line, load->stored,
                       load->kept, load->refused, load->reject_bytes, load->reject_inode);
    if (load->life.known) {
        length += snprintf(text + length, sizeof(text) - (size_t)length,
                           "daemon %" PRIu64 " %" PRIu64 " %d %" PRIu64 "\n", load->life.pid,
                           load->life.started_s, load->life.journal, load->life.written);
    }
    snprintf(temporary, sizeof(temporary), "%.4000s" SUFFIX, options->checkpoint);
    if (write_whole(temporary, text, (size_t)length, durable) &&
        rename(temporary, options->checkpoint) == 0) {
        return true;
    }
    return state_fail(load, options->checkpoint);
}

/* ---- refused lines ---- */

/* What a killed run has rejected after its checkpoint comes again. Of the same file alone. */
static bool cut_rejects(const struct load *load)
{
    struct stat is;
    int fd = fileno(load->rejects);

    if (fstat(fd, &is) != 0) {
        return false;
    }
    bool same = load->reject_inode == is.st_ino && S_ISREG(is.st_mode);

    return !same || (uint64_t)is.st_size <= load->reject_bytes ||
           ftruncate(fd, (off_t)load->reject_bytes) == 0;
}

bool load_rejects_open(struct load *load)
{
    const char *path = load->options->reject;

    if (path == NULL) {
        return true;
    }
    load->rejects = fopen(path, "ae");
    if (load->rejects != NULL && cut_rejects(load)) {
        return true;
    }
    verb_complain(stderr, "%s: %s", path, strerror(errno));
    return false;
}

static void reject(struct load *load, const struct load_batch *batch, const struct load_item *item)
{
    const char *line = batch->lines.data + item->line_at;

    load->refused++;
    if (load->rejects != NULL) {
        fwrite(line, 1, item->line_length, load->rejects);
        fputc('\n', load->rejects);
    }
    if (load->complaints++ < COMPLAINTS_MAX) {
        progress_clear(&load->progress);
        int shown = item->line_length < SHOWN_MAX ? (int)item->line_length : SHOWN_MAX;

        verb_complain(stderr, "line %" PRIu64 ": %s: %.*s", item->line, load_why(batch, item),
                      shown, line);
    }
    if (load->complaints == COMPLAINTS_MAX) {
        verb_complain(stderr, "further refused lines are counted%s",
                      load->rejects != NULL ? ", and in the file of rejected ones" : "");
    }
}

void load_count(struct load *load, const struct load_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        const struct load_item *item = &batch->items[i];

        load->stored += item->result == LOAD_STORED;
        load->kept += item->result == LOAD_KEPT;
        if (item->result == LOAD_REFUSED) {
            reject(load, batch, item);
        }
    }
}
