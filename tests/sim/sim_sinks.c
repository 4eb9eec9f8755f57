/* sim_sinks.c: what workers and the keeper put goes to the journal and into the history. */
#include "data/data_private.h"
#include "engine/change_record.h"
#include "row/row_data.h"
#include "store/journal_private.h"
#include "tests/sim/sim.h"

static struct sim_sink *sink_of(struct change_sink *sink)
{
    return (struct sim_sink *)sink;
}

static bool sink_reserve(struct change_sink *sink)
{
    struct change_sink *inner = &sink_of(sink)->journal.sink;

    return inner->functions->reserve(inner);
}

static uint64_t sink_put(struct change_sink *sink, const struct change *change)
{
    struct sim *sim = sink_of(sink)->sim;
    struct change_sink *inner = &sink_of(sink)->journal.sink;

    sim_pass(sim, SIM_POINT_PUT);
    uint64_t lsn = inner->functions->put(inner, change);

    history_change(&sim->history, lsn, change, sim->member_now);
    sim_pass(sim, SIM_POINT_PUT);
    return lsn;
}

static void sink_cancel(struct change_sink *sink)
{
    struct change_sink *inner = &sink_of(sink)->journal.sink;

    inner->functions->cancel(inner);
}

static const struct change_sink_functions sink_functions = {
    .reserve = sink_reserve,
    .put = sink_put,
    .cancel = sink_cancel,
};

static bool log_reserve(struct change_log *log)
{
    struct sim *sim = ((struct sim_log *)log)->sim;
    struct change_log *inner = &data_log(sim->data)->log;
    bool room = inner->reserve(inner);

    if (!room) {
        sim_calm(sim); /* it has submitted what was put */
    }
    return room;
}

static void log_put(struct change_log *log, uint32_t space, enum change_event event,
                    const void *bytes, size_t length)
{
    struct sim *sim = ((struct sim_log *)log)->sim;
    struct journal_log *inner = data_log(sim->data);
    uint64_t words[CHANGE_EVENT_BYTES_MAX / 8 + 2];

    sim_pass(sim, SIM_POINT_PUT);
    inner->log.put(&inner->log, space, event, bytes, length);
    uint64_t head = event == CHANGE_EVENT_SPACE ? CHANGE_SPACE_HEAD_BYTES : 0;
    uint64_t whole = JOURNAL_HEADER_BYTES + head + change_record_encode_event(words, bytes, length);

    struct history_event put = history_event_of(space, event, bytes, length);

    history_event(&sim->history, inner->writer.end - whole, &put);
    sim_pass(sim, SIM_POINT_PUT);
}

/* By the keeper: what was apart goes in place. */
static void log_change(struct change_log *log, const struct change *change)
{
    struct sim *sim = ((struct sim_log *)log)->sim;
    struct journal_log *inner = data_log(sim->data);
    struct change_record record;

    sim_pass(sim, SIM_POINT_PUT);
    inner->log.change(&inner->log, change);
    change_record_encode(change, &record);
    history_change(&sim->history, inner->writer.end - JOURNAL_HEADER_BYTES - record.bytes, change,
                   history_member(&sim->history, change));
    sim_pass(sim, SIM_POINT_PUT);
}

void sim_sinks_begin(struct sim *sim)
{
    sim->leads = true;
    sim->log.log =
        (struct change_log){.reserve = log_reserve, .put = log_put, .change = log_change};
    sim->log.sim = sim;
    for (unsigned i = 0; i < SIM_SPACES; i++) {
        struct engine *engine = sim_engine(sim, i);

        row_set_log(engine->row, &sim->log.log);
    }
    for (unsigned i = 0; i < SIM_WORKERS; i++) {
        sim->sinks[i].sink.functions = &sink_functions;
        sim->sinks[i].sim = sim;
        journal_sink_init(&sim->sinks[i].journal, data_journal(sim->data));
    }
}
