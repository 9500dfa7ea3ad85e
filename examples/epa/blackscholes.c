/* Black-Scholes prices of a portfolio of European options, the options distributed over threads.
 * Usage: blackscholes [THREADS] [OPTIONS] */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    double spot, strike, rate, volatility, time;
    int put;
} option;

static int threads, n;
static option *options;
static double *prices;

static double normal(double x) {
    double k = 1.0 / (1.0 + 0.2316419 * fabs(x));
    double tail = 0.3989422804 * exp(-x * x / 2) *
                  k * (0.319381530 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))));
    return x < 0 ? tail : 1.0 - tail;
}

static double price(const option *o) {
    double root = o->volatility * sqrt(o->time);
    double d1 = (log(o->spot / o->strike) + (o->rate + o->volatility * o->volatility / 2) * o->time) / root;
    double d2 = d1 - root, discounted = o->strike * exp(-o->rate * o->time);
    if (o->put) return discounted * normal(-d2) - o->spot * normal(-d1);
    return o->spot * normal(d1) - discounted * normal(d2);
}

static void *work(void *given) {
    long me = (long)given;
    int from = n * me / threads, to = n * (me + 1) / threads;
    for (int i = from; i < to; i++) prices[i] = price(&options[i]);
    return NULL;
}

int main(int argc, char **argv) {
    threads = argc > 1 ? atoi(argv[1]) : 3;
    n = argc > 2 ? atoi(argv[2]) : 24;
    options = malloc(n * sizeof *options);
    prices = malloc(n * sizeof *prices);
    for (int i = 0; i < n; i++) {
        options[i].spot = 80 + i % 41;
        options[i].strike = 90 + i % 23;
        options[i].rate = 0.01 + 0.002 * (i % 5);
        options[i].volatility = 0.1 + 0.05 * (i % 7);
        options[i].time = 0.25 * (1 + i % 4);
        options[i].put = i % 2;
    }
    pthread_t *ids = malloc(threads * sizeof *ids);
    for (long t = 0; t < threads; t++) pthread_create(&ids[t], NULL, work, (void *)t);
    for (int t = 0; t < threads; t++) pthread_join(ids[t], NULL);
    double sum = 0;
    for (int i = 0; i < n; i++) sum += prices[i];
    printf("sum %.9f\n", sum);
    free(ids);
    free(prices);
    free(options);
    return 0;
}
