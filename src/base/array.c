/* array.c: growing an array. */
#include "base/array.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/check.h"

#define ROOM_FIRST 16u

void *array_room(void *items, size_t count, size_t *room, size_t item_bytes)
{
    CHECK(count <= *room && item_bytes > 0);
    if (count < *room) {
        return items;
    }
    *room = *room > 0 ? 2 * *room : ROOM_FIRST;
    CHECK(*room <= SIZE_MAX / item_bytes);
    items = realloc(items, *room * item_bytes);
    CHECK(items != NULL);
    return items;
}
