/*
 * array.h: an array that grows. Its owner has the items, their count and the room for more; it
 * starts from NULL, 0 and 0, appends where array_room() says, and frees the items itself. What must
 * be able to fail, or is large, grows in its own way. Not thread-safe.
 */
#ifndef ROLLCALL_BASE_ARRAY_H
#define ROLLCALL_BASE_ARRAY_H

#include <stddef.h>

/*
 * Room for one item after `count`: the room doubles when it is used up. Returns the items, which
 * may have moved; ends the process when out of memory. O(1) an item, on average.
 *
 *     files->items = array_room(files->items, files->count, &files->room, sizeof(*files->items));
 *     files->items[files->count++] = file;
 */
void *array_room(void *items, size_t count, size_t *room, size_t item_bytes);

#endif
