/*
 * follow_memory.c: room for the other node's tables. Its spaces have its sizes, whatever this
 * configuration says, and what they take beyond it must be left of `memory`.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/size.h"
#include "data/follow_private.h"
#include "row/row_data.h"

#define MIB 1048576.0

/* A space of this configuration. */
struct follow_space {
    char name[MANIFEST_SPACE_NAME_MAX + 1];
    uint64_t bytes; /* of its tables */
};

struct follow_memory {
    uint64_t memory_bytes, left_bytes; /* the limit; what this configuration leaves of it */
    size_t count;
    struct follow_space spaces[];
};

struct follow_memory *follow_memory_create(const struct settings *settings)
{
    uint64_t sum = settings_memory_sum(settings, NULL);
    struct follow_memory *memory =
        memory_zalloc(sizeof(*memory) + settings->space_count * sizeof(memory->spaces[0]));

    memory->memory_bytes = settings->memory_bytes;
    memory->left_bytes = settings->memory_bytes > sum ? settings->memory_bytes - sum : 0;
    for (size_t i = 0; i < settings->space_count; i++) {
        const struct space_settings *space = &settings->spaces[i];

        if (space->kind != SPACE_PLAIN) {
            struct follow_space *add = &memory->spaces[memory->count++];

            snprintf(add->name, sizeof(add->name), "%s", space->name);
            add->bytes = space->row.tables * space->row.table_bytes;
        }
    }
    return memory;
}

/* What a space of the other node takes beyond the one here. One that is not here is said
 * elsewhere. */
static uint64_t more_bytes(const struct follow_memory *memory, const struct manifest_space *space)
{
    const struct manifest_data *state = manifest_find_data(space, DATA_LABEL_STATE);
    uint64_t there = state != NULL ? row_stored_bytes(state->bytes, state->length) : 0;

    for (size_t i = 0; i < memory->count; i++) {
        if (strcmp(memory->spaces[i].name, space->name) == 0) {
            return there > memory->spaces[i].bytes ? there - memory->spaces[i].bytes : 0;
        }
    }
    return 0;
}

bool data_has_memory(const struct data *data, const struct manifest *manifest,
                     char error[DATA_ERROR_MAX])
{
    const struct follow_memory *memory = data->follow->memory;
    const char *largest = "";
    uint64_t sum = 0;
    uint64_t most = 0;
    char limit[SIZE_TEXT_MAX];

    for (size_t i = 0; i < manifest->spaces_count; i++) {
        uint64_t more = more_bytes(memory, &manifest->spaces[i]);

        sum += more;
        largest = more > most ? manifest->spaces[i].name : largest;
        most = more > most ? more : most;
    }
    size_exact(limit, memory->memory_bytes);
    return sum <= memory->left_bytes ||
           data_refuse(error,
                       "the other node's tables take %.1f MiB more than those here (space %s %.1f "
                       "MiB), and memory of %s leaves %.1f MiB; raise memory by %.1f MiB",
                       (double)sum / MIB, largest, (double)most / MIB, limit,
                       (double)memory->left_bytes / MIB, (double)(sum - memory->left_bytes) / MIB);
}
