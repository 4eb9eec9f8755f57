/* settings_print.c: the table as help, as sample file, and a configuration as a file. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "config/settings_draft.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

#define FLAG_COLUMN   30
#define HELP_COLUMN   28
#define SAMPLE_COLUMN 96 /* comments of the sample file are broken before it */
#define SPACE_INDENT  "    "
#define MEMBER_INDENT "  " /* of a group's members */

/* ---- values ---- */

/* In double quotes, as YAML reads them. */
static void print_quoted(FILE *out, const char *text)
{
    putc('"', out);
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\') {
            putc('\\', out);
        }
        putc(*text, out);
    }
    putc('"', out);
}

static void print_listen(const struct settings *settings, bool quoted, FILE *out)
{
    putc('[', out);
    for (size_t i = 0; i < settings->listen_count; i++) {
        fputs(i == 0 ? "" : ", ", out);
        if (quoted) {
            print_quoted(out, settings->listen[i]);
        } else {
            fputs(settings->listen[i], out);
        }
    }
    putc(']', out);
}

/* A slot's name may be a word or number of YAML: in quotes it is read as text. Else without blanks,
 * so that a client's stats keep it whole. */
static void print_slots(const struct space_settings *space, bool quoted, FILE *out)
{
    putc('{', out);
    for (size_t i = 0; i < space->slot_count; i++) {
        fprintf(out, quoted ? "%s\"%s\": %u" : "%s%s:%u",
                i == 0   ? ""
                : quoted ? ", "
                         : ",",
                space->slots[i].name, space->slots[i].bits);
    }
    putc('}', out);
}

static void print_forget(const struct space_settings *space, bool quoted, FILE *out)
{
    putc('[', out);
    for (size_t i = 0; i < space->forget_count; i++) {
        fprintf(out, quoted ? "%s\"%s\"" : "%s%s",
                i == 0   ? ""
                : quoted ? ", "
                         : ",",
                space->forget[i]);
    }
    putc(']', out);
}

static void print_option(const struct option_row *option, const void *object, bool quoted,
                         FILE *out)
{
    struct option_value value;
    char text[OPTIONS_TEXT_MAX];

    options_load(option, object, &value);
    options_format(option, &value, text);
    if (quoted && option->type == OPTION_STRING) {
        print_quoted(out, text);
    } else {
        fputs(text, out);
    }
}

char *settings_print_value(const struct settings *settings, const struct space_settings *space,
                           const struct settings_row *row, bool quoted)
{
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);

    CHECK(out != NULL);
    if (row->option.type != OPTION_CUSTOM) {
        print_option(&row->option, space ? (const void *)space : settings, quoted, out);
    } else if (strcmp(row->option.name, "listen") == 0) {
        print_listen(settings, quoted, out);
    } else if (strcmp(row->option.name, "slots") == 0) {
        print_slots(space, quoted, out);
    } else if (strcmp(row->option.name, "forget") == 0) {
        print_forget(space, quoted, out);
    }
    CHECK(fclose(out) == 0);
    return text;
}

/* ---- --print-config ---- */

static bool is_member(const struct settings_row *row)
{
    return settings_row_key(row) != row->option.name;
}

static void print_row(const struct settings *settings, const struct space_settings *space,
                      const struct settings_row *row, FILE *out)
{
    char *text = settings_print_value(settings, space, row, true);
    bool unset = strcmp(text, "\"\"") == 0; /* text without default: it has no spelling */
    const char *indent = space != NULL ? SPACE_INDENT : is_member(row) ? MEMBER_INDENT : "";

    if ((row->option.flags & ROW_GROUP) != 0) {
        fprintf(out, "%s:\n", row->option.name);
    } else if (!unset) {
        fprintf(out, "%s%s: %s\n", indent, settings_row_key(row), text);
    }
    free(text);
}

void settings_print_config(const struct settings *settings, FILE *out)
{
    for (size_t i = 0; i < settings_top_rows.count; i++) {
        const struct settings_row *row = &settings_top_rows.rows[i];
        if (strcmp(row->option.name, "spaces") != 0) {
            print_row(settings, NULL, row, out);
        }
    }
    fputs("spaces:\n", out);
    for (size_t i = 0; i < settings->space_count; i++) {
        const struct space_settings *space = &settings->spaces[i];
        fprintf(out, "  \"%s\":\n", space->name);
        for (size_t j = 0; j < settings_space_rows.count; j++) {
            const struct settings_row *row = &settings_space_rows.rows[j];
            if (settings_row_applies(row, space)) {
                print_row(settings, space, row, out);
            }
        }
    }
}

/* ---- wrapped text ---- */

/* Prints text in lines that begin with `lead` and end before `column`; the first lead is the
 * caller's. */
