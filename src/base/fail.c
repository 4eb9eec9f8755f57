#include "base/fail.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

bool fail_with(char *why, size_t size, const char *format, ...)
{
    int reason = errno;
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(why, size, format, arguments);
    va_end(arguments);
    errno = reason;
    return false;
}
