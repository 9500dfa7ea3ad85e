// Peterson's algorithm: two threads wait for each other by reading.
// verdict: true
#include <assert.h>
#include <pthread.h>

int interested[2];
int turn = 0, inside = 0;

void *zero(void *unused) {
    interested[0] = 1;
    turn = 1;
    while (interested[1] == 1 && turn == 1) {
    }
    inside = inside + 1;
    assert(inside == 1);
    inside = inside - 1;
    interested[0] = 0;
    return 0;
}

void *one(void *unused) {
    interested[1] = 1;
    turn = 0;
    while (interested[0] == 1 && turn == 0) {
    }
    inside = inside + 1;
    assert(inside == 1);
    inside = inside - 1;
    interested[1] = 0;
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
