#include "tools/rollcall/verb.h"

#include <stdarg.h>
#include <string.h>

#define KIB           1024.0
#define FRACTION_FROM 10.0 /* below it a size has one digit behind the point */

enum verb_exit verb_complain(FILE *to, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("rollcall: ", to);
    vfprintf(to, format, arguments);
    fputc('\n', to);
    va_end(arguments);
    return VERB_USAGE;
}

const char *verb_size(char text[VERB_SIZE_MAX], uint64_t bytes)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;
    double size = (double)bytes;
    while (size >= KIB && unit + 1 < sizeof(units) / sizeof(*units)) {
        size /= KIB;
        unit++;
    }
    int digits = unit > 0 && size < FRACTION_FROM;
    snprintf(text, VERB_SIZE_MAX, "%.*f %s", digits, size, units[unit]);
    return text;
}

bool verb_ends_with(const char *name, const char *suffix)
{
    size_t length = strlen(name);
    size_t end = strlen(suffix);
    return length > end && strcmp(name + length - end, suffix) == 0;
}

const char *verb_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}
