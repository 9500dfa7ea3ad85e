/* Not pseudo-deterministic: threads take work from a queue under a lock. There is no data race, but the schedule determines
 * which thread takes which item: critical sections can occur in another order. */
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int next, squares[12];

static void *work(void *given) {
    (void)given;
    for (;;) {
        pthread_mutex_lock(&lock);
        int mine = next++;
        pthread_mutex_unlock(&lock);
        if (mine >= 12) return NULL;
        squares[mine] = mine * mine;
    }
}

int main(void) {
    pthread_t one, two;
    pthread_create(&one, NULL, work, NULL);
    pthread_create(&two, NULL, work, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    int sum = 0;
    for (int i = 0; i < 12; i++) sum += squares[i];
    printf("%d\n", sum);
    return 0;
}
