/*
 * settings_yaml.c: YAML into a draft, by libyaml's documents: they keep a mark a node, and both of
 * two equal keys. The walk goes only as deep as the table: aliases that contain themselves do no
 * harm.
 */
#include "config/settings_draft.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/check.h"
#include "base/memory.h"

struct reader {
    struct settings_draft *draft;
    yaml_document_t document;
    const struct settings_place *fixed; /* of --set; NULL: places are those of the nodes */
    const char *group;                  /* whose members are read */
};

/* Takes one key of a mapping. */
typedef void take_fn(struct reader *reader, int space, const char *key, yaml_node_t *key_node,
                     yaml_node_t *value);

static struct settings_place place_of(const struct reader *reader, const yaml_node_t *node)
{
    if (reader->fixed != NULL) {
        return *reader->fixed;
    }
    return (struct settings_place){
        .line = node->start_mark.line + 1,
        .column = node->start_mark.column + 1,
        .quoted = node->type == YAML_SCALAR_NODE &&
                  (node->data.scalar.style == YAML_SINGLE_QUOTED_SCALAR_STYLE ||
                   node->data.scalar.style == YAML_DOUBLE_QUOTED_SCALAR_STYLE),
        .given = true,
    };
}

static const char *settings_yaml_text_of(const yaml_node_t *node)
{
    return (const char *)node->data.scalar.value;
}

/* Returns whether a node is a scalar without a NUL inside. */
static bool is_text(const yaml_node_t *node)
{
    return node->type == YAML_SCALAR_NODE &&
           strlen(settings_yaml_text_of(node)) == node->data.scalar.length;
}

static bool is_null(const yaml_node_t *node)
{
    if (!is_text(node) || node->data.scalar.style != YAML_PLAIN_SCALAR_STYLE) {
        return false;
    }
    return strcmp(settings_yaml_text_of(node), "") == 0 ||
           strcmp(settings_yaml_text_of(node), "~") == 0 ||
           strcmp(settings_yaml_text_of(node), "null") == 0;
}

/* "key must be <what>, not a list"; an empty value has its own words. */
static void refuse_type(struct reader *reader, const char *key, const char *what,
                        const yaml_node_t *node)
{
    struct settings_place place = place_of(reader, node);
    if (is_null(node)) {
        settings_error(reader->draft, &place, "%s has no value: it must be %s", key, what);
    } else {
        settings_error(reader->draft, &place, "%s must be %s, not %s", key, what,
                       node->type == YAML_SEQUENCE_NODE  ? "a list"
                       : node->type == YAML_MAPPING_NODE ? "a mapping"
                                                         : "a single value");
    }
}

/* Returns whether this key was given before in the same mapping. */
static bool is_repeated(struct reader *reader, yaml_node_t *mapping, yaml_node_pair_t *pair)
{
    yaml_node_t *key = yaml_document_get_node(&reader->document, pair->key);
    struct settings_place place = place_of(reader, key);
    for (yaml_node_pair_t *first = mapping->data.mapping.pairs.start; first < pair; first++) {
        yaml_node_t *other = yaml_document_get_node(&reader->document, first->key);
        if (!is_text(other) ||
            strcmp(settings_yaml_text_of(other), settings_yaml_text_of(key)) != 0) {
            continue;
        }
        settings_error(reader->draft, &place, "key %s given twice: first in line %zu",
                       settings_yaml_text_of(key), other->start_mark.line + 1);
        return true;
    }
    return false;
}

/* Calls take for each key of a mapping that is text and not a repetition. */
static void each_key(struct reader *reader, yaml_node_t *mapping, const char *what, int space,
                     take_fn *take)
{
    yaml_node_pair_t *start = mapping->data.mapping.pairs.start;
    yaml_node_pair_t *end = mapping->data.mapping.pairs.top;
    struct settings_place place = place_of(reader, mapping);
    if (end - start > SETTINGS_KEYS_MAX) {
        settings_error(reader->draft, &place, "too many keys in %s: at most %d", what,
                       SETTINGS_KEYS_MAX);
        return;
    }
    for (yaml_node_pair_t *pair = start; pair < end; pair++) {
        yaml_node_t *key = yaml_document_get_node(&reader->document, pair->key);
        if (!is_text(key)) {
            refuse_type(reader, "a key", "text", key);
        } else if (!is_repeated(reader, mapping, pair)) {
            take(reader, space, settings_yaml_text_of(key), key,
                 yaml_document_get_node(&reader->document, pair->value));
        }
    }
}

/* ---- listen ---- */

