/* settings_run.c: see settings_run.h. */
#include "tests/unit/config/settings_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ARGS_MAX 32

static char folder[] = "/tmp/test_settings.XXXXXX";

void write_file(const char *name, const char *text, size_t length)
{
    FILE *file = fopen(name, "w");

    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

/* Splits "-p 0 -d" at blanks; '~' stands for a blank inside an argument. */
static int split(char *line, char *argv[ARGS_MAX])
{
    int argc = 0;

    argv[argc++] = strdup("rollcalld");
    for (char *word = strsep(&line, " "); word != NULL; word = strsep(&line, " ")) {
        if (*word == '\0') {
            continue;
        }
        assert_true(argc < ARGS_MAX - 1);
        for (char *at = word; (at = strchr(at, '~')) != NULL;) {
            *at = ' ';
        }
        argv[argc++] = strdup(word);
    }
    argv[argc] = NULL;
    return argc;
}

/* Runs with a file of that text (none if NULL) and flags. */
void start(struct run *run, const char *yaml, const char *flags)
{
    char *argv[ARGS_MAX], *line = NULL;
    size_t out_length, err_length;
    FILE *out = open_memstream(&run->out, &out_length);
    FILE *err = open_memstream(&run->err, &err_length);
    int argc;

    if (yaml != NULL) {
        write_file("t.yaml", yaml, strlen(yaml));
    }
    assert_true(asprintf(&line, "%s %s", yaml ? "--config t.yaml" : "", flags) >= 0);
    argc = split(line, argv);
    run->action = settings_load(argc, argv, out, err, &run->settings);
    assert_true((run->action == SETTINGS_RUN) == (run->settings != NULL));
    fclose(out);
    fclose(err);
    for (int i = 0; i < argc; i++) {
        free(argv[i]);
    }
    free(line);
}

void finish(struct run *run)
{
    settings_destroy(run->settings);
    free(run->out);
    free(run->err);
}

/* A good one without a word. */
struct settings *good(struct run *run, const char *yaml, const char *flags)
{
    start(run, yaml, flags);
    assert_string_equal(run->err, "");
    assert_int_equal(run->action, SETTINGS_RUN);
    return run->settings;
}

void refused(const char *yaml, const char *flags, const char *words)
{
    struct run run;

    start(&run, yaml, flags);
    assert_string_equal(run.err, words);
    assert_int_equal(run.action, SETTINGS_EXIT_ERROR);
    finish(&run);
}

int settings_run_enter(void **unused)
{
    (void)unused;
    return mkdtemp(folder) == NULL || chdir(folder) != 0;
}

int settings_run_leave(void **unused)
{
    static const char *const names[] = {"t.yaml", "r.yaml", "nul.yaml", "large.yaml"};

    (void)unused;
    for (size_t i = 0; i < LENGTH(names); i++) {
        unlink(names[i]);
    }
    return chdir("/") != 0 || rmdir(folder) != 0;
}
