/*
 * settings_draft.h: a configuration in the making; private to settings*.c.
 *
 * A draft is a struct settings together with where each value came from and the mistakes found so
 * far. Readers (settings_yaml.c, settings_flags.c) put text into it by row; settings_check.c then
 * looks at the whole, completes what was left to the program and adds its own mistakes; at the end
 * settings_errors.c prints all of them in the order of the file. No reader stops at a mistake.
 *
 * One thread at a time.
 */
#ifndef ROLLCALL_CONFIG_SETTINGS_DRAFT_H
#define ROLLCALL_CONFIG_SETTINGS_DRAFT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/options.h"
#include "config/settings.h"

/* A worker's read buffer, batch of operations with their values, and stack in use. */
#define SETTINGS_WORKER_BYTES (1ull << 20)
/* What the admin listener holds at most: figures, their history, answers on their way. */
#define SETTINGS_ADMIN_BYTES (16ull << 20)

#define SETTINGS_ROWS_MAX       64
#define SETTINGS_FILE_BYTES_MAX (1u << 20)
#define SETTINGS_KEYS_MAX       256 /* keys of one mapping */
#define SETTINGS_PORT_DEFAULT   "11211"
#define SETTINGS_ADMIN_PORT     "11280"
#define SETTINGS_THREADS_MAX    64
#define SETTINGS_ITEM_BYTES_MAX 4096 /* of a value on the wire, as protocol.md says */

/* ---- the table ---- */

/* Flags of a row, beside those of base/options.h (which take the low bits). */
#define ROW_RELOADABLE (1u << 8)  /* SIGHUP may change it */
#define ROW_MANDATORY  (1u << 9)  /* of a space: has no default */
#define ROW_ANY_ONLY   (1u << 11) /* holds only with ids: any */
#define ROW_GROWING    (1u << 12) /* holds only with ids: growing */
#define ROW_NEXT_TABLE                                                                             \
    (1u << 13)                    /* SIGHUP may change it where ids grow: from the next table on   \
                                   */
#define ROW_NEW_TABLE  (1u << 14) /* reloadable; where ids grow, a table is opened for it */
#define ROW_STORE_ONLY (1u << 16) /* holds only with role: store */
#define ROW_GROUP      (1u << 15) /* a mapping of the rows whose names are its own, a dot, a key */

#define KIND_COUNTER (1u << SPACE_COUNTER)
#define KIND_PHANTOM (1u << SPACE_PHANTOM)
#define KIND_PLAIN   (1u << SPACE_PLAIN)
#define KIND_ID      (KIND_COUNTER | KIND_PHANTOM)
#define KIND_ALL     (KIND_ID | KIND_PLAIN)

struct settings_row {
    struct option_row option; /* its name is the key; CUSTOM ones are read by settings_yaml.c */
    unsigned kinds;           /* of a space: KIND_ bits it holds for */
    const char *sample;       /* what the sample file shows where that is not the default */
};

/* Rows of the top level and of a space, in the order they are shown. */
struct settings_rows {
    const struct settings_row *rows;
    size_t count;
};
extern const struct settings_rows settings_top_rows;
extern const struct settings_rows settings_space_rows;
extern const char settings_sample_space[]; /* name of the built-in space */

/* The number of the row called `name`, or -1. */
int settings_rows_find(const struct settings_rows *rows, const char *name);
/* Returns a name to suggest for a wrong one, or NULL; rows of later versions are not suggested. */
const char *settings_rows_nearest(const struct settings_rows *rows, const char *wrong);
/* Sets all fields that have a default. */
void settings_rows_initial(const struct settings_rows *rows, void *object);
/* Returns whether a row means anything for this space (its kind and ids). */
bool settings_row_applies(const struct settings_row *row, const struct space_settings *space);
/* Returns whether a space that runs with `now` can take the row's value from `next`, which has its
 * name. */
bool settings_row_reloads(const struct settings_row *row, const struct space_settings *now,
                          const struct space_settings *next);
