#include "request/flush.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/check.h"
#include "base/memory.h"
#include "plain/plain.h"
#include "request/server.h"
#include "row/row_data.h"
#include "space/populate.h"

struct asked {
    uint64_t number;
    struct ticket ticket;
};

struct flush {
    struct server *server;
    pthread_mutex_t lock; /* a leaf: of all below */
    uint64_t number_last;
    uint64_t done_upto;    /* the spaces were emptied after these were asked for */
    uint64_t refused_upto; /* these have ended too */
    size_t count, room;
    struct asked *asked; /* not begun, by rising numbers */
};

struct flush *flush_create(struct server *server)
{
    struct flush *flush = memory_zalloc(sizeof(*flush));

    flush->server = server;
    CHECK(pthread_mutex_init(&flush->lock, NULL) == 0);
    return flush;
}

void flush_destroy(struct flush *flush)
{
    if (flush == NULL) {
        return;
    }
    pthread_mutex_destroy(&flush->lock);
    free(flush->asked);
    free(flush);
}

uint64_t flush_ask(struct flush *flush, const struct ticket *ticket)
{
    pthread_mutex_lock(&flush->lock);
    flush->asked = array_room(flush->asked, flush->count, &flush->room, sizeof(*flush->asked));
    uint64_t number = ++flush->number_last;

    flush->asked[flush->count++] = (struct asked){number, *ticket};
    pthread_mutex_unlock(&flush->lock);
    keeper_ask_errand(flush->server->keeper);
    return number;
}

enum flush_state flush_look(struct flush *flush, uint64_t number)
{
    pthread_mutex_lock(&flush->lock);
    enum flush_state state = number <= flush->done_upto      ? FLUSH_DONE
                             : number <= flush->refused_upto ? FLUSH_REFUSED
                                                             : FLUSH_WAITS;

    pthread_mutex_unlock(&flush->lock);
    return state;
}

bool flush_take_back(struct flush *flush, uint64_t number)
{
    size_t i = 0;

    pthread_mutex_lock(&flush->lock);
    while (i < flush->count && flush->asked[i].number != number) {
        i++;
    }
    bool found = i < flush->count;

    if (found) {
        flush->count--;
        memmove(flush->asked + i, flush->asked + i + 1, (flush->count - i) * sizeof(*flush->asked));
    }
    pthread_mutex_unlock(&flush->lock);
    return found;
}

/* World stopped. With a log: room is asked for a space at a time, as that is what one may take.
 * Returns how many are cleared by now. */
static size_t clear_spaces(struct server *server, size_t from)
{
    size_t i = from;

    while (i < server->spaces->count &&
           (server->log == NULL || server->log->reserve(server->log))) {
        const struct space *space = server->spaces->at[i++];

        if (space == server->spaces->plain) {
            plain_clear(space->engine);
        } else {
            row_flush(space->engine->row);
        }
    }
    return i;
}

static void for_rows(struct server *server, size_t from, size_t to, void (*act)(struct row *row))
{
    for (size_t i = from; i < to; i++) {
        if (server->spaces->at[i] != server->spaces->plain) {
            act(server->spaces->at[i]->engine->row);
        }
    }
}

/* This thread is the keeper's, which maintains nothing while a checkpoint writes: memory of
 * what was emptied is cleared here, so that one flush_all after the other takes no more. */
static size_t clear_stopped(struct server *server, size_t from)
{
    for_rows(server, from, server->spaces->count, row_flush_ready);
    barrier_stop(server->barrier);
    size_t cleared = clear_spaces(server, from);

    barrier_go(server->barrier);
    for_rows(server, from, cleared, row_clean_up);
    return cleared;
}

/* Empties spaces as far as the log's room suffices; the others follow later. False: it suffices for
 * none. */
static bool flush_clear(struct server *server)
{
    const size_t all = server->spaces->count;
    size_t before = 0;

    populate_stop(server->populate);
    size_t cleared = clear_stopped(server, before);

    while (cleared < all && cleared > before) {
        before = cleared;
        change_log_await(server->log);
        cleared = clear_stopped(server, before);
    }
    populate_go(server->populate, NULL); /* what was resident may be so no more: as it is used */
    return cleared == all;
}

/* Returns the flushes asked for by now, which the caller frees. *upto: their highest number. */
static struct asked *flush_take(struct flush *flush, size_t *count, uint64_t *upto)
{
    pthread_mutex_lock(&flush->lock);
    struct asked *taken = flush->asked;

    *count = flush->count;
    *upto = flush->number_last;
    flush->asked = NULL;
    flush->count = flush->room = 0;
    pthread_mutex_unlock(&flush->lock);
    return taken;
}

void flush_run(void *context)
{
    struct flush *flush = context;
    size_t count;
    uint64_t upto;

    change_log_await(flush->server->log); /* meanwhile who asked may take it back */
    struct asked *asked = flush_take(flush, &count, &upto);

    if (count > 0) { /* else all were taken back */
        bool cleared = flush_clear(flush->server);

        pthread_mutex_lock(&flush->lock);
        *(cleared ? &flush->done_upto : &flush->refused_upto) = upto;
        pthread_mutex_unlock(&flush->lock);
    }
    for (size_t i = 0; i < count; i++) {
        ticket_wake(&asked[i].ticket);
    }
    free(asked);
}
