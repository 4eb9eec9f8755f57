/* settings_man.c: the manual page, from the same rows as --help. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "config/settings_draft.h"

#include <stdlib.h>
#include <string.h>

/* Text of a line or more as roff: no line begins with a control character, no '\' or '-' is lost.
 */
static void print_roff(FILE *out, const char *text, size_t length)
{
    bool begins = true;
    for (size_t i = 0; i < length; i++) {
        if (begins && (text[i] == '.' || text[i] == '\'')) {
            fputs("\\&", out);
        }
        if (text[i] == '\\' || text[i] == '-') {
            putc('\\', out);
        }
        if (text[i] == '\\') {
            putc('e', out);
        } else {
            putc(text[i], out);
        }
        begins = text[i] == '\n';
    }
}

static void print_text(FILE *out, const char *text)
{
    print_roff(out, text, strlen(text));
    putc('\n', out);
}

static void print_rows(FILE *out, const struct settings_rows *rows)
{
    for (size_t i = 0; i < rows->count; i++) {
        const struct option_row *option = &rows->rows[i].option;
        char limits[OPTIONS_TEXT_MAX];
        if (!settings_row_valued(&rows->rows[i])) {
            continue;
        }
        options_format_limits(option, limits);
        fprintf(out, ".TP\n.B %s\n", option->name);
        print_text(out, option->help);
        if (option->initial != NULL) {
            fprintf(out, "Default: %s.\n", option->initial[0] ? option->initial : "none");
        }
        if (limits[0] != '\0' && option->type != OPTION_STRING) {
            fprintf(out, "Allowed: %s.\n", limits);
        }
    }
}

static void print_flags(FILE *out)
{
    char *text = NULL;
    size_t length;
    FILE *memory = open_memstream(&text, &length);
    if (memory == NULL) {
        return;
    }
    settings_flags_help(memory);
    fclose(memory);
    fputs(".nf\n", out);
    print_roff(out, text, length);
    fputs(".fi\n", out);
    free(text);
}

void settings_print_man(FILE *out)
{
    fputs(".TH ROLLCALLD 8 \"\" \"rollcall " PACKAGE_VERSION "\"\n"
          ".SH NAME\nrollcalld \\- counters and existence checks behind ids, over the memcached "
          "protocol\n"
          ".SH SYNOPSIS\n.B rollcalld\n[\\fB\\-\\-config\\fR \\fIFILE\\fR] [\\fIflags\\fR]\n"
          ".SH DESCRIPTION\n",
          out);
    print_text(out,
               "rollcalld keeps small counters behind ids, several to a record, packed in bits, "
               "and Bloom filters that know who has been where, and "
               "answers memcached clients. Flags win over the file, the file over the defaults.");
    fputs(".SH FLAGS\n", out);
    print_flags(out);
    fputs(".SH CONFIGURATION\nA YAML file with these keys; journal.sync is sync in the mapping "
          "journal:\n",
          out);
    print_rows(out, &settings_top_rows);
    fputs(".SS Keys of a space\n", out);
    print_rows(out, &settings_space_rows);
    fputs(".SH SIGNALS\n"
          ".TP\n.B SIGHUP\n",
          out);
    print_text(out,
               "Reads the configuration again. A file with a mistake changes nothing; what needs a "
               "restart is named in the log.");
    fputs(".TP\n.B SIGTERM, SIGINT, SIGUSR1\n", out);
    print_text(out, "Finish and stop; with data, after a last checkpoint.");
    fputs(".TP\n.B SIGUSR2\n", out);
    print_text(out, "Makes a checkpoint of the data.");
    fputs(".SH DIAGNOSTICS\nA start that finds its data directory damaged is refused in one line "
          "that "
          "names the file. With the daemon stopped,\n.B rollcall repair DIR\ntells what can be had "
          "again and what is lost, and does it with \\-\\-yes;\n.B rollcall verify DIR\nlooks "
          "only.\n",
          out);
    fputs(".SH EXIT STATUS\n.TP\n.B 0\n", out);
    print_text(out, "It ended as it was asked to.");
    fputs(".TP\n.B 1\n", out);
    print_text(out, "It could not start, or could not make its last checkpoint.");
    fputs(".TP\n.B 2\n", out);
    print_text(out, "A mistake in the flags or the configuration: nothing was begun.");
    fputs(".SH SEE ALSO\n.BR memcached (1)\n", out);
}
