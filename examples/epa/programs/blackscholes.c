/* Prices and risks of a portfolio of European options (Black, Scholes and Merton). The options are divided among threads.
 * Each thread prices its options, computes their sensitivities, and finds the volatility that is implied by the price at
 * the market, with Newton's method and bisection. Main adds up the portfolio and lists the options whose market price
 * violates the bounds that hold without any model.
 *
 * Usage: blackscholes generate FILE OPTIONS [SEED]
 *        blackscholes THREADS FILE [DETAILS]
 *
 * The output has the value and the risks of the portfolio, by kind of option and by year of expiry, the implied
 * volatilities, and the first DETAILS options one by one. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

#define COLUMNS 8
#define YEARS 4
#define LOWEST 0.001  /* of implied volatilities */
#define HIGHEST 5.0
#define STEPS 60

typedef struct {
    double spot, strike, rate, dividend, volatility, time;
    double market;   /* the price at the market */
    double quantity; /* negative: sold; the sign of the strike is the kind, a put is negative in the file */
    int put;
} option;

typedef struct {
    double price, delta, gamma, vega, theta, rho;
} risks;

typedef struct {
    risks one;
    double implied; /* volatility; negative if there is none */
    int steps;
    int arbitrage;  /* the market price is outside of its bounds */
} result;

typedef struct {
    const option *options;
    result *results;
    int64_t from, to;
    double worst_parity; /* the largest error of put-call parity */
    int64_t newton, bisections;
} task;

static double density(double x) { return 0.3989422804014327 * exp(-0.5 * x * x); }

/* The normal distribution function, by the polynomial 26.2.17 of Abramowitz and Stegun: the error is below 7.5e-8. */
static double normal(double x) {
    double k = 1.0 / (1.0 + 0.2316419 * fabs(x));
    double power = k, sum = 0.319381530 * power;
    power *= k;
    sum -= 0.356563782 * power;
    power *= k;
    sum += 1.781477937 * power;
    power *= k;
    sum -= 1.821255978 * power;
    power *= k;
    sum += 1.330274429 * power;
    double tail = density(x) * sum;
    return x < 0 ? tail : 1.0 - tail;
}

/* The terms that price and sensitivities share. */
typedef struct {
    double root, d1, d2;
    double spot, strike; /* discounted by the dividend and by the rate */
} terms;

static terms terms_of(const option *o, double volatility) {
    terms t;
    t.root = sqrt(o->time);
    double spread = volatility * t.root;
    t.d1 = (log(o->spot / o->strike) + (o->rate - o->dividend + 0.5 * volatility * volatility) * o->time) / spread;
    t.d2 = t.d1 - spread;
    t.spot = o->spot * exp(-o->dividend * o->time);
    t.strike = o->strike * exp(-o->rate * o->time);
    return t;
}

static double price_of(const option *o, const terms *t) {
    if (o->put) return t->strike * normal(-t->d2) - t->spot * normal(-t->d1);
    return t->spot * normal(t->d1) - t->strike * normal(t->d2);
}

static risks risks_of(const option *o) {
    terms t = terms_of(o, o->volatility);
    double sign = o->put ? -1.0 : 1.0, discount = exp(-o->dividend * o->time);
    risks r;
    r.price = price_of(o, &t);
    r.delta = sign * discount * normal(sign * t.d1);
    r.gamma = discount * density(t.d1) / (o->spot * o->volatility * t.root);
    r.vega = t.spot * density(t.d1) * t.root;
    r.theta = -t.spot * density(t.d1) * o->volatility / (2.0 * t.root) - sign * o->rate * t.strike * normal(sign * t.d2) +
              sign * o->dividend * t.spot * normal(sign * t.d1);
    r.rho = sign * o->time * t.strike * normal(sign * t.d2);
    return r;
}

/* Call - put = discounted spot - discounted strike, whatever the model. */
static double parity_error(const option *o, const terms *t) {
    option other = *o;
    other.put = !o->put;
    double difference = price_of(o, t) - price_of(&other, t), expected = t->spot - t->strike;
    return fabs(difference - (o->put ? -expected : expected));
}

/* Without a model: a call is worth at least the forward, and at most the spot. */
static int outside_bounds(const option *o) {
    double spot = o->spot * exp(-o->dividend * o->time), strike = o->strike * exp(-o->rate * o->time);
    double least = o->put ? strike - spot : spot - strike, most = o->put ? strike : spot;
    return o->market < (least > 0 ? least : 0) || o->market > most;
}

