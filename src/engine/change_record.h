/*
 * change_record.h: changes and events as the payloads of journal records, both ways.
 *
 * A record is a type, two bytes and a payload of whole 8-byte words, in the machine's byte order
 * (the journal's files say which that is). A change of one slot has 16 bytes: with the journal's
 * own header 24.
 *
 *     type                a      b                           payload
 *     CHANGE_RECORD_SLOT  space  slot | place << 4 | set << 6  id, value (0 if not set)
 *     ..._SLOTS           space  place                       id, named | set << 16, values of `set`
 *     ..._DELETE          space  place | layer - 1 << 2      id; the layer is 0 but INSIDE
 *     ..._MEMBER_ADD      space  place                       id, member[0], member[1]
 *     ..._MEMBER_DELETE   space  place                       id, member[0], member[1]
 *     ..._EVENT           space  event                       length, bytes, zeroes to a whole word
 *
 * The event SPACE begins with a head of CHANGE_SPACE_HEAD_BYTES: the name of the space (32 bytes)
 * and its kind (16), each filled up with zeroes. With the number in `a` that is all a reader of the
 * journal needs to know a space that no file names yet; the log of the journal puts it there, and
 * what replays takes it off, so engines and rows never see it.
 *
 * Pure functions, any thread.
 */
#ifndef ROLLCALL_ENGINE_CHANGE_RECORD_H
#define ROLLCALL_ENGINE_CHANGE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/change.h"

#define CHANGE_SPACE_MAX 255 /* number of a space that a record can name */

enum change_record_type { /* those below are the journal's own */
                          CHANGE_RECORD_SLOT = 16,
                          CHANGE_RECORD_SLOTS,
                          CHANGE_RECORD_DELETE,
                          CHANGE_RECORD_MEMBER_ADD,
                          CHANGE_RECORD_MEMBER_DELETE,
                          CHANGE_RECORD_EVENT,
};

#define CHANGE_RECORD_WORDS_MAX (2 + CHANGE_SLOTS_MAX) /* of a change's payload */
#define CHANGE_RECORD_BYTES_MAX (CHANGE_RECORD_WORDS_MAX * 8)

struct change_record {
    uint8_t type, a, b;
    uint32_t bytes; /* of the payload: whole words */
    uint64_t words[CHANGE_RECORD_WORDS_MAX];
};

#define CHANGE_RECORD_SLOT_BITS  4
#define CHANGE_RECORD_PLACE_BITS 2
#define CHANGE_RECORD_SET_SHIFT  (CHANGE_RECORD_SLOT_BITS + CHANGE_RECORD_PLACE_BITS)

/* `b` of a change of one slot that was THERE and is set (change_sink_functions.put_slot). */
static inline uint8_t change_record_slot(unsigned slot)
{
    return (uint8_t)(slot | 1u << CHANGE_RECORD_SET_SHIFT);
}

/* space at most CHANGE_SPACE_MAX. */
void change_record_encode(const struct change *change, struct change_record *record);

/* The payload of an event: words[] of at least CHANGE_EVENT_BYTES_MAX / 8 + 2. Returns its bytes.
 */
size_t change_record_encode_event(uint64_t *words, const void *bytes, size_t length);

/* The head of the event SPACE: it says which space it is, before the engine's part. */
#define CHANGE_SPACE_NAME_MAX   32 /* characters */
#define CHANGE_SPACE_KIND_MAX   15
#define CHANGE_SPACE_HEAD_BYTES 48
struct change_space_head {
    char name[CHANGE_SPACE_NAME_MAX + 1];
    char kind[CHANGE_SPACE_KIND_MAX + 1];
};

/* Writes the head. Name and kind have one character or more, and no more than there is room for. */
void change_space_head_init(struct change_space_head *head, const char *name, const char *kind);
void change_space_head_encode(const struct change_space_head *head,
                              unsigned char bytes[CHANGE_SPACE_HEAD_BYTES]);
/* Reads the head. False: the bytes of an event do not begin with one. The words are not checked. */
bool change_space_head_decode(const void *bytes, size_t length, struct change_space_head *head);

enum change_record_kind { CHANGE_RECORD_IS_CHANGE, CHANGE_RECORD_IS_EVENT, CHANGE_RECORD_IS_BAD };

struct change_record_event {
    uint32_t space;
    enum change_event event;
    const void *bytes; /* in the payload */
    size_t length;
};

/*
 * Decodes a journal's record into *change or *event. BAD: there is no such type, or the payload
 * cannot be one. payload is aligned to 8.
 */
enum change_record_kind change_record_decode(uint8_t type, uint8_t a, uint8_t b,
                                             const void *payload, size_t bytes,
                                             struct change *change,
                                             struct change_record_event *event);

#endif
