/* The inlined part of the recorder: `plait epa build` links it into every module, inserts calls, and inlines them.
 *
 * A record has the events of one straight-line piece of code (docs/reference/epa.md): the number of the piece, then the values
 * that the reader cannot compute. Space is reserved once for the whole record. */
#include "recorder.h"

#define MINE __attribute__((always_inline))

typedef struct { uint8_t value; } __attribute__((packed)) word1;
typedef struct { uint16_t value; } __attribute__((packed, may_alias)) word2;
typedef struct { uint32_t value; } __attribute__((packed, may_alias)) word4;
typedef struct { uint64_t value; } __attribute__((packed, may_alias)) word8;

/* Begin a record. */
MINE uint64_t epa_room(uint32_t block, uint32_t size) {
    thread *t = epa_self;
    uint64_t p = (uint64_t)t->next;
    if (RARE(p + size > (uint64_t)t->end || *(volatile uint64_t *)&epa_sequence != t->seen)) p = epa_make_room(size);
    ((word4 *)p)->value = block;
    return p;
}

/* The number of completed events of the record. The next event may end the program. */
MINE void epa_mark(uint32_t events) { *(volatile uint32_t *)&epa_self->done = events; }

/* The end of a record. Its last words are omitted if all loaded values are the expected ones: for variables of the frame the
 * last assigned value, for others the last loaded value of the same instruction. Then all bits are set. */
MINE uint64_t epa_end(uint64_t record, uint32_t piece, uint32_t least, uint32_t more, uint32_t most, uint64_t again,
                      uint64_t variables) {
    if (!RARE(~(again & variables))) return record + least;
    int known = !~variables;
    ((word4 *)record)->value = known ? piece | KNOWN : piece;
    return record + (known ? more : most);
}

/* The record is complete. */
MINE void epa_commit(uint64_t end) { *(char *volatile *)&epa_self->next = (char *)end; }

MINE void epa_commit_marked(uint64_t end) {
    thread *t = epa_self;
    *(volatile uint32_t *)&t->done = 0;
    *(char *volatile *)&t->next = (char *)end;
}

/* The site of the fault. It is read once per record, so that comparisons use a register. */
MINE uint32_t epa_fault(void) { return *(volatile uint32_t *)&epa_fault_site; }

/* A value passes through the recorder: faults are injected here. */
MINE uint64_t epa_pass(uint32_t site, uint32_t fault, uint64_t record, uint64_t value) {
    if (RARE(site == fault)) return epa_inject(site, record, value);
    return value;
}

/* The value that a store writes. */
MINE uint64_t epa_written(uint32_t site, uint32_t fault, uint64_t record, uint64_t address, uint32_t size, uint64_t value) {
    if (RARE(site == fault)) return epa_inject_store(site, record, address, size, value);
    return value;
}

#define VALUE(n) \
    MINE void epa_put##n(uint64_t record, uint32_t at, uint64_t value) { \
        ((word##n *)(record + at))->value = (__typeof__(((word##n *)0)->value))value; \
    } \
    MINE uint64_t epa_value##n(uint32_t site, uint32_t fault, uint64_t record, uint32_t at, uint64_t value) { \
        value = epa_pass(site, fault, record, value); \
        epa_put##n(record, at, value); \
        return value; \
    }
VALUE(1)
VALUE(2)
VALUE(4)
VALUE(8)

/* The sign of an int: all that C promises of the result of a comparison. Some C libraries return a value that depends on the
 * addresses of the strings. */
MINE uint64_t epa_sign(uint64_t value) {
    int32_t given = (int32_t)value;
    return (uint32_t)((given > 0) - (given < 0));
}

/* The result of a call that the input does not determine. */
MINE uint64_t epa_chance(uint64_t value, uint32_t site) { return epa_chance_result(site, value); }

MINE uint64_t epa_frame(void) { return (uint64_t)__builtin_frame_address(0); }

/* Before a call. */
MINE void epa_call(uint32_t site, uint64_t record) {
    if (RARE(epa_watch)) epa_called(site, record);
}

/* Before a call of an external function: its effects are recorded with this site. */
MINE void epa_call_out(uint32_t site, uint64_t record) {
    epa_self->site = site;
    if (RARE(epa_watch)) epa_called(site, record);
}
