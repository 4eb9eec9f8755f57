/* pattern_build.c: making a set: the tree, and the refusal of spaces that clash. */
#include "key/pattern.h"

#include "base/check.h"
#include "base/hash.h"
#include "base/memory.h"
#include "key/pattern_tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint8_t new_node(struct pattern_set *set, const char *text, size_t length)
{
    CHECK(set->nodes_count < PATTERN_NODES_MAX);
    struct pattern_node *node = &set->nodes[set->nodes_count];
    node->first_space = PATTERN_NO_SPACE;
    pattern_text_set(&node->text, text, length);
    return (uint8_t)set->nodes_count++;
}

static size_t common_length(const struct pattern_node *node, const char *text, size_t length)
{
    size_t most = node->text.length < length ? node->text.length : length;
    size_t same = 0;
    while (same < most && node->text.bytes[same] == text[same]) {
        same++;
    }
    return same;
}

/* Puts a node with the first `length` bytes of a child's text between the child and its parent. */
static uint8_t pattern_build_split(struct pattern_set *set, uint8_t parent, uint8_t child,
                                   size_t length)
{
    struct pattern_node *lower = &set->nodes[child];
    uint8_t middle = new_node(set, lower->text.bytes, length);
    set->nodes[parent].child[(unsigned char)lower->text.bytes[0]] = middle;
    pattern_text_set(&lower->text, lower->text.bytes + length, lower->text.length - length);
    set->nodes[middle].child[(unsigned char)lower->text.bytes[0]] = child;
    return middle;
}

/* The node where text ends, made if needed. */
static uint8_t insert_text(struct pattern_set *set, const char *text, size_t length)
{
    uint8_t at = 0;
    size_t done = 0;
    while (done < length) {
        unsigned char byte = (unsigned char)text[done];
        uint8_t child = set->nodes[at].child[byte];
        if (child == 0) {
            child = new_node(set, text + done, length - done);
            set->nodes[at].child[byte] = child;
            return child;
        }
        size_t same = common_length(&set->nodes[child], text + done, length - done);
        at = same < set->nodes[child].text.length ? pattern_build_split(set, at, child, same)
                                                  : child;
        done += same;
    }
    return at;
}

/* Appends, so that the first space of a text is the one a bad key is counted for. */
static void insert_space(struct pattern_set *set, uint8_t number)
{
    struct pattern_space *space = &set->spaces[number];
    uint8_t node = insert_text(set, space->prefix.bytes, space->prefix.length);
    uint8_t *link = &set->nodes[node].first_space;
    while (*link != PATTERN_NO_SPACE) {
        link = &set->spaces[*link].next;
    }
    *link = number;
}

/* Chains the terminals. Recursion is bounded by the length of a text. */
static void chain(struct pattern_set *set, uint8_t number, uint8_t above, size_t depth)
{
    struct pattern_node *node = &set->nodes[number];
    bool terminal = node->first_space != PATTERN_NO_SPACE;
    node->above = above;
    node->terminal = terminal ? number : above;
    node->depth = (uint8_t)(depth + node->text.length);
    for (size_t byte = 0; byte < sizeof(node->child); byte++) {
        if (node->child[byte] != 0) {
            chain(set, node->child[byte], node->terminal, node->depth);
        }
    }
}

/* Pairs are few (a start, a reload): all are tried. */
static bool find_clash(const struct pattern_set *set, char *error, uint32_t *first,
                       uint32_t *second)
{
    char key[PATTERN_KEY_MAX + 1];
    for (uint32_t b = 1; b < set->spaces_count; b++) {
        for (uint32_t a = 0; a < b; a++) {
            if (!pattern_spaces_clash(&set->spaces[a], &set->spaces[b], key)) {
                continue;
            }
            snprintf(error, PATTERN_ERROR_MAX, "key \"%.200s\" would belong to both", key);
            *first = a;
            *second = b;
            return true;
        }
    }
    return false;
}

struct pattern_set *pattern_set_create(const char *const *texts, size_t n,
                                       char error[PATTERN_ERROR_MAX], uint32_t *first,
                                       uint32_t *second)
{
    CHECK(n <= PATTERN_SPACES_MAX);
    struct pattern_set *set = memory_zalloc(sizeof(*set));
    new_node(set, "", 0);
    for (size_t i = 0; i < n; i++) {
        pattern_space_init(&set->spaces[i], texts[i]);
        insert_space(set, (uint8_t)i);
        set->number.number = hash_bytes(texts[i], strlen(texts[i]) + 1, set->number.number);
    }
    set->spaces_count = n;
    set->number.number += set->number.number == 0;
    if (find_clash(set, error, first, second)) {
        pattern_set_destroy(set);
        return NULL;
    }
    chain(set, 0, PATTERN_NO_NODE, 0);
    return set;
}

void pattern_set_destroy(struct pattern_set *set)
{
    free(set);
}
