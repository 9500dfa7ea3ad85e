/* Not pseudo-deterministic: two threads increment a counter without a lock. */
#include <pthread.h>
#include <stdio.h>

static int counter;

static void *work(void *given) {
    (void)given;
    for (int i = 0; i < 10; i++) counter++;
    return NULL;
}

int main(void) {
    pthread_t one, two;
    pthread_create(&one, NULL, work, NULL);
    pthread_create(&two, NULL, work, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    printf("%d\n", counter);
    return 0;
}
