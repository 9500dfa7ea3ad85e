/* Monte Carlo prices of swaptions in a one-factor model. Each swaption has its own random generator, with its number as
 * the seed. So the result does not depend on the thread that computes it. Usage: swaptions [THREADS] [SWAPTIONS] [TRIALS] */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define STEPS 4

typedef struct {
    double strike, rate, volatility, mean, error;
} swaption;

static int threads, n, trials;
static swaption *swaptions;

static double uniform(unsigned long *state) {
    *state = *state * 6364136223846793005ul + 1442695040888963407ul;
    return ((double)(*state >> 33) + 0.5) / 2147483648.0;
}

static double gaussian(unsigned long *state) {
    double sum = 0;
    for (int i = 0; i < 6; i++) sum += uniform(state);
    return (sum - 3.0) * 1.4142135623730951;
}

static void simulate(swaption *s, unsigned long state) {
    double sum = 0, squares = 0;
    double *path = malloc((STEPS + 1) * sizeof *path);
    for (int t = 0; t < trials; t++) {
        path[0] = s->rate;
        double discount = 1.0;
        for (int i = 0; i < STEPS; i++) {
            path[i + 1] = path[i] * exp(s->volatility * gaussian(&state) - s->volatility * s->volatility / 2);
            discount /= 1.0 + path[i] / STEPS;
        }
        double payoff = path[STEPS] > s->strike ? (path[STEPS] - s->strike) * discount : 0.0;
        sum += payoff;
        squares += payoff * payoff;
    }
    s->mean = sum / trials;
    s->error = sqrt((squares - sum * sum / trials) / trials);
    free(path);
}

static void *work(void *given) {
    long me = (long)given;
    for (int i = n * me / threads; i < n * (me + 1) / threads; i++) simulate(&swaptions[i], 1000ul + i);
    return NULL;
}

int main(int argc, char **argv) {
    threads = argc > 1 ? atoi(argv[1]) : 4;
    n = argc > 2 ? atoi(argv[2]) : 8;
    trials = argc > 3 ? atoi(argv[3]) : 6;
    swaptions = malloc(n * sizeof *swaptions);
    for (int i = 0; i < n; i++) {
        swaptions[i].strike = 0.04 + 0.001 * i;
        swaptions[i].rate = 0.05;
        swaptions[i].volatility = 0.1 + 0.01 * (i % 5);
    }
    pthread_t *ids = malloc(threads * sizeof *ids);
    for (long t = 0; t < threads; t++) pthread_create(&ids[t], NULL, work, (void *)t);
    for (int t = 0; t < threads; t++) pthread_join(ids[t], NULL);
    for (int i = 0; i < n; i++) printf("%d: %.8f %.8f\n", i, swaptions[i].mean, swaptions[i].error);
    free(ids);
    free(swaptions);
    return 0;
}
