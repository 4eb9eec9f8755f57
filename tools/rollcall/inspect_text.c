/* inspect_text.c: lines and bytes of a listing. */
#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "tools/rollcall/inspect_private.h"

#define HEX_MAX    32 /* bytes of a value on a line */
#define LINE_BYTES 16 /* of a dump */

void inspect_field(const struct inspect *inspect, const char *name, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(inspect->out, "%-12s ", name);
    vfprintf(inspect->out, format, arguments);
    fputc('\n', inspect->out);
    va_end(arguments);
}

void inspect_hex(FILE *to, const void *bytes, size_t length)
{
    const unsigned char *byte = bytes;
    for (size_t i = 0; i < length && i < HEX_MAX; i++) {
        fprintf(to, i > 0 && i % 8 == 0 ? " %02x" : "%02x", byte[i]);
    }
    if (length > HEX_MAX) {
        fprintf(to, " ... (%zu bytes)", length);
    }
    if (length == 0) {
        fputs("(no bytes)", to);
    }
}

static void dump_line(FILE *to, const unsigned char *line, size_t length, uint64_t offset)
{
    fprintf(to, "  %06" PRIx64 " ", offset);
    for (size_t i = 0; i < LINE_BYTES; i++) {
        fputs(i % 8 == 0 ? " " : "", to);
        if (i < length) {
            fprintf(to, "%02x ", line[i]);
        } else {
            fputs("   ", to);
        }
    }
    fputs(" |", to);
    for (size_t i = 0; i < length; i++) {
        fputc(line[i] < 0x80 && isprint(line[i]) ? line[i] : '.', to);
    }
    fputs("|\n", to);
}

void inspect_dump(FILE *to, const void *bytes, size_t length, uint64_t offset)
{
    const unsigned char *line = bytes;
    bool starred = false;
    for (size_t at = 0; at < length; at += LINE_BYTES) {
        size_t part = length - at < LINE_BYTES ? length - at : LINE_BYTES;
        bool last = at + LINE_BYTES >= length;
        if (at > 0 && !last && memcmp(line + at, line + at - LINE_BYTES, LINE_BYTES) == 0) {
            fputs(starred ? "" : "  *\n", to);
            starred = true;
        } else {
            dump_line(to, line + at, part, offset + at);
            starred = false;
        }
    }
}

bool inspect_wants(const struct inspect *inspect, uint64_t line)
{
    return inspect->options->limit == 0 || line < inspect->options->limit;
}