static void print_wrapped(FILE *out, const char *text, const char *lead, size_t column)
{
    size_t at = strlen(lead);

    while (*text != '\0') {
        size_t word = strcspn(text, " ");
        if (at > strlen(lead) && at + 1 + word > column) {
            fprintf(out, "\n%s", lead);
            at = strlen(lead);
        }
        at += (size_t)fprintf(out, "%s%.*s", at > strlen(lead) ? " " : "", (int)word, text);
        text += word;
        text += *text == ' ';
    }
    putc('\n', out);
}

/* What a row means, with what it allows in brackets; the caller frees. */
static char *help_text(const struct settings_row *row)
{
    char limits[OPTIONS_TEXT_MAX], *text;

    options_format_limits(&row->option, limits);
    if (row->option.type == OPTION_STRING || *limits == '\0') {
        CHECK(asprintf(&text, "%s", row->option.help) >= 0);
    } else {
        CHECK(asprintf(&text, "%s (%s)", row->option.help, limits) >= 0);
    }
    return text;
}

/* ---- --print-sample ---- */

static const char sample_head[] =
    "# The configuration of rollcalld: every key there is, with its default after a '#'.\n"
    "# This file is made by rollcalld --print-sample and is what the daemon uses without "
    "--config.\n"
    "# Sizes take K M G T, 1024-based, with or without iB; times ms s min h; booleans yes and no.\n"
    "# rollcalld --config FILE --check-config tells all mistakes at once.\n";

/* What it means, in lines that begin with `indent` and "# ". */
static void sample_help(const struct settings_row *row, const char *indent, FILE *out)
{
    char lead[32], *text = help_text(row);

    snprintf(lead, sizeof(lead), "%s# ", indent);
    fputs(lead, out);
    print_wrapped(out, text, lead, SAMPLE_COLUMN);
    free(text);
}

/* The key with its value; of a group nothing follows in the line. */
static void sample_value(const struct settings_row *row, const char *indent, FILE *out)
{
    const char *value = row->sample ? row->sample : row->option.initial;

    fprintf(out, "%s%s:", indent, settings_row_key(row));
    if ((row->option.flags & ROW_GROUP) == 0) {
        putc(' ', out);
    }
    if (row->option.type == OPTION_STRING) {
        print_quoted(out, value);
    } else if (value != NULL) {
        fputs(value, out);
    }
    putc('\n', out);
}

/* After '#' stands what holds without its line: a default, or nothing. */
static void sample_row(const struct settings_row *row, const char *indent, FILE *out)
{
    bool departs = row->sample != NULL && row->option.initial != NULL;
    bool mandatory = (row->option.flags & ROW_MANDATORY) != 0;
    char commented[32];

    snprintf(commented, sizeof(commented), "%s%s", indent, mandatory || departs ? "" : "# ");
    putc('\n', out);
    sample_help(row, indent, out);
    sample_value(row, commented, out);
}

/* Prints a key of a group, which stands after '#' as a whole. */
static void sample_member(const struct settings_row *row, FILE *out)
{
    sample_help(row, "# " MEMBER_INDENT, out);
    sample_value(row, "# " MEMBER_INDENT, out);
}

/* The space of all other keys, so that a first `set foo bar` works. */
static void sample_plain(FILE *out)
{
    fputs("\n  # All other keys: a general cache beside the counters, as memcached is one.\n"
          "  other:\n"
          "    kind: plain\n",
          out);
    for (size_t i = 0; i < settings_space_rows.count; i++) {
        const struct settings_row *row = &settings_space_rows.rows[i];

        if (row->kinds == KIND_PLAIN) {
            sample_row(row, SPACE_INDENT, out);
        }
    }
}

/* A space of existence keys: the keys it has of its own, in the same order. */
static void sample_phantom(FILE *out)
{
    fputs("\n  # Whether a member has been at an id: liked:123:u9. Its other keys are those of "
          "feed.\n"
          "  liked:\n"
          "    kind: phantom\n"
          "    # key: \"liked:{id}:{member}\"\n",
          out);
    for (size_t i = 0; i < settings_space_rows.count; i++) {
        const struct settings_row *row = &settings_space_rows.rows[i];

        if (row->kinds == KIND_PHANTOM) {
            sample_row(row, SPACE_INDENT, out);
        }
    }
}

