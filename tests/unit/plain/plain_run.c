/* plain_run.c: a small plain engine for tests. */
#include "plain_run.h"

#include <string.h>

int plain_run_make(void **state)
{
    const struct plain_config config = {.memory_bytes = PLAIN_RUN_MEMORY_BYTES,
                                        .item_bytes_max = PLAIN_RUN_ITEM_MAX};
    struct engine **engine = *state;

    *engine = plain_create(&config);
    return *engine == NULL;
}

int plain_run_drop(void **state)
{
    struct engine **engine = *state;

    plain_check(*engine);
    (*engine)->functions->destroy(*engine);
    return 0;
}

struct engine_op plain_run_op(enum engine_verb verb, const char *key, const char *text)
{
    static _Thread_local char value[ENGINE_VALUE_MAX];

    return (struct engine_op){.verb = verb,
                              .member = key,
                              .member_length = (uint32_t)strlen(key),
                              .text = text,
                              .text_length = (uint32_t)strlen(text),
                              .value = value};
}
