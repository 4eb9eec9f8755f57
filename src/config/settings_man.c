/* settings_man.c: the manual pages rollcalld(8) and rollcall.yaml(5), from the same rows as --help.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "config/settings_draft.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

#define MAN_LINE_MAX 72 /* bytes of a line before it is escaped */

/* A word as roff: no '\' or '-' is lost. */
static void man_word(FILE *out, const char *word, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (word[i] == '\\') {
            fputs("\\e", out);
        } else if (word[i] == '-') {
            fputs("\\-", out);
        } else {
            putc(word[i], out);
        }
    }
}

/* Prints text in lines that are not too long and do not begin with a control character. */
static void man_text(FILE *out, const char *text)
{
    size_t at = 0;

    while (*text != '\0') {
        size_t length = strcspn(text, " ");

        if (at > 0) {
            bool fits = at + 1 + length <= MAN_LINE_MAX;

            putc(fits ? ' ' : '\n', out);
            at = fits ? at + 1 : 0;
        }
        if (at == 0 && (*text == '.' || *text == '\'')) {
            fputs("\\&", out);
        }
        man_word(out, text, length);
        at += length;
        text += length;
        text += strspn(text, " ");
    }
    putc('\n', out);
}

/* An entry of a list: its head in bold, then what it is. */
static void man_entry(FILE *out, const char *head, const char *text)
{
    fputs(".TP\n\\fB", out);
    man_word(out, head, strlen(head));
    fputs("\\fR\n", out);
    man_text(out, text);
}

static void man_head(FILE *out, const char *title, int section, const char *name, const char *what)
{
    fprintf(out, ".TH %s %d " PACKAGE_DATE " \"rollcall " PACKAGE_VERSION "\"\n.SH NAME\n%s \\- ",
            title, section, name);
    man_text(out, what);
}

/* ---- rollcall.yaml(5) ---- */

static void man_row(FILE *out, const struct settings_row *row)
{
    const struct option_row *option = &row->option;
    char limits[OPTIONS_TEXT_MAX];

    options_format_limits(option, limits);
    man_entry(out, option->name, option->help);
    if (option->initial != NULL) {
        fputs("Default: ", out);
        man_word(out, option->initial, strlen(option->initial));
        fputs(".\n", out);
    }
    if (limits[0] != '\0' && option->type != OPTION_STRING) {
        char *text;

        CHECK(asprintf(&text, "Allowed: %s.", limits) >= 0);
        man_text(out, text);
        free(text);
    }
}

static void man_rows(FILE *out, const struct settings_rows *rows)
{
    for (size_t i = 0; i < rows->count; i++) {
        if (settings_row_valued(&rows->rows[i])) {
            man_row(out, &rows->rows[i]);
        }
    }
}

void settings_print_man_yaml(FILE *out)
{
    man_head(out, "ROLLCALL.YAML", 5, "rollcall.yaml", "the configuration of rollcalld");
    fputs(".SH DESCRIPTION\n", out);
    man_text(out,
             "A YAML file with the keys below; journal.sync is sync in the mapping journal. Sizes "
             "take K M G T, 1024-based, with or without iB; times ms s min h; booleans yes and no. "
             "Flags of the daemon win over the file, the file wins over the defaults. Every space "
             "must say its kind, and one of kind counter its slots; all else may be left out.");
    fputs(".PP\n", out);
    man_text(out, "rollcalld --config FILE --check-config tells every mistake with its line; "
                  "rollcalld --print-sample prints a file with every key and its default. On "
                  "SIGHUP the file is read again; the log says what changed and what needs a "
                  "restart.");
    fputs(".SH KEYS\n", out);
    man_rows(out, &settings_top_rows);
    fputs(".SH KEYS OF A SPACE\n", out);
    man_rows(out, &settings_space_rows);
    fputs(".SH EXAMPLE\n.nf\ndata: /var/lib/rollcall\nspaces:\n"
          "  feed: {kind: counter, slots: {like: 20, read: 24}}\n"
          "  liked: {kind: phantom, deletes: yes}\n  other: {kind: plain}\n.fi\n"
          ".SH SEE ALSO\n.BR rollcalld (8),\n.BR rollcall\\-protocol (7)\n",
          out);
}

/* ---- rollcalld(8) ---- */

static void man_flag(void *context, const char *head, const char *help)
{
    man_entry(context, head + strspn(head, " "), help);
}

static void man_ignored(FILE *out)
{
    fputs(".PP\nAccepted with a warning, for old start scripts:\n", out);
    settings_flags_ignored(out);
    fputs(".\n", out);
}

static void man_signals(FILE *out)
{
    fputs(".SH SIGNALS\n", out);
    man_entry(out, "SIGHUP",
              "Reads the configuration again. A file with a mistake changes nothing; the log says "
              "what changed and what needs a restart.");
    man_entry(out, "SIGTERM, SIGINT, SIGUSR1",
              "Finish and stop; with data, after a last checkpoint.");
    man_entry(out, "SIGUSR2", "Makes a checkpoint of the data.");
}

static void man_systemd(FILE *out)
{
    fputs(".SH SERVICE MANAGER\n", out);
    man_text(out,
             "A manager that sets NOTIFY_SOCKET, such as systemd with Type=notify, is told when "
             "requests are served, how far loading is (and to wait for it), that the configuration "
             "is read again, and that the daemon stops. With WATCHDOG_USEC it hears from the "
             "daemon as long as every worker thread goes round. The log goes to stderr; in "
             "systemd's journal each line has its level.");
}

static void man_end(FILE *out)
{
    fputs(".SH DIAGNOSTICS\n", out);
    man_text(out,
             "A start that finds its data directory damaged is refused in one line that names the "
             "file. With the daemon stopped, rollcall repair DIR tells what can be had again and "
             "what is lost, and does it with --yes; rollcall verify DIR looks only.");
    fputs(".SH EXIT STATUS\n", out);
    man_entry(out, "0", "It ended as it was asked to.");
    man_entry(out, "1", "It could not start, or could not make its last checkpoint.");
    man_entry(out, "2", "A mistake in the flags or the configuration: nothing was begun.");
    fputs(".SH SEE ALSO\n.BR rollcall (1),\n.BR rollcall.yaml (5),\n.BR rollcall\\-protocol (7)\n",
          out);
}

void settings_print_man(FILE *out)
{
    man_head(out, "ROLLCALLD", 8, "rollcalld",
             "counters and existence checks of ids, over the memcached protocol");
    fputs(".SH SYNOPSIS\n.B rollcalld\n[\\fB\\-\\-config\\fR \\fIFILE\\fR] [\\fIflags\\fR]\n"
          ".SH DESCRIPTION\n",
          out);
    man_text(out,
             "rollcalld has small counters of ids, several to a record, packed in bits, and Bloom "
             "filters that know who has been where, and answers memcached clients. The keys and "
             "commands are in rollcall-protocol(7), the configuration in rollcall.yaml(5). Flags "
             "win over the file, the file over the defaults; those of memcached have their "
             "letters, long names and meaning.");
    fputs(".SH FLAGS\n", out);
    settings_flags_each(man_flag, out);
    man_ignored(out);
    man_signals(out);
    man_systemd(out);
    man_end(out);
}
