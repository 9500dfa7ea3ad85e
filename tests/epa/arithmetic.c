/* Every operation that the reader of a trace computes again, on values at the edges of their types. */
#include <stdint.h>
#include <stdio.h>

struct inner { char tag; int64_t wide[3]; };
struct outer { short head; struct inner parts[4]; int16_t tail; };

static struct outer all[3];
static uint64_t digest;
static void mix(uint64_t value) { digest = (digest ^ value) * 1099511628211u; }

#define EACH(type, name) \
    static void name(type a, type b) { \
        mix((uint64_t)(type)(a + b)); mix((uint64_t)(type)(a - b)); mix((uint64_t)(type)(a * b)); \
        mix((uint64_t)(type)(a & b)); mix((uint64_t)(type)(a | b)); mix((uint64_t)(type)(a ^ b)); mix((uint64_t)(type)~a); \
        mix((uint64_t)(type)(a << 3)); mix((uint64_t)(type)(a >> 2)); mix((uint64_t)(type)((int)(a >> 1) << (b & 3))); \
        mix(a < b); mix(a <= b); mix(a > b); mix(a >= b); mix(a == b); mix(a != b); \
        mix((uint64_t)(int8_t)a); mix((uint64_t)(uint8_t)a); mix((uint64_t)(int16_t)b); mix((uint64_t)(uint16_t)b); \
        mix((uint64_t)(int32_t)a); mix((uint64_t)(uint32_t)b); mix((uint64_t)(int64_t)a); \
        if (b) { mix((uint64_t)(a / b)); mix((uint64_t)(a % b)); } \
        type chosen = a > b ? a : b; mix((uint64_t)chosen); \
        all[a & 1].parts[b & 3].wide[(a ^ b) & 1] = (int64_t)a; \
        mix((uint64_t)all[b & 1].parts[a & 3].wide[1]); \
        int64_t *end = &all[2].parts[3].wide[2] - (b & 3); *end = (int64_t)b; \
        mix((uint64_t)(end - all[2].parts[0].wide)); mix(end > &all[0].parts[0].wide[0]); \
        mix((uintptr_t)end % sizeof *end); \
    }
EACH(int8_t, signed8)
EACH(uint8_t, unsigned8)
EACH(int16_t, signed16)
EACH(uint16_t, unsigned16)
EACH(int32_t, signed32)
EACH(uint32_t, unsigned32)
EACH(int64_t, signed64)
EACH(uint64_t, unsigned64)

int main(void) {
    static const int64_t edges[] = {0, 1, 2, 5, 127, 128, 255, 256, 32767, 65535, 2147483647, 4294967295, -2, -7, -128, -32768};
    const int count = sizeof edges / sizeof *edges;
    for (int i = 0; i < count; i++)
        for (int j = 0; j < count; j++) {
            signed8((int8_t)edges[i], (int8_t)edges[j]);
            unsigned8((uint8_t)edges[i], (uint8_t)edges[j]);
            signed16((int16_t)edges[i], (int16_t)edges[j]);
            unsigned16((uint16_t)edges[i], (uint16_t)edges[j]);
            signed32((int32_t)edges[i], (int32_t)edges[j]);
            unsigned32((uint32_t)edges[i], (uint32_t)edges[j]);
            signed64(edges[i], edges[j]);
            unsigned64((uint64_t)edges[i], (uint64_t)edges[j]);
        }
    printf("%lu\n", digest);
    return 0;
}
