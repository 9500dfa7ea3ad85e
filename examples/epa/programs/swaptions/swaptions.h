/* Swaptions in the model of Heath, Jarrow and Morton (HJM): what the files of this program share.
 *
 * normal.c      the inverse of the normal distribution, and draws from it
 * curve.c       yields, forward rates, and the factors of their volatility
 * paths.c       simulates blocks of paths of the forward curve
 * payoff.c      discounts, swap rates, and what a swaption pays on a path
 * pricing.c     Monte Carlo: mean, standard error, antithetic paths, control variate
 * main.c        the command line, the portfolio, threads, and the output */
#ifndef SWAPTIONS_H
#define SWAPTIONS_H

#include <stdint.h>

#include "../support.h"

#define FACTORS 3
#define BLOCK 8 /* paths that are simulated together */
#define COLUMNS 7

/* A payer swaption: the right to pay the fixed rate `strike` in a swap that starts at `expiry`. */
typedef struct {
    double strike;
    double expiry;   /* in years: when the option can be used, and the swap begins */
    double tenor;    /* the length of the swap in years */
    double interval; /* between two payments, in years */
    double yield, slope; /* the yield curve at time 0: yield + slope * years */
    double volatility;   /* the first factor; the others follow from it */
} swaption;

typedef struct {
    double price, error;     /* with control variate */
    double plain, plain_error;
    double forward_bond;     /* the control: the bond at the end of the swap; its price is known */
    double coefficient;
    long trials, exercised;
} estimate;

/* The time of a simulation in equal steps, and the curve at time 0. */
typedef struct {
    int steps;
    double step;               /* in years */
    double *forward;           /* of each step, at time 0 */
    double *volatility;        /* FACTORS rows of `steps` values, by the time to maturity */
    double *drift;             /* of the sum of the factors, by the time to maturity */
} model;

/* The forward curve along a block of paths: rates[(time * steps + maturity) * BLOCK + path]. */
typedef struct {
    double *rates;
    double *shocks; /* [(time * FACTORS + factor) * BLOCK + path] */
} paths;

double inverse_normal(double probability);
void draw_normals(uint64_t *state, double *into, int count);

void open_model(model *m, const swaption *s, int steps_per_year);
void close_model(model *m);
double bond_price(const model *m, int maturity);

void open_paths(paths *p, const model *m);
void close_paths(paths *p);
void draw_shocks(paths *p, const model *m, uint64_t *state);
void mirror_shocks(paths *p, const model *m);
void simulate_paths(paths *p, const model *m);

double discount_to(const model *m, const paths *p, int time, int path);
double bond_on_path(const model *m, const paths *p, int time, int maturity, int path);
double payoff_on_path(const model *m, const paths *p, const swaption *s, int path);

estimate price_swaption(const swaption *s, long trials, int steps_per_year, uint64_t seed);

#endif
