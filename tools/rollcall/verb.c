#include "tools/rollcall/verb.h"

#include <stdarg.h>
#include <string.h>

static _Thread_local char last_complaint[VERB_COMPLAINT_MAX];

enum verb_exit verb_complain(FILE *to, const char *format, ...)
{
    char complaint[VERB_COMPLAINT_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(complaint, sizeof(complaint), format, arguments);
    va_end(arguments);
    fprintf(to, "rollcall: %s\n", complaint);
    if (to == stderr) {
        memcpy(last_complaint, complaint, sizeof(complaint));
    }
    return VERB_USAGE;
}

const char *verb_last_complaint(void)
{
    return last_complaint;
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