static void settings_yaml_take_listen(struct reader *reader, yaml_node_t *value)
{
    static const char wanted[] = "a list of addresses such as [127.0.0.1:11211]";
    struct settings_place place = place_of(reader, value);
    if (value->type == YAML_MAPPING_NODE || is_null(value) ||
        (value->type == YAML_SCALAR_NODE && !is_text(value))) {
        refuse_type(reader, "listen", wanted, value);
        return;
    }
    settings_draft_listen_clear(reader->draft);
    if (value->type == YAML_SCALAR_NODE) {
        settings_draft_addresses(reader->draft, settings_yaml_text_of(value), &place);
        return;
    }
    if (value->data.sequence.items.start == value->data.sequence.items.top) {
        settings_error(reader->draft, &place, "listen is empty: it must be %s", wanted);
    }
    for (yaml_node_item_t *item = value->data.sequence.items.start;
         item < value->data.sequence.items.top; item++) {
        yaml_node_t *node = yaml_document_get_node(&reader->document, *item);
        struct settings_place at = place_of(reader, node);
        if (!is_text(node) || is_null(node)) {
            refuse_type(reader, "an address", "text", node);
        } else {
            settings_draft_listen(reader->draft, settings_yaml_text_of(node),
                                  strlen(settings_yaml_text_of(node)), &at);
        }
    }
}

/* ---- slots ---- */

static void take_slot(struct reader *reader, int space, const char *key, yaml_node_t *key_node,
                      yaml_node_t *value)
{
    struct settings_place key_place = place_of(reader, key_node);
    struct settings_place place = place_of(reader, value);
    char what[OPTIONS_QUOTE_MAX];
    if (!is_text(value) || is_null(value)) {
        refuse_type(reader, options_quote(key, what), "a number of bits", value);
    } else {
        settings_draft_slot(reader->draft, space, key, settings_yaml_text_of(value), &key_place,
                            &place);
    }
}

static void take_slots(struct reader *reader, int space, yaml_node_t *value)
{
    struct settings_place *noted =
        settings_draft_space_place(reader->draft, (size_t)space, "slots");
    struct settings_place place = place_of(reader, value);
    *noted = place;
    noted->given = true;
    if (value->type != YAML_MAPPING_NODE) {
        noted->bad = true;
        refuse_type(reader, "slots", "a mapping of names to bits such as {like: 20}", value);
        return;
    }
    reader->draft->settings->spaces[space].slot_count = 0;
    size_t errors = reader->draft->error_count;
    each_key(reader, value, "slots", space, take_slot);
    noted->bad = reader->draft->error_count > errors;
}

/* ---- forget ---- */

static void take_forget(struct reader *reader, int space, yaml_node_t *value)
{
    struct settings_place *noted =
        settings_draft_space_place(reader->draft, (size_t)space, "forget");
    *noted = place_of(reader, value);
    noted->given = true;
    if (value->type != YAML_SEQUENCE_NODE) {
        noted->bad = true;
        refuse_type(reader, "forget", "a list of names such as [like]", value);
        return;
    }
    reader->draft->settings->spaces[space].forget_count = 0;
    for (yaml_node_item_t *item = value->data.sequence.items.start;
         item < value->data.sequence.items.top; item++) {
        yaml_node_t *node = yaml_document_get_node(&reader->document, *item);
        struct settings_place at = place_of(reader, node);
        if (!is_text(node) || is_null(node)) {
            refuse_type(reader, "what to forget", "text", node);
        } else {
            settings_draft_forget(reader->draft, space, settings_yaml_text_of(node), &at);
        }
    }
}

/* ---- spaces and the top level ---- */

/* A row that is read from a single value. */
static void take_scalar(struct reader *reader, const struct settings_rows *rows, int row, int space,
                        yaml_node_t *value)
{
    struct settings_place place = place_of(reader, value);
    struct settings_place *noted =
        space < 0 ? &reader->draft->top[row] : &reader->draft->spaces[space][row];
    char limits[OPTIONS_TEXT_MAX];
    if (is_text(value) && !is_null(value)) {
        settings_draft_put(reader->draft, row, space, settings_yaml_text_of(value), &place);
        return;
    }
    *noted = place;
    noted->given = noted->bad = true;
    options_format_limits(&rows->rows[row].option, limits);
    refuse_type(reader, rows->rows[row].option.name, limits, value);
}

static void unknown_key(struct settings_draft *draft, const struct settings_place *place,
                        const struct settings_rows *rows, const char *key)
{
    settings_error_unknown(draft, place, "key", key, settings_rows_nearest(rows, key));
}