void settings_print_sample(FILE *out)
{
    fputs(sample_head, out);
    for (size_t i = 0; i < settings_top_rows.count; i++) {
        const struct settings_row *row = &settings_top_rows.rows[i];
        if ((row->option.flags & ROW_MANDATORY) != 0) {
            continue;
        }
        if (is_member(row)) {
            sample_member(row, out);
        } else {
            sample_row(row, "", out);
        }
    }
    fputs("\n# ", out);
    print_wrapped(out, settings_top_rows.rows[settings_top_rows.count - 1].option.help, "# ",
                  SAMPLE_COLUMN);
    fprintf(out, "spaces:\n  %s:", settings_sample_space);
    for (size_t i = 0; i < settings_space_rows.count; i++) {
        const struct settings_row *row = &settings_space_rows.rows[i];
        if ((row->kinds & KIND_COUNTER) != 0) {
            sample_row(row, SPACE_INDENT, out);
        }
    }
    sample_phantom(out);
    sample_plain(out);
}

/* ---- --help ---- */

static void help_row(const struct settings_row *row, FILE *out)
{
    static const char lead[] = "                            "; /* HELP_COLUMN blanks */
    const struct option_row *option = &row->option;
    char *text = help_text(row);

    _Static_assert(sizeof(lead) == HELP_COLUMN + 1, "lead: HELP_COLUMN blanks");
    fprintf(out, "  %-*s", HELP_COLUMN - 2, option->name);
    print_wrapped(out, text, lead, SAMPLE_COLUMN);
    if (option->initial != NULL) {
        fprintf(out, "%sDefault: %s\n", lead, option->initial);
    }
    free(text);
}

static void help_rows(const struct settings_rows *rows, FILE *out)
{
    for (size_t i = 0; i < rows->count; i++) {
        if (settings_row_valued(&rows->rows[i])) {
            help_row(&rows->rows[i], out);
        }
    }
}

static void help_flag(void *context, const char *head, const char *help)
{
    FILE *out = context;

    if (strlen(head) < FLAG_COLUMN) {
        fprintf(out, "%-*s%s\n", FLAG_COLUMN, head, help);
    } else {
        fprintf(out, "%s\n%*s%s\n", head, FLAG_COLUMN, "", help);
    }
}

static void help_flags(FILE *out)
{
    settings_flags_each(help_flag, out);
    fputs("  Accepted with a warning, for old start scripts: ", out);
    settings_flags_ignored(out);
    putc('\n', out);
}

void settings_print_usage(FILE *out)
{
    fputs("Usage: rollcalld [--config FILE] [flags]\n"
          "Keeps small counters of ids, and who has been there, for memcached clients.\n"
          "\n"
          "  --config FILE      read this configuration; --check-config: is it good?\n"
          "  --set KEY=VALUE    change a key of it, e.g. spaces.feed.table-size=1GiB\n"
          "  -l, -p, -s         addresses, the port (11211), or a unix socket to listen on\n"
          "  -m MIB             memory; without --config it also sizes the built-in spaces\n"
          "  -c N, -t N         connections at one time; worker threads\n"
          "  -u NAME            become this user, when root\n"
          "  -d, -P FILE        go to the background; write the process id to a file\n"
          "  -Y FILE, -Z        users with their passwords; TLS\n"
          "  -v, -vv, -vvv      log more; commands and answers; what connections do\n"
          "  -V, -h             print the version; print this\n"
          "\n"
          "rollcalld --help has every flag and every key of the configuration. The flags of\n"
          "memcached keep their letters and their meaning.\n"
          "Exit status: 0 done, 1 failed, 2 a mistake in the flags or the configuration.\n",
          out);
}

void settings_print_help(FILE *out)
{
    fputs("Usage: rollcalld [--config FILE] [flags]\n"
          "Keeps small counters of ids, and who has been there, and speaks the memcached\n"
          "protocol. Flags win over the file; those of memcached keep their letters, long names\n"
          "and meaning.\n\n"
          "Flags:\n",
          out);
    help_flags(out);
    fputs("\nKeys of the configuration file (YAML: journal.sync is sync in the mapping journal), "
          "and of\n--set:\n",
          out);
    help_rows(&settings_top_rows, out);
    fputs("\nKeys of a space (--set spaces.<name>.<key>=<value>):\n", out);
    help_rows(&settings_space_rows, out);
}

void settings_print_version(FILE *out)
{
    fputs("rollcalld " PACKAGE_VERSION "\n", out);
}

void settings_print_license(FILE *out)
{
    fputs(
        "rollcalld " PACKAGE_VERSION "\n\n"
        "Licensed under the Apache License, Version 2.0 (the \"License\"); you may not use this\n"
        "program except in compliance with the License. You may obtain a copy of it at\n\n"
        "    http://www.apache.org/licenses/LICENSE-2.0\n\n"
        "Unless required by applicable law or agreed to in writing, software distributed under\n"
        "the License is distributed on an \"AS IS\" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF\n"
        "ANY KIND, either express or implied. See the License for the specific language governing\n"
        "permissions and limitations under the License.\n",
        out);
}
