/* settings_table_spaces.c: every option of a space, once. */
#include "config/settings_draft.h"

#include "row/row.h"

#define OF_SPACE(member)                                                                           \
    .offset = offsetof(struct space_settings, member),                                             \
    .bytes = sizeof(((struct space_settings *)0)->member)
#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static const char *const ids_words[] = {"growing", "any", NULL};
static const char *const role_words[] = {"store", "cache", NULL};
static const char *const empty_words[] = {"keep", "clear", NULL};
static const char *const similar_words[] = {"refuse", "allow", NULL};
static const char *const oldest_words[] = {"auto", "dump", "recycle", "refuse", NULL};
const char settings_sample_space[] = "feed";

static const struct settings_row space_rows[] = {
    {.option = {.name = "kind",
                .type = OPTION_WORD,
                .flags = ROW_MANDATORY,
                OF_SPACE(kind),
                .words = settings_kind_words,
                .help = "Required. What the space holds. counter: small numbers of ids. "
                        "phantom: whether a member has been at an id. plain: values of any kind, "
                        "for the keys of no other space; at most one space is plain."},
     .kinds = KIND_ALL,
     .sample = "counter"},
    {.option = {.name = "key",
                .type = OPTION_STRING,
                .flags = OPTION_INLINE | ROW_RELOADABLE,
                OF_SPACE(key),
                .min = 1,
                .max = PATTERN_TEXT_MAX,
                .help =
                    "Pattern of its keys: fixed text and {id}. A key of one slot adds .<slot>. "
                    "Default: the space's name, a colon, {id}; kind phantom: a colon and {member} "
                    "after it."},
     .kinds = KIND_ID,
     .sample = "feed:{id}"},
    {.option = {.name = "slots",
                .type = OPTION_CUSTOM,
                .flags = ROW_MANDATORY | ROW_RELOADABLE | ROW_NEW_TABLE,
                .help =
                    "Required. The counters of an id, each with its bits, 2 to 64; at most 16 "
                    "slots and 512 "
                    "bits. Numbers of b bits up to 2^b - 3 are kept in place, larger ones, up to "
                    "2^64 - 1, cost extra memory. The order is that of a record."},
     .kinds = KIND_COUNTER,
     .sample = "{repost: 20, comment: 20, like: 20, read: 20}"},
    {.option = {.name = "ids",
                .type = OPTION_WORD,
                OF_SPACE(ids),
                .words = ids_words,
                .initial = "growing",
                .help =
                    "growing: ids that grow with time. any: user ids, hashes, from 0 to "
                    "max-id. Counters of any ids grow as far as memory allows, and on with oldest: "
                    "dump; a filter does not."},
     .kinds = KIND_ID},
    {.option = {.name = "max-id",
                .type = OPTION_NUMBER,
                .flags = ROW_ANY_ONLY,
                OF_SPACE(max_id),
                .min = 1,
                .max = PATTERN_ID_MAX,
                .initial = "1099511627776",
                .help = "The largest id, with ids: any only."},
     .kinds = KIND_ID},
    {.option = {.name = "id-spacing",
                .type = OPTION_NUMBER,
                .flags = ROW_GROWING,
                OF_SPACE(id_spacing),
                .min = 1,
                .max = PATTERN_ID_MAX,
                .automatic = "auto",
                .initial = "auto",
                .help =
                    "How far apart ids are on average: 1 when dense, 4194304 for seconds<<22 at "
                    "one a second. Given, a record takes less memory or a look-up less time. auto: "
                    "not known."},
     .kinds = KIND_ID},
    {.option = {.name = "role",
                .type = OPTION_WORD,
                .flags = ROW_RELOADABLE,
                OF_SPACE(role),
                .words = role_words,
                .initial = "store",
                .help =
                    "store: incr creates an id that is missing. cache: it answers NOT_FOUND, and "
                    "the application fills it from its database; a record with an unset slot is a "
                    "miss, and one written whole has 0 where a field was empty."},
     .kinds = KIND_ID},
    {.option = {.name = "empty-fields",
                .type = OPTION_WORD,
                .flags = ROW_RELOADABLE | ROW_STORE_ONLY,
                OF_SPACE(empty_fields),
                .words = empty_words,
                .initial = "keep",
                .help = "With role: store: what an empty field of a record that is written does. "
                        "keep: it leaves its slot as it is. clear: it unsets it."},
     .kinds = KIND_COUNTER},
    {.option = {.name = "table-size",
                .type = OPTION_SIZE,
                .flags = OPTION_POWER_OF_TWO | ROW_NEXT_TABLE,
                OF_SPACE(row.table_bytes),
                .min = ROW_REGION_BYTES_MIN,
                .max = ROW_REGION_BYTES_MAX,
                .initial = "16MiB",
                .help =
                    "Size of one table. A changed one holds from the next table on. Counters "
                    "with ids: any: what is set aside for the space, before it takes what the "
                    "others leave of memory; a filter: all it has. Both change with a restart."},
     .kinds = KIND_ID},
    {.option = {.name = "tables",
                .type = OPTION_NUMBER,
                .flags = ROW_GROWING | ROW_NEXT_TABLE,
                OF_SPACE(row.tables),
                .min = 1,
                .max = ROW_TABLES_MAX,
                .initial = "5",
                .help =
                    "Tables in memory, each for a range of ids. With oldest: dump or recycle one "
                    "of them is the spare, zeroed and ready for the next range."},
     .kinds = KIND_ID},
    {.option =
         {.name = "oldest",
          .type = OPTION_WORD,
          .flags = ROW_NEXT_TABLE,
          OF_SPACE(oldest),
          .words = oldest_words,
          .initial = "auto",
          .help = "When the tables are used up: dump the oldest to a file, where its ids are still "
                  "read and changed (needs data); recycle it, with the ids in it; or refuse new "
                  "ids. auto: dump with data, else refuse for role store, recycle for cache. With "
                  "ids: any, when memory is used up: dump parts of the space, counters alone; auto "
                  "is refuse. Flag -M: refuse."},
     .kinds = KIND_ID},
    {.option = {.name = "dumps-max",
                .type = OPTION_NUMBER,
                .flags = ROW_GROWING | ROW_NEXT_TABLE,
                OF_SPACE(row.dumps_max),
                .max = SETTINGS_DUMPS_MAX,
                .initial = "0",
                .help = "With oldest: dump: tables on the disk, at most; then the oldest of them "
                        "is dropped, with its ids. 0: no limit."},
     .kinds = KIND_ID},
    {.option =
         {.name = "late-room",
          .type = OPTION_REAL,
          .flags = ROW_GROWING | ROW_NEXT_TABLE,
          OF_SPACE(row.late_room),
          .real_max = 0.9,
          .automatic = "auto",
          .initial = "auto",
          .help = "Share of a table kept for ids that arrive after the next one was opened. auto: "
                  "0.1 for counters, 0.5 for phantoms, then what earlier tables received."},
     .kinds = KIND_ID},
    {.option = {.name = "extend-memory",
                .type = OPTION_SIZE,
                .flags = ROW_NEXT_TABLE,
                OF_SPACE(extend_bytes),
                .min = 4096,
                .max = ROW_REGION_BYTES_MAX,
                .automatic = "auto",
                .initial = "auto",
                .help = "Memory of a table for ids that find no place in it. auto: 1/32 of "
                        "table-size, 1/16 when records are small."},
     .kinds = KIND_COUNTER},
    {.option = {.name = "aux-memory",
                .type = OPTION_SIZE,
                .flags = ROW_NEXT_TABLE,
                OF_SPACE(aux_bytes),
                .min = 4096,
                .max = ROW_REGION_BYTES_MAX,
                .automatic = "auto",
                .initial = "auto",
                .help = "Memory of a table for numbers too large for their slot. auto: 1/32 of "
                        "table-size."},
     .kinds = KIND_COUNTER},
    {.option = {.name = "forget",
                .type = OPTION_CUSTOM,
                .flags = ROW_RELOADABLE,
                .help = "What a changed configuration may let go for good: a list of slots that "
                        "are not named any more, of dumps-max, of tables. Without it a start or "
                        "reload that would lose counts is refused and says how many."},
     .kinds = KIND_ID,
     .sample = "[]"},
    {.option = {.name = "value-flags",
                .type = OPTION_NUMBER,
                .flags = ROW_RELOADABLE,
                OF_SPACE(value_flags),
                .max = UINT32_MAX,
                .initial = "0",
                .help = "The flags values are read back with, for clients that expect some."},
     .kinds = KIND_ID},
    {.option = {.name = "false-positives",
                .type = OPTION_REAL,
                .flags = ROW_NEXT_TABLE,
                OF_SPACE(false_positives),
                .real_min = PHANTOM_FALSE_POSITIVES_MIN,
                .real_max = PHANTOM_FALSE_POSITIVES_MAX,
                .initial = "0.001",
                .help =
                    "Kind phantom: share of wrong answers for members that were never added, at "
                    "capacity."},
     .kinds = KIND_PHANTOM},
    {.option = {.name = "deletes",
                .type = OPTION_BOOL,
                .flags = ROW_RELOADABLE,
                OF_SPACE(deletes),
                .initial = "no",
                .help = "Kind phantom: keep exact exceptions, so that members can be deleted."},
     .kinds = KIND_PHANTOM,
     .sample = "yes"},
    {.option = {.name = "exceptions-memory",
                .type = OPTION_SIZE,
                .flags = ROW_NEXT_TABLE,
                OF_SPACE(exceptions_bytes),
                .min = PHANTOM_EXCEPTIONS_BYTES_MIN,
                .max = ROW_REGION_BYTES_MAX,
                .automatic = "auto",
                .initial = "auto",
                .help =
                    "Kind phantom with deletes: memory of a table for members that are deleted, "
                    "about 30 bytes each. auto: 1/32 of table-size."},
     .kinds = KIND_PHANTOM},
    {.option = {.name = "memory",
                .type = OPTION_SIZE,
                OF_SPACE(memory_bytes),
                .min = PLAIN_MEMORY_BYTES_MIN,
                .max = PLAIN_MEMORY_BYTES_MAX,
                .initial = "64MiB",
                .help = "Kind plain: memory of all values, with what they cost. When it is full, "
                        "those that were not read for long go."},
     .kinds = KIND_PLAIN},
    {.option = {.name = "item-max",
                .type = OPTION_SIZE,
                .flags = ROW_RELOADABLE,
                OF_SPACE(item_bytes_max),
                .min = PLAIN_ITEM_BYTES_MIN,
                .max = PLAIN_ITEM_BYTES_MAX,
                .initial = "1MiB",
                .help = "Kind plain: the largest value, with its key and what it costs; never "
                        "more than a quarter of memory."},
     .kinds = KIND_PLAIN},
    {.option = {.name = "similar-keys",
                .type = OPTION_WORD,
                .flags = ROW_RELOADABLE,
                OF_SPACE(similar_keys),
                .words = similar_words,
                .initial = "refuse",
                .help = "Kind plain: a key whose text before the first ':' or '.' is another "
                        "space's, or differs from it by one letter, such as fed:1 where there is "
                        "feed:{id}: refuse it as a typo, or allow it."},
     .kinds = KIND_PLAIN},
    {.option = {.name = "binary-create",
                .type = OPTION_BOOL,
                .flags = ROW_RELOADABLE,
                OF_SPACE(binary_create),
                .initial = "yes",
                .help = "Let incr and decr of the binary protocol create what is missing, with the "
                        "initial value clients send, unless they ask that nothing be created."},
     .kinds = KIND_COUNTER},
};

_Static_assert(LENGTH(space_rows) <= SETTINGS_ROWS_MAX, "raise SETTINGS_ROWS_MAX");
_Static_assert(SPACE_EMPTY_CLEAR == LENGTH(empty_words) - 2, "as space_empty");
_Static_assert(SPACE_SIMILAR_ALLOW == LENGTH(similar_words) - 2, "as space_similar");
_Static_assert(SPACE_OLDEST_REFUSE == LENGTH(oldest_words) - 2, "oldest_words: as space_oldest");

const struct settings_rows settings_space_rows = {space_rows, LENGTH(space_rows)};
