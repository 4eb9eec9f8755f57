/*
 * feed_copy.c: a copy of the data directory while it changes: the manifest, and the files that it
 * names, from any offset on.
 *
 * The manifest is read from the disk and its files are opened. A checkpoint between may have
 * deleted some of them, and then a newer manifest is there. Once all are open they stay, whatever
 * is deleted. Nobody waits for that, nor is anything held.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/point.h"
#include "repl/feed_private.h"

#define TAKES_MAX   100 /* each needs a checkpoint in between */
#define PIECE_LEAST (4u << 10)
#define PIECES_A_S  10u /* with a copy-rate */

void feed_copy_end(struct repl_feed *feed)
{
    struct feed_copy *copy = &feed->copy;

    for (size_t i = 0; i < copy->count; i++) {
        feed->feeds->vfs->functions->close(feed->feeds->vfs, copy->files[i].fd);
    }
    free(copy->files);
    free(copy->text);
    manifest_destroy(copy->manifest);
    *copy = (struct feed_copy){.manifest = NULL};
}

/* ---- taking it ---- */

static bool copy_read_manifest(struct repl_feed *feed, char error[MANIFEST_ERROR_MAX])
{
    struct repl_feeds *feeds = feed->feeds;
    struct feed_copy *copy = &feed->copy;

    copy->text = vfs_read_in(feeds->vfs, feeds->directory, MANIFEST_NAME, MANIFEST_BYTES_MAX,
                             &copy->text_length);
    if (copy->text == NULL) {
        return fail_with(error, MANIFEST_ERROR_MAX, "%s", strerror(errno));
    }
    return manifest_parse(copy->text, copy->text_length, MANIFEST_NAME, &copy->manifest, error) ==
           MANIFEST_SOUND;
}

static int copy_by_name(const void *left, const void *right)
{
    return strcmp(((const struct feed_file *)left)->name, ((const struct feed_file *)right)->name);
}

static bool copy_open_file(struct repl_feed *feed, const struct manifest_file *named,
                           char error[MANIFEST_ERROR_MAX])
{
    struct repl_feeds *feeds = feed->feeds;
    struct feed_copy *copy = &feed->copy;
    int fd = vfs_open_in(feeds->vfs, feeds->directory, named->name, O_RDONLY);

    if (fd < 0) {
        int code = errno;

        snprintf(error, MANIFEST_ERROR_MAX, "%s: %s", named->name, strerror(code));
        errno = code;
        return false;
    }
    copy->files[copy->count++] =
        (struct feed_file){.name = named->name, .bytes = named->bytes, .fd = fd};
    return true;
}

static bool copy_open_files(struct repl_feed *feed, char error[MANIFEST_ERROR_MAX])
{
    struct feed_copy *copy = &feed->copy;
    struct manifest_at at = {0};
    const struct manifest_file *file;

    copy->files = memory_zalloc((manifest_count_files(copy->manifest) + 1) * sizeof(*copy->files));
    while ((file = manifest_next_file(copy->manifest, &at)) != NULL) {
        if (!copy_open_file(feed, file, error)) {
            return false;
        }
    }
    qsort(copy->files, copy->count, sizeof(*copy->files), copy_by_name);
    return true;
}

static bool copy_take(struct repl_feed *feed, char error[MANIFEST_ERROR_MAX])
{
    for (unsigned i = 0; i < TAKES_MAX; i++) {
        feed_copy_end(feed);
        if (!copy_read_manifest(feed, error)) {
            return false;
        }
        POINT_SLOW("copy files");
        errno = 0;
        if (copy_open_files(feed, error)) {
            return true;
        }
        if (errno != ENOENT) {
            return false;
        }
    }
    return false;
}

bool feed_copy_begin(struct repl_feed *feed)
{
    char error[MANIFEST_ERROR_MAX] = "";

    if (!feed_take_place(feed)) {
        return feed_say_busy(feed);
    }
    if (!copy_take(feed, error)) {
        return feed_refuse(feed, "replication: no copy can be had here: %.150s", error);
    }
    const struct repl_line line = {.kind = REPL_MANIFEST, .bytes = feed->copy.text_length};

    feed_set_state(feed, REPL_FEED_COPYING);
    log_info("a follower is given a copy name=%s peer=%s files=%zu journal=%llu",
             feed->figures.name, feed->figures.peer, feed->copy.count,
             (unsigned long long)feed->copy.manifest->journal_lsn);
    return feed_say(feed, &line) &&
           repl_link_write(&feed->link, feed->copy.text, feed->copy.text_length, REPL_SILENCE_S);
}

/* ---- giving it ---- */

static size_t copy_piece(uint64_t rate)
{
    uint64_t piece = rate / PIECES_A_S > PIECE_LEAST ? rate / PIECES_A_S : PIECE_LEAST;

    return rate == 0 || piece > FEED_PIECE_BYTES ? FEED_PIECE_BYTES : (size_t)piece;
}

/* Waits so that the next piece is not too early. */
static void copy_slow_down(struct repl_feed *feed, uint64_t rate, uint64_t began_us, uint64_t bytes)
{
    if (rate > 0) {
        repl_link_rest(&feed->link,
                       began_us + (uint64_t)((double)bytes * 1000000.0 / (double)rate));
    }
}

static bool copy_send(struct repl_feed *feed, const struct feed_file *file, uint64_t offset,
                      char *piece)
{
    struct vfs *vfs = feed->feeds->vfs;
    uint64_t rate = atomic_load(&feed->feeds->copy_rate);
    uint64_t began_us = clock_monotonic_us();

    for (uint64_t at = offset; at < file->bytes;) {
        uint64_t left = file->bytes - at;
        size_t length = left < copy_piece(rate) ? (size_t)left : copy_piece(rate);

        if (vfs_read_all(vfs, file->fd, piece, length, at) != (ssize_t)length) {
            log_error("a copy ends: %s cannot be read", file->name);
            return false; /* whatever was said now would be taken for bytes of the file */
        }
        if (!repl_link_write(&feed->link, piece, length, REPL_PAUSE_S)) {
            return false;
        }
        at += length;
        pthread_mutex_lock(&feed->feeds->lock);
        feed->figures.copied_bytes += length;
        pthread_mutex_unlock(&feed->feeds->lock);
        copy_slow_down(feed, rate, began_us, at - offset);
    }
    return true;
}

bool feed_copy_file(struct repl_feed *feed, const struct repl_line *asked)
{
    const struct feed_copy *copy = &feed->copy;
    const struct feed_file key = {.name = asked->file};
    const struct feed_file *file = copy->count > 0 ? bsearch(&key, copy->files, copy->count,
                                                             sizeof(*copy->files), copy_by_name)
                                                   : NULL;

    if (file == NULL) {
        return feed_refuse(feed, "replication: %s is not in the manifest of this copy",
                           asked->file);
    }
    if (asked->offset > file->bytes) {
        return feed_refuse(feed, "replication: %s has %llu bytes, offset %llu was asked for",
                           asked->file, (unsigned long long)file->bytes,
                           (unsigned long long)asked->offset);
    }
    struct repl_line line = {
        .kind = REPL_FILE, .offset = asked->offset, .bytes = file->bytes - asked->offset};
    char *piece = memory_zalloc(FEED_PIECE_BYTES);

    snprintf(line.file, sizeof(line.file), "%s", asked->file);
    bool sent = feed_say(feed, &line) && copy_send(feed, file, asked->offset, piece);

    free(piece);
    return sent;
}
