/* Paths of the forward curve. All paths of a block are simulated together, step by step: the rates of the next time have
 * one maturity less, and each gets its drift and the shocks of the factors. */
#include <math.h>
#include <stdlib.h>

#include "swaptions.h"

static double *rates_at(const paths *p, const model *m, int time, int maturity) {
    return p->rates + ((int64_t)time * m->steps + maturity) * BLOCK;
}

static double *shocks_at(const paths *p, int time, int factor) {
    return p->shocks + ((int64_t)time * FACTORS + factor) * BLOCK;
}

void open_paths(paths *p, const model *m) {
    p->rates = allocate((size_t)(m->steps * m->steps * BLOCK), sizeof(double));
    p->shocks = allocate((size_t)(m->steps * FACTORS * BLOCK), sizeof(double));
}

void close_paths(paths *p) {
    free(p->shocks);
    free(p->rates);
}

void draw_shocks(paths *p, const model *m, uint64_t *state) {
    for (int path = 0; path < BLOCK; path++) {
        for (int time = 0; time < m->steps; time++) {
            double three[FACTORS];
            draw_normals(state, three, FACTORS);
            for (int f = 0; f < FACTORS; f++) shocks_at(p, time, f)[path] = three[f];
        }
    }
}

/* Antithetic paths: the opposite shocks are as likely, and their errors cancel in part. */
void mirror_shocks(paths *p, const model *m) {
    for (int time = 0; time < m->steps; time++)
        for (int f = 0; f < FACTORS; f++)
            for (int path = 0; path < BLOCK; path++) shocks_at(p, time, f)[path] = -shocks_at(p, time, f)[path];
}

static void first_rates(paths *p, const model *m) {
    for (int i = 0; i < m->steps; i++)
        for (int path = 0; path < BLOCK; path++) rates_at(p, m, 0, i)[path] = m->forward[i];
}

static void next_rates(paths *p, const model *m, int time) {
    double root = sqrt(m->step);
    for (int i = 0; i < m->steps - time; i++) {
        const double *before = rates_at(p, m, time - 1, i + 1);
        double *now = rates_at(p, m, time, i);
        for (int path = 0; path < BLOCK; path++) {
            double change = m->drift[i] * m->step;
            for (int f = 0; f < FACTORS; f++)
                change += m->volatility[f * m->steps + i] * root * shocks_at(p, time - 1, f)[path];
            now[path] = before[path] + change;
        }
    }
}

void simulate_paths(paths *p, const model *m) {
    first_rates(p, m);
    for (int time = 1; time < m->steps; time++) next_rates(p, m, time);
}
