/* check.c: the end of a process whose invariant broke. */
#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <syslog.h>

#include "base/log_queue.h"

void check_failed(const char *file, int line, const char *function, const char *text)
{
    struct log_entry entry = {.priority = LOG_CRIT};
    int length = snprintf(entry.text, sizeof(entry.text), "%s:%d: %s: check failed: %s\n", file,
                          line, function, text);
    size_t bytes = length < 0 ? 0 : (size_t)length;
    if (bytes >= sizeof(entry.text)) {
        bytes = sizeof(entry.text) - 1;
        entry.text[bytes - 1] = '\n';
    }
    entry.length = (uint16_t)bytes;
    /* stdio is left out: the thread that broke may hold its lock. */
    log_queue_put(&entry);
    log_queue_wait();
    abort();
}
