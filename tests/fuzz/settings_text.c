/* settings_text.c: see settings_text.h. */
#include "tests/fuzz/settings_text.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

void settings_text_open(struct settings_text *text)
{
    text->fd = memfd_create("settings", MFD_CLOEXEC);
    CHECK(text->fd >= 0);
    snprintf(text->path, sizeof(text->path), "/proc/self/fd/%d", text->fd);
}

enum settings_action settings_text_load(struct settings_text *text, const char *yaml, size_t length,
                                        const char *flag, char **out, char **err,
                                        struct settings **settings)
{
    char program[] = "rollcalld";
    char config[] = "--config";
    char *argument = memory_strdup(flag != NULL ? flag : "");
    char *argv[] = {program, config, text->path, flag != NULL ? argument : NULL, NULL};
    size_t out_length;
    size_t err_length;
    FILE *out_file = open_memstream(out, &out_length);
    FILE *err_file = open_memstream(err, &err_length);

    CHECK(out_file != NULL && err_file != NULL && ftruncate(text->fd, 0) == 0);
    CHECK(pwrite(text->fd, yaml, length, 0) == (ssize_t)length);
    enum settings_action action =
        settings_load(flag != NULL ? 4 : 3, argv, out_file, err_file, settings);

    fclose(out_file);
    fclose(err_file);
    free(argument);
    return action;
}
