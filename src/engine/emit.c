#include "engine/emit.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/num.h"

#define SHARE_WHOLE 10000 /* four digits */

void emit_text(const struct emitter *to, const char *name, const char *text)
{
    to->emit(to->context, name, text);
}

void emit_u64(const struct emitter *to, const char *name, uint64_t value)
{
    char text[ENGINE_STAT_TEXT_MAX];
    text[num_print(text, value)] = '\0';
    emit_text(to, name, text);
}

void emit_real(const struct emitter *to, const char *name, int digits, double value)
{
    char text[ENGINE_STAT_TEXT_MAX];
    snprintf(text, sizeof(text), "%.*f", digits, value);
    emit_text(to, name, text);
}

void emit_share(const struct emitter *to, const char *name, uint64_t part, uint64_t whole)
{
    char text[ENGINE_STAT_TEXT_MAX];
    double share = whole && part < whole ? (double)part / (double)whole : (double)(whole > 0);
    uint64_t parts = (uint64_t)(share * SHARE_WHOLE + 0.5);
    size_t used = num_print(text, parts / SHARE_WHOLE);
    (void)num_print(text + used, SHARE_WHOLE + parts % SHARE_WHOLE); /* its leading 1 gives way */
    text[used] = '.';
    text[used + sizeof("0000")] = '\0';
    emit_text(to, name, text);
}

static void pass_numbered(void *context, const char *name, const char *text)
{
    const struct emit_numbered *numbered = context;
    char full[ENGINE_STAT_TEXT_MAX];
    size_t used = num_print(full, numbered->number);
    size_t length = strlen(name) + 1;
    CHECK(used + 1 + length <= sizeof(full));
    full[used] = ':';
    memcpy(full + used + 1, name, length);
    emit_text(&numbered->to, full, text);
}

struct emitter emit_numbered(struct emit_numbered *numbered, const struct emitter *to,
                             uint64_t number)
{
    *numbered = (struct emit_numbered){*to, number};
    return (struct emitter){pass_numbered, numbered};
}
