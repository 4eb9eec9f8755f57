/*
 * pattern_tree.h: what a pattern set is made of. Private to pattern*.c.
 *
 * The leading fixed texts of all spaces stand in a path-compressed radix tree. A node where at
 * least one space's text ends is terminal and heads the list of those spaces. Terminals on the way
 * from a node to the root are chained, deepest first: those are all the spaces whose fixed text a
 * key begins with.
 */
#ifndef ROLLCALL_KEY_PATTERN_TREE_H
#define ROLLCALL_KEY_PATTERN_TREE_H

#include "key/pattern.h"

#define PATTERN_NODES_MAX                                                                          \
    (2 * PATTERN_SPACES_MAX + 1) /* root; each text adds a leaf and a split                        \
                                  */
#define PATTERN_NO_SPACE 0xffu
#define PATTERN_NO_NODE  0xffu /* in `terminal` and `above`; as a child it is 0, the root */

/* Fixed text of a pattern, or a piece of it. */
struct pattern_text {
    uint64_t head; /* its first eight bytes as a word, zeros after a shorter one … */
    uint64_t mask; /* … and ones where it has bytes */
    uint8_t length;
    char bytes[PATTERN_TEXT_MAX];
};

struct pattern_space {
    uint8_t next; /* space with the same leading text, or PATTERN_NO_SPACE */
    bool with_member;
    struct pattern_text prefix;
    struct pattern_text suffix; /* between {id} and {member}, or the end */
};

struct pattern_node {
    uint8_t child[256];  /* node whose text begins with that byte; 0: none */
    uint8_t first_space; /* PATTERN_NO_SPACE: not terminal */
    uint8_t terminal;    /* the deepest terminal down to and with this node */
    uint8_t above;       /* the deepest terminal above this node */
    uint8_t depth;       /* bytes of text from the root to the end of this node's */
    struct pattern_text text;
};

struct pattern_set {
    struct pattern_number number; /* first */
    size_t nodes_count;
    size_t spaces_count;
    struct pattern_node nodes[PATTERN_NODES_MAX]; /* 0 is the root, with no text */
    struct pattern_space spaces[PATTERN_SPACES_MAX];
};

/* Sets text to bytes[0..length), which may lie in it. */
void pattern_text_set(struct pattern_text *text, const char *bytes, size_t length);

/* Splits a valid pattern at its placeholders. */
void pattern_space_init(struct pattern_space *space, const char *text);

/* Returns whether this space alone owns the key, read plainly. */
bool pattern_space_owns(const struct pattern_space *space, const char *key, size_t length);

/*
 * Writes the shortest key found that both spaces own to key, NUL added. Returns false if none can.
 */
bool pattern_spaces_clash(const struct pattern_space *a, const struct pattern_space *b,
                          char key[PATTERN_KEY_MAX + 1]);

#endif
