/* online_top.c: rollcall top: a daemon, live: one look a second, and keys to sort. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/rollcall/online.h"
#include "tools/rollcall/online_rates.h"
#include "tools/rollcall/online_screen.h"
#include "tools/rollcall/online_top.h"
#include "tools/rollcall/online_view.h"
#include "tools/rollcall/verb.h"

struct top {
    const struct online_options *options;
    struct online_rates rates;
    json_t *view; /* the last one that came; NULL: none yet */
    enum online_sort sort;
    char error[ONLINE_ERROR_MAX]; /* of the last look; "": it was answered */
    enum exit_status status;
    uint64_t looks;
};

static uint64_t top_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* False: it was the first one, and nobody answered. */
static bool top_look(struct top *top)
{
    const struct online_target *target = &top->options->target;
    json_t *view = online_view(target, ONLINE_NEWEST, true, &top->status, top->error);

    if (view != NULL) {
        online_rates_add(&top->rates, view, top_now_ms());
        json_decref(top->view);
        top->view = view;
        top->error[0] = '\0';
    }
    top->looks++;
    return top->view != NULL;
}

static bool top_is_over(const struct top *top)
{
    return top->options->looks > 0 && top->looks >= top->options->looks;
}

/* ---- without a terminal ---- */

static void top_print(const struct top *top)
{
    struct online_lines lines;

    if (*top->error != '\0') {
        verb_complain(stderr, "%s", top->error);
        return;
    }
    if (top->options->json) {
        online_put_json(top->options, top->view);
    } else {
        online_top_compose(top->view, top->sort, "", ONLINE_TOP_LINES_MAX, &lines);
        for (size_t i = 0; i < lines.count; i++) {
            printf("%s\n", lines.at[i]);
        }
        putchar('\n');
    }
    fflush(stdout);
}

static void top_print_all(struct top *top)
{
    const struct timespec pause = {.tv_sec = top->options->interval_ms / 1000,
                                   .tv_nsec = top->options->interval_ms % 1000 * 1000000l};

    top_print(top);
    while (!top_is_over(top) && ferror(stdout) == 0) {
        nanosleep(&pause, NULL);
        top_look(top);
        top_print(top);
    }
}

/* ---- with one ---- */

static void top_draw(const struct top *top)
{
    unsigned rows, columns;
    struct online_lines lines;

    online_screen_size(&rows, &columns);
    online_top_compose(top->view, top->sort, top->error, rows, &lines);
    online_screen_draw(&lines, rows, columns);
}

/* False: to end. */
static bool top_obey(struct top *top, char key)
{
    static const char keys[ONLINE_SORTS + 1] = "nhmrcf";
    const char *at = key != '\0' ? strchr(keys, key) : NULL;

    if (at != NULL) {
        top->sort = (enum online_sort)(at - keys);
    }
    return key != 'q' && key != ONLINE_KEY_END;
}

static void top_show_all(struct top *top, const struct online_screen *screen)
{
    uint64_t next_ms = top_now_ms() + top->options->interval_ms;

    do {
        uint64_t now_ms = top_now_ms();

        if (now_ms >= next_ms) {
            top_look(top);
            next_ms = top_now_ms() + top->options->interval_ms;
        }
        top_draw(top);
        now_ms = top_now_ms();
        if (!top_obey(top, online_screen_key(screen, next_ms > now_ms ? (unsigned)(next_ms - now_ms)
                                                                      : 0))) {
            return;
        }
    } while (!top_is_over(top));
}

static int top_run(const struct online_options *options)
{
    struct top top = {.options = options, .sort = options->sort};
    struct online_screen terminal;
    bool screen = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && !options->json;

    if (!screen && options->looks == 0 && !options->json) {
        return (int)verb_complain(stderr,
                                  "top wants a terminal; without one give --looks N, or --json");
    }
    if (!top_look(&top)) {
        verb_complain(stderr, "%s", top.error);
        online_rates_free(&top.rates);
        return (int)top.status;
    }
    if (screen && online_screen_begin(&terminal)) {
        top_show_all(&top, &terminal);
        online_screen_end(&terminal);
    } else {
        top_print_all(&top);
    }
    online_rates_free(&top.rates);
    json_decref(top.view);
    return *top.error != '\0' ? (int)top.status : EXIT_STATUS_DONE;
}

static const char *const top_takes[] = {"json", "json-safe-ids", "sort", "interval", "looks", NULL};

const struct online_verb verb_top = {
    .name = "top",
    .words = "[SERVER]",
    .words_most = 1,
    .server_word = true,
    .does = "Shows a daemon live. Keys: n h m r c f sort the spaces by name, held, memory, "
            "reads, changes,\nwhen they are full; q ends.",
    .examples = "  rollcall top\n"
                "  rollcall top -s http://127.0.0.1:11280 --sort reads\n"
                "  rollcall top --json --looks 10 | jq .reads_each_s\n",
    .takes = top_takes,
    .run = top_run,
};
