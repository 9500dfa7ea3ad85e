/* Monte Carlo. A sample is the mean of a path and its antithetic path. The control variate is the discounted value at
 * expiry of the bond that matures at the end of the swap: its mean is the price of this bond today, so the error of the
 * simulated mean shows how far the payoff is off. */
#include <math.h>
#include <stdlib.h>

#include "swaptions.h"

typedef struct {
    double payoff, control;
} sample;

typedef struct {
    double payoff, control, payoff_squares, control_squares, product;
    long count;
} sums;

static void sample_block(const model *m, paths *p, const swaption *s, uint64_t *state, sample *into, long *exercised) {
    int expiry = (int)(s->expiry / m->step + 0.5);
    draw_shocks(p, m, state);
    for (int path = 0; path < BLOCK; path++) into[path].payoff = into[path].control = 0;
    for (int half = 0; half < 2; half++) {
        if (half) mirror_shocks(p, m);
        simulate_paths(p, m);
        for (int path = 0; path < BLOCK; path++) {
            double payoff = payoff_on_path(m, p, s, path);
            double control =
                discount_to(m, p, expiry, path) * bond_on_path(m, p, expiry, m->steps - expiry, path);
            into[path].payoff += 0.5 * payoff;
            into[path].control += 0.5 * control;
            *exercised += payoff > 0;
        }
    }
}

static void add_sample(sums *all, const sample *one) {
    all->payoff += one->payoff;
    all->control += one->control;
    all->payoff_squares += one->payoff * one->payoff;
    all->control_squares += one->control * one->control;
    all->product += one->payoff * one->control;
    all->count++;
}

/* The standard error of a mean. */
static double error_of(double variance, long count) { return count > 1 && variance > 0 ? sqrt(variance / (double)count) : 0; }

static estimate estimate_of(const sums *all, double known) {
    estimate e;
    double n = (double)all->count, payoff = all->payoff / n, control = all->control / n;
    double payoff_variance = all->payoff_squares / n - payoff * payoff;
    double control_variance = all->control_squares / n - control * control;
    double covariance = all->product / n - payoff * control;
    e.coefficient = control_variance > 1e-18 ? covariance / control_variance : 0;
    e.plain = payoff;
    e.plain_error = error_of(payoff_variance, all->count);
    e.price = payoff - e.coefficient * (control - known);
    e.error = error_of(payoff_variance - e.coefficient * covariance, all->count);
    e.forward_bond = control;
    e.trials = 2 * all->count;
    e.exercised = 0;
    return e;
}

estimate price_swaption(const swaption *s, long trials, int steps_per_year, uint64_t seed) {
    model m;
    paths p;
    sums all = {0, 0, 0, 0, 0, 0};
    long exercised = 0;
    sample *block = allocate(BLOCK, sizeof *block);
    uint64_t state = seed;
    open_model(&m, s, steps_per_year);
    open_paths(&p, &m);
    while (all.count < trials) {
        sample_block(&m, &p, s, &state, block, &exercised);
        for (int path = 0; path < BLOCK; path++) add_sample(&all, &block[path]);
    }
    estimate e = estimate_of(&all, bond_price(&m, m.steps));
    e.exercised = exercised;
    close_paths(&p);
    close_model(&m);
    free(block);
    return e;
}