static void take_space_key(struct reader *reader, int space, const char *key, yaml_node_t *key_node,
                           yaml_node_t *value)
{
    int row = settings_rows_find(&settings_space_rows, key);
    struct settings_place place = place_of(reader, key_node);
    if (row < 0) {
        unknown_key(reader->draft, &place, &settings_space_rows, key);
    } else if (strcmp(key, "forget") == 0) {
        take_forget(reader, space, value);
    } else if (settings_space_rows.rows[row].option.type == OPTION_CUSTOM) {
        take_slots(reader, space, value);
    } else {
        take_scalar(reader, &settings_space_rows, row, space, value);
    }
}

static void settings_yaml_take_space(struct reader *reader, int unused, const char *key,
                                     yaml_node_t *key_node, yaml_node_t *value)
{
    struct settings_place place = place_of(reader, key_node);
    int space = settings_draft_space(reader->draft, key, &place);
    char what[OPTIONS_QUOTE_MAX];
    (void)unused;
    bool has_keys = value->type == YAML_MAPPING_NODE &&
                    value->data.mapping.pairs.top > value->data.mapping.pairs.start;
    if (space < 0 && has_keys) { /* they are looked at all the same */
        space = settings_draft_nameless(reader->draft, &place);
    }
    if (space < 0) {
        return;
    }
    if (value->type == YAML_MAPPING_NODE) {
        each_key(reader, value, "a space", space, take_space_key);
    } else if (!is_null(value)) { /* an empty one lacks its mandatory keys, which is said later */
        struct settings_place *kind =
            settings_draft_space_place(reader->draft, (size_t)space, "kind");
        refuse_type(reader, options_quote(key, what), "a mapping of the space's keys", value);
        kind->given = kind->bad = true; /* that is enough about this space */
    }
}

static void take_spaces(struct reader *reader, yaml_node_t *value)
{
    if (value->type == YAML_MAPPING_NODE) {
        each_key(reader, value, "spaces", -1, settings_yaml_take_space);
    } else {
        refuse_type(reader, "spaces", "a mapping of names to spaces", value);
    }
}

/* The row of a group's member, or -1. *name: what it is called in the table. */
static int find_member(const char *group, const char *key, char name[OPTIONS_NAME_MAX])
{
    snprintf(name, OPTIONS_NAME_MAX, "%s.%s", group, key);
    return settings_rows_find(&settings_top_rows, name);
}

static void take_member(struct reader *reader, int space, const char *key, yaml_node_t *key_node,
                        yaml_node_t *value)
{
    struct settings_place place = place_of(reader, key_node);
    char name[OPTIONS_NAME_MAX];
    int row = find_member(reader->group, key, name);
    if (row < 0) {
        unknown_key(reader->draft, &place, &settings_top_rows, name);
    } else {
        take_scalar(reader, &settings_top_rows, row, space, value);
    }
}

static void settings_yaml_take_group(struct reader *reader, const char *group, yaml_node_t *value)
{
    reader->group = group;
    if (value->type == YAML_MAPPING_NODE) {
        each_key(reader, value, group, -1, take_member);
    } else {
        refuse_type(reader, group, "a mapping of its keys", value);
    }
}

static void take_custom(struct reader *reader, int row, yaml_node_t *value,
                        const struct settings_place *place)
{
    struct settings_place *noted = &reader->draft->top[row];
    size_t errors = reader->draft->error_count;
    *noted = *place;
    noted->given = true;
    if ((settings_top_rows.rows[row].option.flags & ROW_GROUP) != 0) {
        settings_yaml_take_group(reader, settings_top_rows.rows[row].option.name, value);
    } else if (strcmp(settings_top_rows.rows[row].option.name, "listen") == 0) {
        settings_yaml_take_listen(reader, value);
    } else {
        take_spaces(reader, value);
    }
    noted->bad = reader->draft->error_count > errors;
}

/* A member of a group by the name that --set gives it. */
static void refuse_dotted(struct reader *reader, const char *key, const yaml_node_t *value,
                          const struct settings_place *place)
{
    size_t group = strcspn(key, ".");
    char shown[OPTIONS_QUOTE_MAX] = "...";
    if (is_text(value) && !is_null(value) && strlen(settings_yaml_text_of(value)) < sizeof(shown)) {
        strcpy(shown, settings_yaml_text_of(value));
    }
    settings_error(reader->draft, place, "%s is written so in a file: %.*s: {%s: %s}", key,
                   (int)group, key, key + group + 1, shown);
}

