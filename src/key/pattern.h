/*
 * pattern.h: which space, id and slot or member a key names.
 *
 * A space has a pattern: fixed text around {id}, and for existence keys a {member} at the end:
 *     feed:{id}    count_content_{id}    {id}    liked:{id}:{member}
 * A key of a space without {member} may go on after its id with a tail that begins with '.' (a
 * slot: the engine knows the names). protocol.md "Keys" lists the further forms for proxies: one
 * pair of braces and the first |#|, anywhere before the member, are dropped.
 *
 * All patterns are kept in one radix tree over their leading fixed text, so finding the space costs
 * its length, whatever the number of spaces. Ids are decimal, 0 to 2^63-1, no sign, no leading
 * zeros.
 *
 * A set is immutable once built: any thread reads it.
 */
#ifndef ROLLCALL_KEY_PATTERN_H
#define ROLLCALL_KEY_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/digits.h"
#include "base/text_word.h"

#define PATTERN_TEXT_MAX   128                   /* bytes of a pattern */
#define PATTERN_KEY_MAX    250                   /* bytes of a key: memcached's limit */
#define PATTERN_ID_MAX     0x7fffffffffffffffull /* 2^63-1 */
#define PATTERN_SPACES_MAX 64
#define PATTERN_ERROR_MAX  256 /* bytes of an error text, NUL included */

enum pattern_result {
    PATTERN_NONE,   /* of no space */
    PATTERN_BAD,    /* begins with the fixed text of `space` and does not parse */
    PATTERN_RECORD, /* space and id, and a tail (maybe empty) for the engine to read */
    PATTERN_MEMBER, /* space, id and member */
};

struct pattern_set;

/* How each set begins. */
struct pattern_number {
    uint64_t number; /* the hash of its texts in their order; not 0 */
};

#define PATTERN_HEAD_MAX 16 /* bytes of a head */

/*
 * What keys of one page begin with: the fixed text of their space and the first digits of an id of
 * seventeen or more, those in front of the last sixteen. A key that begins so needs no more than
 * these sixteen read, and what stands after them.
 */
struct pattern_head {
    uint64_t set; /* the number of the set it is of, which goes with its texts; 0: there is none */
    uint32_t length;
    bool with_member;
    bool with_suffix; /* a byte in front of the member, or the end */
    char suffix;
    uint64_t text[PATTERN_HEAD_MAX / 8], mask[PATTERN_HEAD_MAX / 8];
    uint64_t id; /* of the first digits: what the sixteen are added to */
};

struct pattern_match {
    uint32_t space; /* as given to pattern_set_create */
    uint32_t rest_length;
    uint64_t id;
    const char *rest; /* RECORD: the tail, into the key or into `scratch`; MEMBER: into the key */
    char scratch[PATTERN_KEY_MAX]; /* used only by keys with braces or |#| */
    struct pattern_head head;      /* pattern_match_next(): of this key or one before */
};

/*
 * Returns whether text is a pattern that a space may have. On false `error` says what is wrong and
 * what would be right, and *at is the offset of the fault in text.
 */
bool pattern_valid(const char *text, bool with_member, char error[PATTERN_ERROR_MAX], size_t *at);

/*
 * Builds the set of n valid patterns; text i belongs to space i. Returns NULL if two spaces could
 * own one key: `error` names an example key, and *first and *second the spaces.
 */
struct pattern_set *pattern_set_create(const char *const *texts, size_t n,
                                       char error[PATTERN_ERROR_MAX], uint32_t *first,
                                       uint32_t *second);
void pattern_set_destroy(struct pattern_set *set); /* NULL: no-op */

/* Matches a key of 1..PATTERN_KEY_MAX bytes. The match's pointers live as long as key and match. */
enum pattern_result pattern_match(const struct pattern_set *set, const char *key, size_t length,
                                  struct pattern_match *match);

/* pattern_match_next() of a key that does not begin as the one before. */
enum pattern_result pattern_match_anew(const struct pattern_set *set, const char *key,
                                       size_t length, struct pattern_match *match);

/* Does a key of `head->length` + 16 bytes or more begin with the head? Its id, then. */
static inline bool pattern_head_fits(const struct pattern_head *head, const char *key, uint64_t *id)
{
    uint64_t differs = (text_word(key, 8) ^ head->text[0]) & head->mask[0];
    differs |= (text_word(key + 8, 8) ^ head->text[1]) & head->mask[1];
    if (differs != 0 || !digits_sixteen(key + head->length, id)) {
        return false;
    }
    *id += head->id;
    return LIKELY(*id <= PATTERN_ID_MAX);
}

/* Where the tail or member begins that follows the digits up to `at`. NULL: there is none such; a
 * digit more is none. */
static inline const char *pattern_head_rest(const struct pattern_head *head, const char *at,
                                            const char *end)
{
    if (head->with_suffix && (at == end || *at++ != head->suffix)) {
        return NULL;
    }
    bool is = head->with_member ? at < end : at == end || *at == '.';
    return is ? at : NULL;
}

/* Reads a key that begins with the head: its id, and where its tail or member begins. NULL: it does
 * not, or is none as it stands. */
static inline const char *pattern_head_read(const struct pattern_head *head, const char *key,
                                            size_t length, uint64_t *id)
{
    size_t digits_end = (size_t)head->length + 16;
    if (UNLIKELY(length < digits_end) || !pattern_head_fits(head, key, id)) {
        return NULL;
    }
    return pattern_head_rest(head, key + digits_end, key + length);
}

/* Is the head that of a key of this set, the one that was matched last? */
static inline bool pattern_head_known(const struct pattern_set *set,
                                      const struct pattern_head *head)
{
    return head->set == ((const struct pattern_number *)set)->number;
}

/*
 * The same of a key that follows another: match is that one's, or zeros, and its space is tried
 * first, since one page is of one space.
 */
static inline enum pattern_result pattern_match_next(const struct pattern_set *set, const char *key,
                                                     size_t length, struct pattern_match *match)
{
    const struct pattern_head *head = &match->head;
    uint64_t id;
    if (LIKELY(pattern_head_known(set, head))) {
        const char *rest = pattern_head_read(head, key, length, &id);
        if (LIKELY(rest != NULL)) {
            match->id = id;
            match->rest = rest;
            match->rest_length = (uint32_t)(key + length - rest);
            return head->with_member ? PATTERN_MEMBER : PATTERN_RECORD;
        }
    }
    return pattern_match_anew(set, key, length, match);
}

/*
 * Does a key of no space look like one of a space's, a letter wrong? Its text before the first ':'
 * or '.' is then that of *space's pattern, or differs by one letter, or by two that changed places.
 * Of texts with three letters at least. Cost: a comparison a space of about that length.
 */
bool pattern_similar(const struct pattern_set *set, const char *key, size_t length,
                     uint32_t *space);

#endif
