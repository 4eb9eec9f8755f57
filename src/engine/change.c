/* change.c: the sink that keeps nothing. */
#include "engine/change.h"

static bool null_reserve(struct change_sink *sink)
{
    (void)sink;
    return true;
}

static uint64_t null_put(struct change_sink *sink, const struct change *change)
{
    (void)sink;
    (void)change;
    return 0;
}

static uint64_t null_put_slot(struct change_sink *sink, uint32_t space, uint64_t id, unsigned slot,
                              uint64_t value)
{
    (void)sink;
    (void)space;
    (void)id;
    (void)slot;
    (void)value;
    return 0;
}

static void null_cancel(struct change_sink *sink)
{
    (void)sink;
}

static const struct change_sink_functions null_functions = {
    .reserve = null_reserve,
    .put = null_put,
    .put_slot = null_put_slot,
    .cancel = null_cancel,
};

static const struct change_sink null_sink = {.functions = &null_functions};

struct change_sink *change_sink_null(void)
{
    /* The null sink is constant: its functions write nothing into it. */
    return (struct change_sink *)&null_sink;
}

uint64_t change_sink_put_whole(struct change_sink *sink, uint32_t space, uint64_t id, unsigned slot,
                               uint64_t value)
{
    struct change change = {.type = CHANGE_SLOTS,
                            .space = space,
                            .place = CHANGE_THERE,
                            .id = id,
                            .named = 1u << slot,
                            .set = 1u << slot};
    change.values[slot] = value;
    return sink->functions->put(sink, &change);
}