static void take_top_key(struct reader *reader, int space, const char *key, yaml_node_t *key_node,
                         yaml_node_t *value)
{
    bool dotted = strchr(key, '.') != NULL; /* a member's name in the table is none in a file */
    int row = settings_rows_find(&settings_top_rows, key);
    struct settings_place place = place_of(reader, key_node);
    if (dotted && row >= 0) {
        refuse_dotted(reader, key, value, &place);
    } else if (dotted) {
        settings_error_unknown(reader->draft, &place, "key", key, NULL);
    } else if (row < 0) {
        unknown_key(reader->draft, &place, &settings_top_rows, key);
    } else if (settings_top_rows.rows[row].option.type == OPTION_CUSTOM) {
        take_custom(reader, row, value, &place);
    } else {
        take_scalar(reader, &settings_top_rows, row, space, value);
    }
}

/* ---- documents ---- */

/* Returns whether a tab stands at the place, or before it with nothing but blanks between. */
static bool is_tab(const char *text, const struct settings_place *place)
{
    for (size_t line = 1; text != NULL && line < place->line; line++) {
        text = strchr(text, '\n');
        text = text != NULL ? text + 1 : NULL;
    }
    return text != NULL && text[strspn(text, " ")] == '\t';
}

static void refuse_syntax(struct reader *reader, const yaml_parser_t *parser)
{
    struct settings_place place = {.line = parser->problem_mark.line + 1,
                                   .column = parser->problem_mark.column + 1};
    const char *problem = parser->problem ? parser->problem : "out of memory";
    if (parser->error == YAML_READER_ERROR) {
        place = (struct settings_place){.line = 1, .column = 1};
        for (size_t i = 0; i < parser->problem_offset && reader->draft->file_text; i++) {
            bool line_end = reader->draft->file_text[i] == '\n';
            place.line += line_end;
            place.column = line_end ? 1 : place.column + 1;
        }
    }
    if (reader->fixed != NULL) {
        place = *reader->fixed;
    } else {
        reader->draft->unread = true;
    }
    if (reader->fixed == NULL && is_tab(reader->draft->file_text, &place)) {
        settings_error(reader->draft, &place, "a tab: YAML is indented by spaces");
        return;
    }
    settings_error(reader->draft, &place, "%s%s%s", problem, parser->context ? " " : "",
                   parser->context ? parser->context : "");
}

/* A second document is a mistake. */
static void refuse_second(struct reader *reader, yaml_parser_t *parser)
{
    yaml_document_t second;
    yaml_node_t *root;
    if (!yaml_parser_load(parser, &second)) {
        refuse_syntax(reader, parser);
        return;
    }
    root = yaml_document_get_root_node(&second);
    if (root != NULL) {
        struct settings_place place = place_of(reader, root);
        settings_error(reader->draft, &place, "a second document: there must be one");
    }
    yaml_document_delete(&second);
}

