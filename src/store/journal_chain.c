/* journal_chain.c: the segments of a directory and the order in which they make up the stream. */
#include "store/journal_chain.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/check.h"
#include "base/fail.h"
#include "base/memory.h"

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct journal_found *)a)->name, ((const struct journal_found *)b)->name);
}

/* The sound ones by number, then the others by start. */
static int by_number(const void *a, const void *b)
{
    const struct journal_found *one = a;
    const struct journal_found *other = b;
    bool sound = one->state == JOURNAL_PAGE_SOUND;
    if (sound != (other->state == JOURNAL_PAGE_SOUND)) {
        return sound ? -1 : 1;
    }
    uint64_t x = sound ? one->header.number : one->name_start;
    uint64_t y = sound ? other->header.number : other->name_start;
    return x < y ? -1 : x > y;
}

static void entry(void *context, const char *name)
{
    struct journal_chain *chain = context;
    uint64_t start;
    if (!journal_name_parse(name, &start)) {
        return;
    }
    chain->found = array_room(chain->found, chain->count, &chain->room, sizeof(*chain->found));
    struct journal_found *found = &chain->found[chain->count++];
    *found = (struct journal_found){.name_start = start};
    journal_name(found->name, start);
}

int journal_page_read(struct vfs *vfs, int fd, struct journal_found *found)
{
    _Alignas(uint64_t) unsigned char page[JOURNAL_PAGE_BYTES] = {0};
    int64_t size = vfs->functions->size(vfs, fd);
    if (size < 0 || vfs_read_all(vfs, fd, page, sizeof(page), 0) < 0) {
        return -1;
    }
    found->size = (uint64_t)size;
    found->state = journal_page_decode(page, &found->header, &found->mark, &found->why);
    if (found->state == JOURNAL_PAGE_SOUND && found->header.start != found->name_start) {
        found->state = JOURNAL_PAGE_BAD;
        found->why = "holds another segment than its name says";
    }
    if (found->state == JOURNAL_PAGE_BAD) {
        uint64_t bytes = found->size - found->size % JOURNAL_UNIT;
        found->blank = journal_page_is_blank(page);
        found->header = (struct journal_header){
            .start = found->name_start,
            .bytes = bytes > JOURNAL_PAGE_BYTES ? bytes : JOURNAL_PAGE_BYTES};
    }
    return 0;
}

static bool journal_chain_read_header(struct vfs *vfs, const char *directory,
                                      struct journal_found *found, char error[JOURNAL_ERROR_MAX])
{
    int fd = vfs_open_in(vfs, directory, found->name, O_RDONLY);
    int result = fd < 0 ? -1 : journal_page_read(vfs, fd, found);
    vfs_close(vfs, fd);
    if (result < 0) {
        return fail_with(error, JOURNAL_ERROR_MAX, "%s/%s: %s", directory, found->name,
                         strerror(errno));
    }
    if (found->state == JOURNAL_PAGE_NEWER) {
        return fail_with(error, JOURNAL_ERROR_MAX, "%s/%s: offset 0: %s; use the one that wrote it",
                         directory, found->name, found->why);
    }
    return true;
}

bool journal_chain_is_of_this_run(const struct journal_chain *chain,
                                  const struct journal_found *found)
{
    return chain->boot != 0 && found->header.boot == chain->boot;
}

bool journal_chain_is_cut(const struct journal_found *found, uint64_t closed_at)
{
    const struct journal_header *header = &found->header;
    const uint64_t told[] = {found->mark.durable, header->durable, closed_at};
    bool cut = found->size < journal_offset_of(header, found->end);
    for (size_t i = 0; i < sizeof(told) / sizeof(*told) && cut; i++) {
        cut = told[i] < header->start || journal_offset_of(header, told[i]) != found->size;
    }
    return cut;
}

/* What a segment tells of the stream's end counts up to its own: a follower cuts off what its
 * leader does not have, and that may have been marked. */
static void reach_as_told(uint64_t *reach, uint64_t told, uint64_t end)
{
    uint64_t lsn = told < end ? told : end;
    *reach = *reach > lsn ? *reach : lsn;
}

/* How far the stream must go. */
static void build_reach(struct journal_chain *chain)
{
    for (size_t i = 0; i < chain->live_count; i++) {
        const struct journal_found *live = chain->live[i];
        reach_as_told(&chain->durable, live->header.durable, live->end);
        reach_as_told(&chain->durable, live->mark.durable, live->end);
        if (journal_chain_is_of_this_run(chain, live)) {
            reach_as_told(&chain->written, live->mark.written, live->end);
        }
    }
}

/* Takes the sound ones, which stand in the order of their numbers. */
static void build_live(struct journal_chain *chain)
{
    chain->live = memory_zalloc((chain->sound + 1) * sizeof(*chain->live));
    for (size_t i = 0; i < chain->sound; i++) {
        struct journal_found *found = &chain->found[i];
        found->end = journal_end_of(&found->header);
        while (chain->live_count > 0 &&
               chain->live[chain->live_count - 1]->header.start >= found->header.start) {
            chain->live_count--;
        }
        if (chain->live_count > 0) {
            struct journal_found *last = chain->live[chain->live_count - 1];
            last->end = last->end < found->header.start ? last->end : found->header.start;
        }
        chain->live[chain->live_count++] = found;
    }
    build_reach(chain);
}

bool journal_chain_init(struct journal_chain *chain, struct vfs *vfs, const char *directory,
                        char error[JOURNAL_ERROR_MAX])
{
    *chain = (struct journal_chain){.boot = vfs->functions->boot(vfs)};
    if (vfs->functions->list(vfs, directory, entry, chain) != 0) {
        return fail_with(error, JOURNAL_ERROR_MAX, "%s: %s", directory, strerror(errno));
    }
    if (chain->count > 0) {
        /* so that of several mistakes the same one is named each time */
        qsort(chain->found, chain->count, sizeof(*chain->found), by_name);
    }
    for (size_t i = 0; i < chain->count; i++) {
        struct journal_found *found = &chain->found[i];
        if (!journal_chain_read_header(vfs, directory, found, error)) {
            return false;
        }
        if (found->state == JOURNAL_PAGE_SOUND) {
            chain->sound++;
            chain->epoch = found->header.epoch > chain->epoch ? found->header.epoch : chain->epoch;
            chain->number =
                found->header.number > chain->number ? found->header.number : chain->number;
        }
    }
    if (chain->count > 0) {
        qsort(chain->found, chain->count, sizeof(*chain->found), by_number);
    }
    build_live(chain);
    return true;
}

void journal_chain_fini(struct journal_chain *chain)
{
    free(chain->live);
    free(chain->found);
    *chain = (struct journal_chain){0};
}

const struct journal_found *journal_chain_unsound(const struct journal_chain *chain, uint64_t from,
                                                  uint64_t until)
{
    for (size_t i = chain->sound; i < chain->count; i++) {
        const struct journal_found *found = &chain->found[i];
        if (found->name_start >= from && found->name_start <= until) {
            return found;
        }
    }
    return NULL;
}
