/* The curve at time 0: forward rates from yields, three factors of volatility, and the drift that excludes arbitrage. */
#include <math.h>
#include <stdlib.h>

#include "swaptions.h"

/* The yield of a bond that matures after this many years. */
static double yield_at(const swaption *s, double years) { return s->yield + s->slope * years; }

/* The forward rate of a step is the growth of yield times maturity over the step. */
static void find_forward(model *m, const swaption *s) {
    for (int i = 0; i < m->steps; i++) {
        double from = i * m->step, to = (i + 1) * m->step;
        m->forward[i] = (to * yield_at(s, to) - from * yield_at(s, from)) / m->step;
    }
}

/* Level, slope and curvature: a constant, a decreasing and a humped function of the time to maturity. */
static double factor_at(const swaption *s, int factor, double years) {
    switch (factor) {
        case 0: return s->volatility;
        case 1: return 0.5 * s->volatility * exp(-0.5 * years);
        default: return 0.3 * s->volatility * years * exp(-years);
    }
}

static void find_factors(model *m, const swaption *s) {
    for (int f = 0; f < FACTORS; f++)
        for (int i = 0; i < m->steps; i++) m->volatility[f * m->steps + i] = factor_at(s, f, i * m->step);
}

/* In discrete time, discounted bonds are martingales if the drift of the rate with maturity i is the difference of
 * half the squares of the cumulated volatilities up to i and up to i - 1, divided by the step. */
static void find_drift(model *m) {
    for (int i = 0; i < m->steps; i++) m->drift[i] = 0;
    for (int f = 0; f < FACTORS; f++) {
        double sum = 0, before = 0;
        for (int i = 0; i < m->steps; i++) {
            sum += m->volatility[f * m->steps + i] * m->step;
            double now = 0.5 * sum * sum;
            m->drift[i] += (now - before) / m->step;
            before = now;
        }
    }
}

void open_model(model *m, const swaption *s, int steps_per_year) {
    m->step = 1.0 / steps_per_year;
    m->steps = (int)((s->expiry + s->tenor) * steps_per_year + 0.5);
    m->forward = allocate((size_t)m->steps, sizeof(double));
    m->volatility = allocate((size_t)(FACTORS * m->steps), sizeof(double));
    m->drift = allocate((size_t)m->steps, sizeof(double));
    find_forward(m, s);
    find_factors(m, s);
    find_drift(m);
}

void close_model(model *m) {
    free(m->drift);
    free(m->volatility);
    free(m->forward);
}

double bond_price(const model *m, int maturity) {
    double sum = 0;
    for (int i = 0; i < maturity; i++) sum += m->forward[i];
    return exp(-sum * m->step);
}
