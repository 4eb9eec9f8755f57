/*
 * toy_engine.h: an engine for the tests of data: numbers behind ids in tables of a fixed range,
 * with all that data asks of a row (row/row_data.h) and none of what makes engines fast.
 *
 * Table t has the ids t * TOY_RANGE up to (t + 1) * TOY_RANGE - 1, and is opened by the first of
 * them; with more than TOY_TABLES_KEPT the lowest is dropped. All of it by whoever sets, who stands
 * for worker and keeper in one: nobody else may use the engine in that moment.
 *
 * A program that links it has no other engines: it stands in for space/spaces_engine.c and src/row.
 */
#ifndef ROLLCALL_TESTS_TOY_ENGINE_H
#define ROLLCALL_TESTS_TOY_ENGINE_H

#include "engine/engine.h"
#include "space/spaces.h"

#define TOY_RANGE       1024u
#define TOY_TABLES_KEPT 8
#define TOY_BAD         UINT64_MAX /* of a table's first id: a merge fails, as of a bad file */

/* A space_engine_fn. */
struct engine *toy_create(const struct space_settings *settings, uint32_t number,
                          char error[SPACES_ERROR_MAX]);

/* 0: absent. */
uint64_t toy_get(const struct engine *engine, uint64_t id);
/* False: the sink or the log has no room, nothing was changed. sink NULL: nothing is told. */
bool toy_set(struct engine *engine, struct change_sink *sink, uint64_t id, uint64_t value);
/* Has an image of the table that was begun be of no use. */
void toy_touch(struct engine *engine, uint64_t id);

/* Called at the beginning of each image_write, outside the barrier. NULL: nothing is. */
typedef void toy_image_fn(void *context, struct engine *engine, uint64_t serial);
void toy_on_image(struct engine *engine, toy_image_fn *begun, void *context);
/* load() waits until it is to stop; image_write(). */
void toy_load_for_ever(struct engine *engine);
void toy_image_for_ever(struct engine *engine, bool on);

/*
 * Dumped tables: from the DUMP image on the toy keeps the file and writes its values as an overlay
 * image, whole. toy_leave: the table is to leave memory; toy_merge: a dumped one gets another file,
 * which is tried once.
 */
void toy_leave(struct engine *engine, uint64_t id);
void toy_merge(struct engine *engine, uint64_t id);
bool toy_dumped(const struct engine *engine, uint64_t id);
const struct table_file *toy_file(const struct engine *engine, uint64_t id); /* NULL: not dumped */

/* Maintenance, when the keeper is asked for it, touches every table; so many times so far. */
uint64_t toy_maintained(const struct engine *engine);

/* Rounds of images that were said to have failed. */
uint64_t toy_failed_rounds(const struct engine *engine);

uint64_t toy_images(const struct engine *engine);       /* begun so far */
uint64_t toy_replayed(const struct engine *engine);     /* changes given to replay */
uint64_t toy_reconfigured(const struct engine *engine); /* space_reconfigure, with a log */

#endif
