/*
 * journal_chain.h: which segments a directory holds and which of them make up the stream. Reads
 * only their header pages. Part of journal; used by journal*.c, and by tools that look at a
 * directory without a daemon.
 *
 * A segment ends all that was made before it, from where it begins: after a cut, or a failed sync,
 * the stream goes on in a new one, and what older ones hold beyond is dead. So taken in the order
 * of their numbers, each removes from the chain all that begin at or above its own start, and cuts
 * the last one left. What remains is live, rising in start and number.
 *
 * Thread rule: a chain belongs to one thread.
 */
#ifndef ROLLCALL_STORE_JOURNAL_CHAIN_H
#define ROLLCALL_STORE_JOURNAL_CHAIN_H

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/journal.h"
#include "store/journal_format.h"

struct journal_found {
    char name[JOURNAL_NAME_MAX];
    uint64_t name_start; /* what the name says */
    enum journal_page_state state;
    const char *why; /* it is not sound; static */
    bool blank;      /* not sound, and no byte of the header is there */
    uint64_t size;   /* of the file, now */
    /* of one that is not sound: start and bytes alone, as its name and its size tell them */
    struct journal_header header;
    /* the rest only if it is sound */
    struct journal_mark mark;
    uint64_t end; /* of a live one: where it is full, or where the next one begins below that */
};

struct journal_chain {
    struct journal_found *found; /* all; the sound ones first, by number */
    size_t count, sound, room;
    struct journal_found **live; /* in the order of the stream */
    size_t live_count;
    uint64_t durable;       /* the highest mark of a live one; 0: none */
    uint64_t boot;          /* this run of the system; 0: not known */
    uint64_t written;       /* as `durable`: what was written in this run; 0: none */
    uint64_t epoch, number; /* the highest seen */
};

/* False: a file could not be read, or is of a format not known; `error` says so. Either way fini.
 */
bool journal_chain_init(struct journal_chain *chain, struct vfs *vfs, const char *directory,
                        char error[JOURNAL_ERROR_MAX]);
void journal_chain_fini(struct journal_chain *chain);

/* The unsound one with the lowest start from `from` to `until`, both included; NULL: none. */
const struct journal_found *journal_chain_unsound(const struct journal_chain *chain, uint64_t from,
                                                  uint64_t until);

/* Whether a sound mark was written since the system began to run: then a cut has lost nothing of
 * it. */
bool journal_chain_is_of_this_run(const struct journal_chain *chain,
                                  const struct journal_found *found);

/* Returns whether a live one's file has lost its end. It is made whole, and shortened only to where
 * the stream ends, as a mark or a clean end then says. `closed_at`: LSN after the clean end that is
 * its last record; 0: that is another. */
bool journal_chain_is_cut(const struct journal_found *found, uint64_t closed_at);
#define JOURNAL_CUT_WORDS                                                                          \
    "the file is cut short: it has %" PRIu64 " bytes, its header says %" PRIu64

/* Reads and decodes the header page of an open segment. Returns what pread did: -1 with errno. */
int journal_page_read(struct vfs *vfs, int fd, struct journal_found *found);

#endif