/* Newton's method from the volatility of the model. A step that leaves the interval is replaced by a bisection. */
static void imply(const option *o, result *r, task *t) {
    double low = LOWEST, high = HIGHEST, at = o->volatility;
    r->implied = -1;
    for (r->steps = 1; r->steps <= STEPS; r->steps++) {
        terms now = terms_of(o, at);
        double error = price_of(o, &now) - o->market, slope = now.spot * density(now.d1) * now.root;
        if (fabs(error) < 1e-9 * o->spot) {
            r->implied = at;
            return;
        }
        if (error > 0)
            high = at;
        else
            low = at;
        double next = slope > 1e-8 * o->spot ? at - error / slope : -1;
        if (next > low && next < high) {
            t->newton++;
        } else {
            next = 0.5 * (low + high);
            t->bisections++;
        }
        if (high - low < 1e-12) return;
        at = next;
    }
}

static void *work(void *given) {
    task *t = given;
    for (int64_t i = t->from; i < t->to; i++) {
        const option *o = &t->options[i];
        result *r = &t->results[i];
        r->one = risks_of(o);
        terms own = terms_of(o, o->volatility);
        double error = parity_error(o, &own);
        if (error > t->worst_parity) t->worst_parity = error;
        r->arbitrage = outside_bounds(o);
        r->implied = -1;
        if (!r->arbitrage) imply(o, r, t);
    }
    return NULL;
}

static void add_risks(risks *sum, const risks *one, double quantity) {
    sum->price += quantity * one->price;
    sum->delta += quantity * one->delta;
    sum->gamma += quantity * one->gamma;
    sum->vega += quantity * one->vega;
    sum->theta += quantity * one->theta;
    sum->rho += quantity * one->rho;
}

static void append_risks(text *out, const char *name, const risks *r, int64_t count) {
    char line[240];
    snprintf(line, sizeof line, "%s: %ld options, value %.6f delta %.6f gamma %.6f vega %.6f theta %.6f rho %.6f\n", name,
             (long)count, r->price, r->delta, r->gamma, r->vega, r->theta, r->rho);
    append(out, line);
}

static void append_implied(text *out, const result *results, int64_t n) {
    char line[200];
    double least = HIGHEST, most = 0, sum = 0;
    int64_t found = 0, arbitrage = 0, steps = 0;
    for (int64_t i = 0; i < n; i++) {
        arbitrage += results[i].arbitrage;
        steps += results[i].steps;
        if (results[i].implied < 0) continue;
        found++;
        sum += results[i].implied;
        if (results[i].implied < least) least = results[i].implied;
        if (results[i].implied > most) most = results[i].implied;
    }
    snprintf(line, sizeof line, "implied volatility: %ld found in %ld steps", (long)found, (long)steps);
    append(out, line);
    if (found) {
        snprintf(line, sizeof line, ", from %.6f to %.6f, mean %.6f", least, most, sum / (double)found);
        append(out, line);
    }
    snprintf(line, sizeof line, "\nmarket prices out of bounds: %ld\n", (long)arbitrage);
    append(out, line);
}

static void describe(const option *options, const result *results, int64_t n, int64_t details) {
    char name[60], line[240];
    text out = {NULL, 0, 0};
    risks all, kinds[2], years[YEARS];
    int64_t in_kind[2] = {0, 0}, in_year[YEARS] = {0};
    memset(&all, 0, sizeof all);
    memset(kinds, 0, sizeof kinds);
    memset(years, 0, sizeof years);
    for (int64_t i = 0; i < n; i++) {
        const option *o = &options[i];
        int year = o->time < YEARS ? (int)o->time : YEARS - 1;
        add_risks(&all, &results[i].one, o->quantity);
        add_risks(&kinds[o->put], &results[i].one, o->quantity);
        add_risks(&years[year], &results[i].one, o->quantity);
        in_kind[o->put]++;
        in_year[year]++;
    }
    append_risks(&out, "portfolio", &all, n);
    append_risks(&out, "calls", &kinds[0], in_kind[0]);
    append_risks(&out, "puts", &kinds[1], in_kind[1]);
    for (int y = 0; y < YEARS; y++) {
        if (in_year[y] == 0) continue;
        snprintf(name, sizeof name, "expiry in year %d", y + 1);
        append_risks(&out, name, &years[y], in_year[y]);
    }
    append_implied(&out, results, n);
    for (int64_t i = 0; i < n && i < details; i++) {
        snprintf(line, sizeof line, "%s %ld: %.8f %.8f %.8f %.8f %.8f %.8f implied %.8f\n", options[i].put ? "put" : "call",
                 (long)i, results[i].one.price, results[i].one.delta, results[i].one.gamma, results[i].one.vega,
                 results[i].one.theta, results[i].one.rho, results[i].implied);
        append(&out, line);
    }
    print_text(&out);
}