/* Returns whether the row has a value, so is no group. */
bool settings_row_valued(const struct settings_row *row);
/* Its key in a file: of a group's member what follows the dot. */
const char *settings_row_key(const struct settings_row *row);

/* ---- the draft ---- */

/* Where a value came from. All zero: nowhere, it is the default. */
struct settings_place {
    size_t line, column;  /* in the file, from 1; 0: not of the file */
    const char *flag;     /* "-p", "--set": not of the file */
    const char *argument; /* of --set: what followed it; else NULL. Lives as long as argv */
    bool quoted;          /* in the file, in quotes: its text begins one column further right */
    bool given;
    bool bad; /* what was given was refused: the value is still the default */
};

struct settings_mistake {
    struct settings_place place;
    char *text;
    char *note; /* printed below the caret, or NULL */
    bool warning;
};

struct settings_draft {
    struct settings *settings;
    const char *file_name; /* NULL: no file was read */
    char *file_text;       /* all of it, NUL-terminated, or NULL */
    bool unread;           /* the file could not be read as a whole: what is missing says nothing */
    struct settings_place top[SETTINGS_ROWS_MAX];
    struct settings_place listen[SETTINGS_LISTEN_MAX];
    struct settings_place space_names[SETTINGS_SPACES_MAX];
    struct settings_place spaces[SETTINGS_SPACES_MAX][SETTINGS_ROWS_MAX];
    char *port;         /* -p, or NULL */
    bool port_replaces; /* -p without -l: it replaces the ports of the file */
    bool spaces_full;   /* said once that there are too many */
    struct settings_mistake *mistakes;
    size_t mistake_count, mistake_room;
    size_t error_count; /* mistakes that are not warnings */
};

struct settings_draft *settings_draft_create(void);
void settings_draft_destroy(struct settings_draft *draft); /* NULL: no-op */
/* Hands the settings to the caller, which destroys them. */
struct settings *settings_draft_take(struct settings_draft *draft);

/*
 * Reads text by the row into the top level (space < 0) or a space, and notes the place. A mistake
 * is added to the draft; the value then stays as it was. Not for CUSTOM rows.
 */
void settings_draft_put(struct settings_draft *draft, int row, int space, const char *text,
                        const struct settings_place *place);
/* The place of a row of the top level by its name. The name must be one. */
struct settings_place *settings_draft_place(struct settings_draft *draft, const char *name);
struct settings_place *settings_draft_space_place(struct settings_draft *draft, size_t space,
                                                  const char *name);
/* The number of the space called name, made if it is new; -1 with a mistake if it cannot be. */
int settings_draft_space(struct settings_draft *draft, const char *name,
                         const struct settings_place *place);
/* Adds a space whose name was refused, so that its keys can be read. -1: there is no room for it.
 */
int settings_draft_nameless(struct settings_draft *draft, const struct settings_place *place);
/* Adds an address, or a mistake if there are too many. The first address of a source empties the
 * list. */
void settings_draft_listen_clear(struct settings_draft *draft);
void settings_draft_listen(struct settings_draft *draft, const char *address, size_t length,
                           const struct settings_place *place);
/* Adds each of several addresses with commas between them. */
void settings_draft_addresses(struct settings_draft *draft, const char *text,
                              const struct settings_place *place);
/* Sets the bits of a slot of a space, which is made if it is new. */
void settings_draft_slot(struct settings_draft *draft, int space_number, const char *name,
                         const char *bits, const struct settings_place *name_place,
                         const struct settings_place *bits_place);
/* Adds a name to what a space may forget. */
void settings_draft_forget(struct settings_draft *draft, int space, const char *name,
                           const struct settings_place *place);

/* ---- mistakes (settings_errors.c) ---- */

__attribute__((format(printf, 3, 4))) void settings_error(struct settings_draft *draft,
                                                          const struct settings_place *place,
                                                          const char *format, ...);
__attribute__((format(printf, 3, 4))) void settings_warning(struct settings_draft *draft,
                                                            const struct settings_place *place,
                                                            const char *format, ...);
