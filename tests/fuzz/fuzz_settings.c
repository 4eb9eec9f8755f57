/*
 * fuzz_settings.c: YAML through settings_load(). Every mistake has a place; what is good is printed
 * by --print-config as a file that is good and prints the same.
 */
#include <stdio.h>

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/settings_text.h"

#define PROGRAM "rollcalld: "

/* "path:line:column: " */
static bool has_place(const char *line, const char *path)
{
    size_t row = 0;
    size_t column = 0;

    return strncmp(line, path, strlen(path)) == 0 &&
           sscanf(line + strlen(path), ":%zu:%zu: ", &row, &column) == 2 && row > 0 && column > 0;
}

/* At least one mistake, and none without a place: nothing but the file was given. */
static void check_mistakes(const char *err, const char *path)
{
    unsigned count = 0;

    for (const char *line = err; *line != '\0';) {
        const char *newline = strchr(line, '\n');

        CHECK(newline != NULL && strncmp(line, PROGRAM, strlen(PROGRAM)) != 0);
        CHECK(strncmp(line, path, strlen(path)) != 0 || has_place(line, path));
        count += has_place(line, path);
        line = newline + 1;
    }
    CHECK(count > 0);
}

static void check_again(struct settings_text *text, const char *printed)
{
    struct settings *settings;
    char *out;
    char *err;
    enum settings_action action =
        settings_text_load(text, printed, strlen(printed), "--print-config", &out, &err, &settings);

    CHECK(action == SETTINGS_EXIT_OK && strcmp(out, printed) == 0);
    free(out);
    free(err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct settings_text text = {.fd = -1};
    struct settings *settings;
    char *out;
    char *err;

    if (text.fd < 0) {
        settings_text_open(&text);
    }
    enum settings_action action = settings_text_load(&text, (const char *)data, size,
                                                     "--print-config", &out, &err, &settings);

    CHECK(settings == NULL && action != SETTINGS_RUN);
    if (action == SETTINGS_EXIT_OK) {
        check_again(&text, out);
    } else {
        check_mistakes(err, text.path);
    }
    free(out);
    free(err);
    return 0;
}