/* Loads the document of text. False: a mistake was added, or there is nothing in it. */
static bool load_document(struct reader *reader, yaml_parser_t *parser, const char *text,
                          size_t length)
{
    yaml_parser_set_encoding(parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(parser, (const unsigned char *)text, length);
    if (!yaml_parser_load(parser, &reader->document)) {
        refuse_syntax(reader, parser);
        return false;
    }
    if (yaml_document_get_root_node(&reader->document) != NULL) {
        refuse_second(reader, parser);
        return true;
    }
    if (reader->fixed != NULL) {
        settings_error(reader->draft, reader->fixed, "has no value");
    }
    yaml_document_delete(&reader->document);
    return false;
}

/* Reads one document and hands its root to `take` as the value of `key`. */
static void read_text(struct settings_draft *draft, const struct settings_place *fixed,
                      const char *text, size_t length, int space, const char *key, take_fn *take)
{
    struct reader reader = {.draft = draft, .fixed = fixed};
    yaml_parser_t parser;
    CHECK(yaml_parser_initialize(&parser));
    if (load_document(&reader, &parser, text, length)) {
        yaml_node_t *root = yaml_document_get_root_node(&reader.document);
        take(&reader, space, key, root, root);
        yaml_document_delete(&reader.document);
    }
    yaml_parser_delete(&parser);
}

static void take_root(struct reader *reader, int space, const char *key, yaml_node_t *key_node,
                      yaml_node_t *value)
{
    (void)key;
    (void)key_node;
    if (value->type == YAML_MAPPING_NODE) {
        each_key(reader, value, "the file", space, take_top_key);
    } else {
        refuse_type(reader, "the file", "a mapping of keys to values", value);
    }
    reader->draft->unread |= value->type != YAML_MAPPING_NODE;
}

void settings_yaml_read(struct settings_draft *draft, const char *file_name)
{
    size_t length = 0;
    bool built_in = file_name == NULL;
    draft->file_name = built_in ? "the built-in configuration" : file_name;
    draft->file_text =
        built_in ? settings_built_in_text(&length) : settings_file_text(draft, file_name, &length);
    draft->unread = draft->file_text == NULL;
    if (!draft->unread) {
        read_text(draft, NULL, draft->file_text, length, -1, "", take_root);
    }
}

/* ---- --set ---- */

/* One path of --set, cut at its dots. */
#define SET_PARTS_MAX 4 /* spaces.<space>.slots.<slot> */
struct assignment {
    char *path;
    char *parts[SET_PARTS_MAX];
    size_t count;
    const char *value;
    struct settings_place place;
};

static bool settings_yaml_cut(struct assignment *assignment)
{
    char *rest = assignment->path;
    while (rest != NULL && assignment->count < SET_PARTS_MAX) {
        assignment->parts[assignment->count++] = strsep(&rest, ".");
    }
    return rest == NULL;
}

static void set_top(struct settings_draft *draft, struct assignment *to)
{
    const char *key = to->parts[0];
    int row = settings_rows_find(&settings_top_rows, key);
    if (row >= 0 && settings_top_rows.rows[row].option.type != OPTION_CUSTOM) {
        settings_draft_put(draft, row, -1, to->value, &to->place);
    } else if (strcmp(key, "listen") == 0 && *to->value != '[') {
        settings_draft_listen_clear(draft);
        settings_draft_addresses(draft, to->value, &to->place);
    } else {
        read_text(draft, &to->place, to->value, strlen(to->value), -1, key, take_top_key);
    }
}

static void set_space(struct settings_draft *draft, struct assignment *to, int space)
{
    const char *key = to->parts[2];
    int row = settings_rows_find(&settings_space_rows, key);
    if (row >= 0 && settings_space_rows.rows[row].option.type != OPTION_CUSTOM) {
        settings_draft_put(draft, row, space, to->value, &to->place);
    } else {
        read_text(draft, &to->place, to->value, strlen(to->value), space, key, take_space_key);
    }
}

static bool is_group(const char *key)
{
    int row = settings_rows_find(&settings_top_rows, key);

    return row >= 0 && (settings_top_rows.rows[row].option.flags & ROW_GROUP) != 0;
}

static void set_member(struct settings_draft *draft, struct assignment *to)
{
    char name[OPTIONS_NAME_MAX];
    int row = find_member(to->parts[0], to->parts[1], name);

    if (row < 0) {
        unknown_key(draft, &to->place, &settings_top_rows, name);
    } else {
        settings_draft_put(draft, row, -1, to->value, &to->place);
    }
}

static void set_of_space(struct settings_draft *draft, struct assignment *to)
{
    int space = settings_draft_space(draft, to->parts[1], &to->place);

    if (space < 0) {
        return;
    }
    if (to->count == 2) {
        read_text(draft, &to->place, to->value, strlen(to->value), -1, to->parts[1],
                  settings_yaml_take_space);
    } else if (to->count == 3) {
        set_space(draft, to, space);
    } else if (strcmp(to->parts[2], "slots") == 0) {
        settings_draft_slot(draft, space, to->parts[3], to->value, &to->place, &to->place);
    } else {
        settings_error(draft, &to->place, "no such key: only slots have keys below them");
    }
}

static void set_path(struct settings_draft *draft, struct assignment *to)
{
    if (to->count == 1) {
        set_top(draft, to);
    } else if (strcmp(to->parts[0], "spaces") == 0) {
        set_of_space(draft, to);
    } else if (to->count == 2 && is_group(to->parts[0])) {
        set_member(draft, to);
    } else {
        settings_error(draft, &to->place, "no such key: only spaces have keys below them");
    }
}

void settings_yaml_set(struct settings_draft *draft, const char *assignment)
{
    size_t length = strcspn(assignment, "=");
    struct assignment to = {.path = memory_strndup(assignment, length),
                            .place = {.flag = "--set", .argument = assignment, .given = true}};

    if (assignment[length] != '=') {
        settings_error(draft, &to.place, "must be KEY=VALUE, such as memory=1GiB");
    } else {
        to.value = assignment + length + 1;
        if (settings_yaml_cut(&to)) {
            set_path(draft, &to);
        } else {
            settings_error(draft, &to.place, "no such key: too many parts");
        }
    }
    free(to.path);
}