/* A note for the last mistake: lines printed below it. Takes the malloc'd text. */
void settings_error_note(struct settings_draft *draft, char *note);
/* "unknown <what> 'wrong'; did you mean 'nearest'?" */
void settings_error_unknown(struct settings_draft *draft, const struct settings_place *place,
                            const char *what, const char *wrong, const char *nearest);
/* Prints all of them, those of the file in its order. */
void settings_errors_print(struct settings_draft *draft, FILE *err);
void settings_errors_clear(struct settings_draft *draft);

/* ---- readers ---- */

/* The bytes of what --print-sample prints; the caller's to free. */
char *settings_built_in_text(size_t *length);
/* The whole file, NUL-terminated, the caller's to free; NULL with a mistake. */
char *settings_file_text(struct settings_draft *draft, const char *name, size_t *length);
/* Reads the file, or what --print-sample prints when file_name is NULL. */
void settings_yaml_read(struct settings_draft *draft, const char *file_name);
/* --set: `assignment` is KEY=VALUE and outlives the draft. */
void settings_yaml_set(struct settings_draft *draft, const char *assignment);

/* What the flags ask for besides settings. */
enum settings_wish {
    WISH_RUN,
    WISH_USAGE,
    WISH_HELP,
    WISH_VERSION,
    WISH_LICENSE,
    WISH_CHECK_CONFIG,
    WISH_PRINT_CONFIG,
    WISH_PRINT_SAMPLE,
    WISH_PRINT_MAN,
    WISH_PRINT_MAN_YAML,
};
/* Reads flags, the file they name, --set, flags, in this order of rising precedence. */
enum settings_wish settings_flags_read(struct settings_draft *draft, int argc, char **argv);
/* Calls emit for each flag that means something: head is "  -p, --port=PORT", blanks in front. */
typedef void settings_flag_fn(void *context, const char *head, const char *help);
void settings_flags_each(settings_flag_fn *emit, void *context);
/* Prints the others: "-f, -n". */
void settings_flags_ignored(FILE *out);

/* ---- the whole (settings_check.c, settings_address.c) ---- */

/* Completes and checks everything; adds mistakes. */
void settings_check(struct settings_draft *draft);
/* Gives every listen address its port and its one spelling. */
void settings_address_check(struct settings_draft *draft);
/* Likewise `admin`. */
void settings_address_check_admin(struct settings_draft *draft);
/* Reads what the keys of tls name, if it is enabled. settings_tls.c */
void settings_tls_check(struct settings_draft *draft);

/* ---- the kind of a space (settings_kind.c) ---- */

struct forecast;

/* False with `error`: its engine does not take it. */
bool settings_kind_valid(const struct space_settings *space, uint32_t number,
                         char error[COUNTER_ERROR_MAX]);
/* Fills what its engine says, and the room for late ids that it has at first. */
void settings_kind_forecast(const struct space_settings *space, uint32_t number,
                            struct forecast *forecast);
/* Checks the keys of replication as a whole, and reads its user. Called after tls and data. In
 * settings_replication.c. */
void settings_replication_check(struct settings_draft *draft);
/* The spelling of a TCP address to connect to, malloc'd; of a path that itself. NULL with a
 * mistake.
 */
char *settings_address_remote(struct settings_draft *draft, const char *text, const char *name,
                              const struct settings_place *place);
/* Returns whether every client of an address with TLS must show a good certificate. */
bool settings_tls_verifies(const struct settings *settings);

/* ---- printing (settings_print.c) ---- */

void settings_print_usage(FILE *out); /* -h: one screen */
void settings_print_help(FILE *out);
void settings_print_version(FILE *out);
void settings_print_license(FILE *out);
void settings_print_config(const struct settings *settings, FILE *out);
void settings_print_sample(FILE *out);
void settings_print_man(FILE *out);      /* settings_man.c: rollcalld(8) */
void settings_print_man_yaml(FILE *out); /* rollcall.yaml(5) */
/* Text of a row's value, CUSTOM ones too. For STRING and addresses: in double quotes if `quoted`.
 */
char *settings_print_value(const struct settings *settings, const struct space_settings *space,
                           const struct settings_row *row, bool quoted); /* caller frees */

#endif
