/*
 * feed_copy.c: a copy of the data directory while it changes: the manifest, and the files that it
 * names, from any offset on. They are pinned, and opened one at a time.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "repl/feed_private.h"

#define PIECE_LEAST (4u << 10)
#define PIECES_A_S  10u /* with a copy-rate */

void feed_copy_end(struct repl_feed *feed)
{
    data_pin_give(feed->feeds->data, feed->copy);
    feed->copy = NULL;
}

bool feed_copy_begin(struct repl_feed *feed)
{
    char error[DATA_ERROR_MAX];

    if (!feed_take_place(feed)) {
        return feed_say_busy(feed);
    }
    feed_copy_end(feed);
    feed->copy = data_pin_take(feed->feeds->data, error);
    if (feed->copy == NULL) {
        return feed_refuse(feed, "replication: no copy can be had here: %.150s", error);
    }
    const struct repl_line line = {.kind = REPL_MANIFEST, .bytes = feed->copy->text_length};

    feed_set_state(feed, REPL_FEED_COPYING);
    log_info("a follower is given a copy name=%s peer=%s files=%zu journal=%llu",
             feed->figures.name, feed->figures.peer, manifest_count_files(feed->copy->manifest),
             (unsigned long long)feed->copy->manifest->journal_lsn);
    return feed_say(feed, &line) &&
           repl_link_write(&feed->link, feed->copy->text, feed->copy->text_length, REPL_SILENCE_S);
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

static bool copy_send(struct repl_feed *feed, const struct manifest_file *file, int fd,
                      uint64_t offset, char *piece)
{
    struct vfs *vfs = feed->feeds->vfs;
    uint64_t rate = atomic_load(&feed->feeds->copy_rate);
    uint64_t began_us = clock_monotonic_us();

    for (uint64_t at = offset; at < file->bytes;) {
        uint64_t left = file->bytes - at;
        size_t length = left < copy_piece(rate) ? (size_t)left : copy_piece(rate);

        if (vfs_read_all(vfs, fd, piece, length, at) != (ssize_t)length) {
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

static bool copy_hand_out(struct repl_feed *feed, const struct manifest_file *file, int fd,
                          uint64_t offset)
{
    struct repl_line line = {.kind = REPL_FILE, .offset = offset, .bytes = file->bytes - offset};
    char *piece = memory_zalloc(FEED_PIECE_BYTES);

    snprintf(line.file, sizeof(line.file), "%s", file->name);
    bool given = feed_say(feed, &line) && copy_send(feed, file, fd, offset, piece);

    free(piece);
    return given;
}

bool feed_copy_file(struct repl_feed *feed, const struct repl_line *asked)
{
    struct vfs *vfs = feed->feeds->vfs;
    const struct manifest_file *file =
        feed->copy != NULL ? manifest_find_file(feed->copy->manifest, asked->file) : NULL;

    if (file == NULL) {
        return feed_refuse(feed, "replication: %s is not in the manifest of this copy",
                           asked->file);
    }
    if (asked->offset > file->bytes) {
        return feed_refuse(feed, "replication: %s has %llu bytes, offset %llu was asked for",
                           asked->file, (unsigned long long)file->bytes,
                           (unsigned long long)asked->offset);
    }
    int fd = vfs_open_in(vfs, feed->feeds->directory, file->name, O_RDONLY);

    if (fd < 0) {
        return feed_refuse(feed, "replication: %s cannot be opened: %s", file->name,
                           strerror(errno));
    }
    bool given = copy_hand_out(feed, file, fd, asked->offset);

    vfs->functions->close(vfs, fd);
    return given;
}
