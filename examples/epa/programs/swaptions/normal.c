/* The inverse of the normal distribution function: a rational approximation in the middle, another one in the tails
 * (P. J. Acklam), then one step of Halley's method with the error function. */
#include <math.h>

#include "swaptions.h"

#define LOW 0.02425

static const double A[] = {-3.969683028665376e+01, 2.209460984245205e+02,  -2.759285104469687e+02,
                           1.383577518672690e+02,  -3.066479806614716e+01, 2.506628277459239e+00};
static const double B[] = {-5.447609879822406e+01, 1.615858368580409e+02, -1.556989798598866e+02, 6.680131188771972e+01,
                           -1.328068155288572e+01};
static const double C[] = {-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e+00,
                           -2.549732539343734e+00, 4.374664141464968e+00,  2.938163982698783e+00};
static const double D[] = {7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00, 3.754408661907416e+00};

static double polynomial(const double *coefficients, int count, double x) {
    double sum = 0;
    for (int i = 0; i < count; i++) sum = sum * x + coefficients[i];
    return sum;
}

static double tail(double probability) {
    double q = sqrt(-2.0 * log(probability));
    return polynomial(C, 6, q) / (polynomial(D, 4, q) * q + 1.0);
}

static double middle(double probability) {
    double q = probability - 0.5, r = q * q;
    return polynomial(A, 6, r) * q / (polynomial(B, 5, r) * r + 1.0);
}

static double refined(double x, double probability) {
    double error = 0.5 * erfc(-x / 1.4142135623730951) - probability;
    double u = error * 2.5066282746310002 * exp(0.5 * x * x);
    return x - u / (1.0 + 0.5 * x * u);
}

double inverse_normal(double probability) {
    double x;
    if (probability <= 0 || probability >= 1) fail("is not between 0 and 1", "probability");
    if (probability < LOW)
        x = tail(probability);
    else if (probability > 1.0 - LOW)
        x = -tail(1.0 - probability);
    else
        x = middle(probability);
    return refined(x, probability);
}

void draw_normals(uint64_t *state, double *into, int count) {
    for (int i = 0; i < count; i++) into[i] = inverse_normal(next_uniform(state));
}
