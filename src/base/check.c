/* check.c: the end of a process whose invariant broke. */
#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CHECK_LINE_BYTES 512

void check_failed(const char *file, int line, const char *function, const char *text)
{
    char buffer[CHECK_LINE_BYTES];
    int length = snprintf(buffer, sizeof(buffer), "%s:%d: %s: check failed: %s\n", file, line,
                          function, text);
    size_t bytes = length < 0 ? 0 : (size_t)length;
    if (bytes >= sizeof(buffer)) {
        bytes = sizeof(buffer) - 1;
        buffer[bytes - 1] = '\n';
    }
    /* stdio is left out: the thread that broke may hold its lock. */
    ssize_t written = write(STDERR_FILENO, buffer, bytes);
    (void)written;
    abort();
}
