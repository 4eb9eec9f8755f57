/* settings_table_spaces.c: every option of a space, once. */
#include "config/settings_draft.h"

#include "row/row.h"

#define AT(member)                                                                                 \
    .offset = offsetof(struct space_settings, member),                                             \
    .bytes = sizeof(((struct space_settings *)0)->member)
#define NUMBER(member, least, most) .type = OPTION_NUMBER, AT(member), .min = (least), .max = (most)
#define SIZE(member, least, most)   .type = OPTION_SIZE, AT(member), .min = (least), .max = (most)
#define TEXT(member, least, most)   .type = OPTION_STRING, AT(member), .min = (least), .max = (most)
#define WORD(member, list)          .type = OPTION_WORD, AT(member), .words = (list)
#define YES_NO(member)              .type = OPTION_BOOL, AT(member)
#define LENGTH(array)               (sizeof(array) / sizeof((array)[0]))

static const char *const ids_words[] = {"growing", "any", NULL};
static const char *const role_words[] = {"store", "cache", NULL};
static const char *const empty_words[] = {"keep", "clear", NULL};
static const char *const similar_words[] = {"refuse", "allow", NULL};
static const char *const oldest_words[] = {"auto", "dump", "recycle", "refuse", NULL};
const char settings_sample_space[] = "feed";
_Static_assert(ROW_ROUTES_MAX == 32768, "the help of dumps-max says so");

