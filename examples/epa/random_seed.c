/* Not pseudo-deterministic: the result depends on the time and on the process (local determinism, condition 1 of
 * Definition 5 of Saissi 2019). */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int main(void) {
    srand((unsigned)time(NULL) ^ (unsigned)getpid());
    printf("%d\n", rand() % 100);
    return 0;
}
