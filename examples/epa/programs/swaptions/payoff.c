/* What a swaption pays on a path. */
#include <math.h>

#include "swaptions.h"

static double rate(const model *m, const paths *p, int time, int maturity, int path) {
    return p->rates[((int64_t)time * m->steps + maturity) * BLOCK + path];
}

/* The value today of 1 at a time: discounted by the short rates of the path. */
double discount_to(const model *m, const paths *p, int time, int path) {
    double sum = 0;
    for (int i = 0; i < time; i++) sum += rate(m, p, i, 0, path);
    return exp(-sum * m->step);
}

/* The price at a time of 1 that is paid `maturity` steps later. */
double bond_on_path(const model *m, const paths *p, int time, int maturity, int path) {
    double sum = 0;
    for (int i = 0; i < maturity; i++) sum += rate(m, p, time, i, path);
    return exp(-sum * m->step);
}

/* At expiry, the floating side is worth 1 - bond(end), and the fixed side strike * interval * sum of bonds. */
double payoff_on_path(const model *m, const paths *p, const swaption *s, int path) {
    int expiry = (int)(s->expiry / m->step + 0.5), every = (int)(s->interval / m->step + 0.5);
    int length = (int)(s->tenor / m->step + 0.5);
    double annuity = 0, bond = 1;
    for (int at = every; at <= length; at += every) {
        bond = bond_on_path(m, p, expiry, at, path);
        annuity += s->interval * bond;
    }
    double value = 1.0 - bond - s->strike * annuity;
    return value > 0 ? value * discount_to(m, p, expiry, path) : 0;
}
