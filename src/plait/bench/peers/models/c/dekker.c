// Dekker's algorithm: a thread steps back while it is the other thread's turn.
// verdict: true
#include <assert.h>
#include <pthread.h>

int wants0 = 0, wants1 = 0, turn = 0, inside = 0;

void *zero(void *unused) {
    wants0 = 1;
    while (wants1 == 1) {
        if (turn != 0) {
            wants0 = 0;
            while (turn != 0) {
            }
            wants0 = 1;
        }
    }
    inside = inside + 1;
    assert(inside == 1);
    inside = inside - 1;
    turn = 1;
    wants0 = 0;
    return 0;
}

void *one(void *unused) {
    wants1 = 1;
    while (wants0 == 1) {
        if (turn != 1) {
            wants1 = 0;
            while (turn != 1) {
            }
            wants1 = 1;
        }
    }
    inside = inside + 1;
    assert(inside == 1);
    inside = inside - 1;
    turn = 0;
    wants1 = 0;
    return 0;
}

int main(void) {
    pthread_t a, b;
    pthread_create(&a, 0, zero, 0);
    pthread_create(&b, 0, one, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    return 0;
}
