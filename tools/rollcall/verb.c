#include "tools/rollcall/verb.h"

#include <stdarg.h>
#include <string.h>

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