/* A row of the file: spot, strike (negative for a put), rate, dividend, volatility, time, market, quantity. */
static option option_of(const double *row, const char *file) {
    option o;
    o.spot = row[0];
    o.put = row[1] < 0;
    o.strike = fabs(row[1]);
    o.rate = row[2];
    o.dividend = row[3];
    o.volatility = row[4];
    o.time = row[5];
    o.market = row[6];
    o.quantity = row[7];
    if (!(o.spot > 0 && o.strike > 0 && o.volatility > 0 && o.time > 0 && o.market >= 0)) fail("has a wrong option", file);
    return o;
}

static void generate(int argc, char **argv) {
    if (argc < 4) fail("needs a file and a number of options", "generate");
    int64_t n = whole_number(argv[3], "OPTIONS", 1, 1 << 24);
    uint64_t state = argc > 4 ? (uint64_t)whole_number(argv[4], "SEED", 0, 1L << 40) : 1;
    double *values = allocate((size_t)(n * COLUMNS), sizeof *values);
    for (int64_t i = 0; i < n; i++) {
        double *row = values + i * COLUMNS;
        row[0] = 50.0 + 100.0 * next_uniform(&state);
        row[1] = row[0] * (0.7 + 0.6 * next_uniform(&state)) * (next_random(&state) & 1 ? 1 : -1);
        row[2] = 0.06 * next_uniform(&state);
        row[3] = 0.03 * next_uniform(&state);
        row[4] = 0.1 + 0.5 * next_uniform(&state);
        row[5] = 0.1 + 4.0 * next_uniform(&state);
        row[6] = 0;
        row[7] = (double)(next_random(&state) % 21) - 10.0;
        /* The market has another volatility than the model; one price of ten is out of its bounds. */
        option o = option_of(row, "generate");
        terms t = terms_of(&o, o.volatility * (0.8 + 0.4 * next_uniform(&state)));
        double market = price_of(&o, &t);
        row[6] = i % 10 == 9 ? o.spot + o.strike : market > 0 ? market : 0;
    }
    table data = {n, COLUMNS, values};
    write_table(argv[2], &data, sizeof *values);
    free(values);
}

int main(int argc, char **argv) {
    if (argc < 3) fail("usage: blackscholes generate FILE OPTIONS [SEED] | THREADS FILE [DETAILS]", "blackscholes");
    if (strcmp(argv[1], "generate") == 0) {
        generate(argc, argv);
        return 0;
    }
    int threads = (int)whole_number(argv[1], "THREADS", 1, 1000);
    table data = read_table(argv[2], sizeof(double));
    if (data.columns != COLUMNS) fail("is not a portfolio", argv[2]);
    int64_t n = data.rows, details = argc > 3 ? whole_number(argv[3], "DETAILS", 0, 1 << 24) : 4;
    option *options = allocate((size_t)n, sizeof *options);
    result *results = allocate_zeroed((size_t)n, sizeof *results);
    for (int64_t i = 0; i < n; i++) options[i] = option_of((const double *)data.values + i * COLUMNS, argv[2]);
    free(data.values);
    task *tasks = allocate_zeroed((size_t)threads, sizeof *tasks);
    for (int t = 0; t < threads; t++) {
        tasks[t].options = options;
        tasks[t].results = results;
        tasks[t].from = part_begin(n, threads, t);
        tasks[t].to = part_begin(n, threads, t + 1);
    }
    in_parallel(threads, work, tasks, sizeof *tasks);
    for (int t = 0; t < threads; t++)
        if (tasks[t].worst_parity > 1e-4) fail("put-call parity is violated", argv[2]);
    describe(options, results, n, details);
    free(tasks);
    free(results);
    free(options);
    return 0;
}
