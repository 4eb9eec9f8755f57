/*
 * load_life.c: finds out whether the daemon is the one that took the earlier rows, or was started
 * again and came back without them. It asks on a connection of its own, as the others have batches
 * on their way.
 */
#include <inttypes.h>
#include <string.h>

#include "base/num.h"
#include "tools/rollcall/load_private.h"

#define START_BLUR_S 2 /* `time` and `uptime` are whole seconds, each for itself */

static bool ask_number(struct wire *wire, const char *name, uint64_t *number)
{
    char text[64];

    return wire_stat(wire, "", name, text, sizeof(text)) && num_parse(text, strlen(text), number);
}

/* False: it does not say now, as it is away or loads. */
static bool ask_life(struct wire *wire, struct load_life *life)
{
    uint64_t time_s;
    uint64_t uptime_s;

    *life = (struct load_life){0};
    if ((wire->fd < 0 && !wire_connect(wire, NULL, NULL)) || !ask_number(wire, "pid", &life->pid) ||
        !ask_number(wire, "time", &time_s) || !ask_number(wire, "uptime", &uptime_s)) {
        wire_close(wire);
        return false;
    }
    life->started_s = time_s - uptime_s;
    life->journal = ask_number(wire, "journal_written", &life->written);
    life->known = life->journal || wire->answered; /* else it went away meanwhile */
    if (!life->known) {
        wire_close(wire);
    }
    return life->known;
}

static bool is_same_life(const struct load_life *a, const struct load_life *b)
{
    uint64_t apart =
        a->started_s > b->started_s ? a->started_s - b->started_s : b->started_s - a->started_s;
    return a->pid == b->pid && apart <= START_BLUR_S;
}

bool load_life_see(struct load *load)
{
    const struct load_life *before = &load->life;
    const char *checkpoint = load->options->checkpoint;
    bool another = load->life_wire.fd < 0; /* else nobody has hung up */
    const char *what = NULL;
    struct load_life now;

    if (!ask_life(&load->life_wire, &now)) {
        return true; /* the next time */
    }
    if (another && before->known && !is_same_life(before, &now)) {
        what = !before->journal || !now.journal ? "had no data directory"
               : now.written < before->written  ? "came back without its last changes"
                                                : NULL;
    }
    if (what != NULL) {
        snprintf(load->why_failed, sizeof(load->why_failed),
                 "%.100s was started again, and %s: rows that it had acknowledged are gone; load "
                 "all of them again%s%.200s",
                 load->peer->address, what, checkpoint != NULL ? ", without " : "",
                 checkpoint != NULL ? checkpoint : "");
        return false;
    }
    load->life = now;
    return true;
}