static const struct settings_row space_rows[] = {
    {.option = {"kind", WORD(kind, settings_kind_words), .flags = ROW_MANDATORY,
                .help = "Required. What the space holds. counter: small numbers of ids. phantom: "
                        "whether a member has been at an id. plain: values of any kind, for the "
                        "keys of no other space; at most one space is plain."},
     .kinds = KIND_ALL,
     .sample = "counter"},
    {.option =
         {"key", TEXT(key, 1, PATTERN_TEXT_MAX), .flags = OPTION_INLINE | ROW_RELOADABLE,
          .help =
              "Pattern of its keys: fixed text and {id}. A key of one slot adds .<slot>. Default: "
              "the space's name, a colon, {id}; kind phantom: a colon and {member} after it."},
     .kinds = KIND_ID,
     .sample = "feed:{id}"},
    {.option = {"slots", .type = OPTION_CUSTOM,
                .flags = ROW_MANDATORY | ROW_RELOADABLE | ROW_NEW_TABLE,
                .help =
                    "Required. The counters of an id, each with its bits, 2 to 64; at most 16 "
                    "slots and 512 bits. Numbers of b bits up to 2^b - 3 are kept in place, larger "
                    "ones, up to 2^64 - 1, cost extra memory. The order is that of a record."},
     .kinds = KIND_COUNTER,
     .sample = "{repost: 20, comment: 20, like: 20, read: 20}"},
    {.option = {"ids", WORD(ids, ids_words), .initial = "growing",
                .help = "growing: ids that grow with time. any: user ids, hashes, from 0 to "
                        "max-id. Counters of any ids grow as far as memory allows, and on with "
                        "oldest: dump; a filter does not."},
     .kinds = KIND_ID},
    {.option = {"max-id", NUMBER(max_id, 1, PATTERN_ID_MAX), .flags = ROW_ANY_ONLY,
                .initial = "1099511627776", .help = "The largest id, with ids: any only."},
     .kinds = KIND_ID},
    {.option =
         {"id-spacing", NUMBER(id_spacing, 1, PATTERN_ID_MAX), .flags = ROW_GROWING,
          .automatic = "auto", .initial = "auto",
          .help =
              "How far apart ids are on average: 1 when dense, 4194304 for seconds<<22 at one a "
              "second. Given, a record takes less memory or a look-up less time. auto: not known."},
     .kinds = KIND_ID},
    {.option = {"role", WORD(role, role_words), .flags = ROW_RELOADABLE, .initial = "store",
                .help = "store: incr creates an id that is missing. cache: it answers NOT_FOUND, "
                        "and the application fills it from its database; a record with an unset "
                        "slot is a miss, and one written whole has 0 where a field was empty."},
     .kinds = KIND_ID},
    {.option = {"empty-fields", WORD(empty_fields, empty_words),
                .flags = ROW_RELOADABLE | ROW_STORE_ONLY, .initial = "keep",
                .help = "With role: store: what an empty field of a record that is written does. "
                        "keep: it leaves its slot as it is. clear: it unsets it."},
     .kinds = KIND_COUNTER},
    {.option = {"table-size", SIZE(row.table_bytes, ROW_REGION_BYTES_MIN, ROW_REGION_BYTES_MAX),
                .flags = OPTION_POWER_OF_TWO | ROW_NEXT_TABLE, .initial = "16MiB",
                .help =
                    "Size of one table. A changed one holds from the next table on. Counters with "
                    "ids: any: what is set aside for the space, before it takes what the others "
                    "leave of memory; a filter: all it has. Both change with a restart."},
     .kinds = KIND_ID},
    {.option = {"tables", NUMBER(row.tables, 1, ROW_TABLES_MAX),
                .flags = ROW_GROWING | ROW_NEXT_TABLE, .initial = "5",
                .help = "Tables in memory, each for a range of ids. With oldest: dump or recycle "
                        "one of them is the spare, zeroed and ready for the next range."},
     .kinds = KIND_ID},
    {.option = {"oldest", WORD(oldest, oldest_words), .flags = ROW_NEXT_TABLE, .initial = "auto",
                .help = "When the tables are used up: dump the oldest to a file, where its ids are "
                        "still read and changed (needs data); recycle it, with the ids in it; or "
                        "refuse new ids. auto: dump with data, else refuse for role store, recycle "
                        "for cache. With ids: any, when memory is used up: dump parts of the "
                        "space, counters alone; auto is refuse. Flag -M: refuse."},
     .kinds = KIND_ID},
    {.option = {"dumps-max", NUMBER(row.dumps_max, 0, ROW_DUMPS_MAX),
                .flags = ROW_GROWING | ROW_NEXT_TABLE, .initial = "0",
                .help = "With oldest: dump: tables on the disk, at most; then the oldest of them "
                        "is dropped, with its ids. 0: as many as there can be, 32768 with those "
                        "in memory; then new ids are refused."},
     .kinds = KIND_ID},
    {.option = {"late-room", .type = OPTION_REAL, AT(row.late_room),
                .flags = ROW_GROWING | ROW_NEXT_TABLE, .real_max = 0.9, .automatic = "auto",
                .initial = "auto",
                .help =
                    "Share of a table kept for ids that arrive after the next one was opened. "
                    "auto: 0.1 for counters, 0.5 for phantoms, then what earlier tables received."},
     .kinds = KIND_ID},
    {.option = {"extend-memory", SIZE(extend_bytes, 4096, ROW_REGION_BYTES_MAX),
                .flags = ROW_NEXT_TABLE, .automatic = "auto", .initial = "auto",
                .help = "Memory of a table for ids that find no place in it. auto: 1/32 of "
                        "table-size, 1/16 when records are small."},
     .kinds = KIND_COUNTER},
    {.option =
         {"aux-memory", SIZE(aux_bytes, 4096, ROW_REGION_BYTES_MAX), .flags = ROW_NEXT_TABLE,
          .automatic = "auto", .initial = "auto",
          .help =
              "Memory of a table for numbers too large for their slot. auto: 1/32 of table-size."},
     .kinds = KIND_COUNTER},
    {.option = {"forget", .type = OPTION_CUSTOM, .flags = ROW_RELOADABLE,
                .help = "What a changed configuration may let go for good: a list of slots that "
                        "are not named any more, of dumps-max, of tables. Without it a start or "
                        "reload that would lose counts is refused and says how many."},
     .kinds = KIND_ID,
     .sample = "[]"},
    {.option = {"value-flags", NUMBER(value_flags, 0, UINT32_MAX), .flags = ROW_RELOADABLE,
                .initial = "0",
                .help = "The flags values are read back with, for clients that expect some."},
     .kinds = KIND_ID},
    {.option = {"false-positives", .type = OPTION_REAL, AT(false_positives),
                .flags = ROW_NEXT_TABLE, .real_min = PHANTOM_FALSE_POSITIVES_MIN,
                .real_max = PHANTOM_FALSE_POSITIVES_MAX, .initial = "0.001",
                .help = "Kind phantom: share of wrong answers for members that were never added, "
                        "at capacity."},
     .kinds = KIND_PHANTOM},
    {.option = {"deletes", YES_NO(deletes), .flags = ROW_RELOADABLE, .initial = "no",
                .help = "Kind phantom: keep exact exceptions, so that members can be deleted."},
     .kinds = KIND_PHANTOM,
     .sample = "yes"},
    {.option = {"exceptions-memory",
                SIZE(exceptions_bytes, PHANTOM_EXCEPTIONS_BYTES_MIN, ROW_REGION_BYTES_MAX),
                .flags = ROW_NEXT_TABLE, .automatic = "auto", .initial = "auto",
                .help = "Kind phantom with deletes: memory of a table for members that are "
                        "deleted, about 30 bytes each. auto: 1/32 of table-size."},
     .kinds = KIND_PHANTOM},
    {.option = {"memory", SIZE(memory_bytes, PLAIN_MEMORY_BYTES_MIN, PLAIN_MEMORY_BYTES_MAX),
                .initial = "64MiB",
                .help = "Kind plain: memory of all values, with what they cost. When it is full, "
                        "those that were not read for long go."},
     .kinds = KIND_PLAIN},
    {.option = {"item-max", SIZE(item_bytes_max, PLAIN_ITEM_BYTES_MIN, PLAIN_ITEM_BYTES_MAX),
                .flags = ROW_RELOADABLE, .initial = "1MiB",
                .help = "Kind plain: the largest value, with its key and what it costs; never more "
                        "than a quarter of memory."},
     .kinds = KIND_PLAIN},
    {.option = {"similar-keys", WORD(similar_keys, similar_words), .flags = ROW_RELOADABLE,
                .initial = "refuse",
                .help = "Kind plain: a key whose text before the first ':' or '.' is another "
                        "space's, or differs from it by one letter, such as fed:1 where there is "
                        "feed:{id}: refuse it as a typo, or allow it."},
     .kinds = KIND_PLAIN},
    {.option = {"binary-create", YES_NO(binary_create), .flags = ROW_RELOADABLE, .initial = "yes",
                .help = "Let incr and decr of the binary protocol create what is missing, with the "
                        "initial value clients send, unless they ask that nothing be created."},
     .kinds = KIND_COUNTER},
};

_Static_assert(LENGTH(space_rows) <= SETTINGS_ROWS_MAX, "raise SETTINGS_ROWS_MAX");
_Static_assert(SPACE_EMPTY_CLEAR == LENGTH(empty_words) - 2, "as space_empty");
_Static_assert(SPACE_SIMILAR_ALLOW == LENGTH(similar_words) - 2, "as space_similar");
_Static_assert(SPACE_OLDEST_REFUSE == LENGTH(oldest_words) - 2, "oldest_words: as space_oldest");

const struct settings_rows settings_space_rows = {space_rows, LENGTH(space_rows)};
