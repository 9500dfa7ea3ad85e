/* The memory that functions of the C++ library access, beyond their arguments (libstdc++). The calls belong to the program; the
 * layouts are a part of the binary interface of the library. */
#include "recorder.h"

enum { READS, WRITES };
enum { IOS_BYTES = 264, STRING_BYTES = 32, TREE_NODE_BYTES = 32, LIST_NODE_BYTES = 16, DEEP = 128 };

/* A stream: all of its object, up to the end of its state (std::basic_ios), which is a virtual base. */
void epa_cpp_stream(uint32_t site, uint64_t stream) {
    epa_stream(site, stream);
    if (!stream || !epa_recording()) return;
    const int64_t *table = *(const int64_t *const *)stream;
    epa_range(site, WRITES, stream, (uint64_t)table[-3] + IOS_BYTES);
}

struct string { uint64_t at, length; };

/* A string: its object, and its characters with the zero at the end. */
void epa_cpp_string(uint32_t site, uint32_t writes, uint64_t address) {
    if (!address || !epa_recording()) return;
    const struct string *string = (const struct string *)address;
    epa_range(site, writes, address, STRING_BYTES);
    if (string->at - address >= STRING_BYTES) epa_range(site, writes, string->at, string->length + 1);
}

struct list_node { uint64_t next, previous; };

/* A node of a list, and its neighbours. */
void epa_list(uint32_t site, uint64_t address) {
    if (!address || !epa_recording()) return;
    const struct list_node *node = (const struct list_node *)address;
    epa_range(site, WRITES, address, LIST_NODE_BYTES);
    if (node->next != address) epa_range(site, WRITES, node->next, LIST_NODE_BYTES);
    if (node->previous != address) epa_range(site, WRITES, node->previous, LIST_NODE_BYTES);
}

struct tree_node { uint64_t colour; const struct tree_node *parent, *left, *right; };

/* A step from a node of a tree to the next one. Every change of the tree writes its head, so reading the head is enough. The
 * root and the head are the parents of each other. */
void epa_tree(uint32_t site, uint64_t address) {
    if (!address || !epa_recording()) return;
    const struct tree_node *node = (const struct tree_node *)address;
    epa_range(site, READS, address, TREE_NODE_BYTES);
    for (int i = 0; i < DEEP && node->parent && node->parent->parent != node; i++) node = node->parent;
    if (!node->parent) return;
    epa_range(site, READS, (uint64_t)node, TREE_NODE_BYTES);
    epa_range(site, READS, (uint64_t)node->parent, TREE_NODE_BYTES);
}
