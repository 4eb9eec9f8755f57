#include "engine/emit.h"

#include <inttypes.h>
#include <stdio.h>

#define SHARE_DIGITS 4

void emit_text(const struct emitter *to, const char *name, const char *text)
{
    to->emit(to->context, name, text);
}

void emit_u64(const struct emitter *to, const char *name, uint64_t value)
{
    char text[ENGINE_STAT_TEXT_MAX];
    snprintf(text, sizeof(text), "%" PRIu64, value);
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
    emit_real(to, name, SHARE_DIGITS, whole ? (double)part / (double)whole : 0.0);
}

static void pass_numbered(void *context, const char *name, const char *text)
{
    const struct emit_numbered *numbered = context;
    char full[ENGINE_STAT_TEXT_MAX];
    snprintf(full, sizeof(full), "%" PRIu64 ":%s", numbered->number, name);
    emit_text(&numbered->to, full, text);
}

struct emitter emit_numbered(struct emit_numbered *numbered, const struct emitter *to,
                             uint64_t number)
{
    *numbered = (struct emit_numbered){*to, number};
    return (struct emitter){pass_numbered, numbered};
}
