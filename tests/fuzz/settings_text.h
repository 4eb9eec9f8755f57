/* settings_text.h: a configuration from a text in memory. One thread. */
#ifndef ROLLCALL_TESTS_FUZZ_SETTINGS_TEXT_H
#define ROLLCALL_TESTS_FUZZ_SETTINGS_TEXT_H

#include "config/settings.h"

#define SETTINGS_TEXT_PATH_MAX 64

struct settings_text {
    int fd;
    char path[SETTINGS_TEXT_PATH_MAX]; /* what mistakes begin with */
};

void settings_text_open(struct settings_text *text);
/* settings_load() of it; `flag` (NULL: none) is one more argument. *out and *err are what was
 * printed, to be freed. */
enum settings_action settings_text_load(struct settings_text *text, const char *yaml, size_t length,
                                        const char *flag, char **out, char **err,
                                        struct settings **settings);

#endif
