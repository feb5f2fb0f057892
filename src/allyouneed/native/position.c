/* Sines and cosines of positions, §3.5:

     PE(pos, 2i)     = sin(pos / 10000^(2i / width))
     PE(pos, 2i + 1) = cos(pos / 10000^(2i / width))

   C libraries differ in the last bit of exp and sin. These series are the same everywhere. */

#include "model.h"

static const double HALF_PI = 1.57079632679489662, HALF_PI_REST = 6.123233995736766e-17;

static double exponential(double x) {
    const double tenth = x / 1024;
    double sum = 1, term = 1;
    for (int n = 1; n < 12; n++) {
        term *= tenth / n;
        sum += term;
    }
    for (int n = 0; n < 10; n++) sum *= sum; /* exp x = (exp x/1024)^1024 */
    return sum;
}

/* Both series on −π/4 … π/4, where 12 terms are exact to the last bits. */
static void sine_and_cosine(double angle, double *sine, double *cosine) {
    const long long quarter = (long long)(angle / HALF_PI + 0.5);
    const double rest = (angle - quarter * HALF_PI) - quarter * HALF_PI_REST, square = rest * rest;
    double s = rest, c = 1, s_term = rest, c_term = 1;
    for (int n = 1; n < 12; n++) {
        c_term *= -square / ((2 * n - 1) * (2 * n));
        s_term *= -square / ((2 * n) * (2 * n + 1));
        c += c_term;
        s += s_term;
    }
    switch (quarter % 4) {
        case 0: *sine = s, *cosine = c; break;
        case 1: *sine = c, *cosine = -s; break;
        case 2: *sine = -s, *cosine = -c; break;
        default: *sine = -c, *cosine = s;
    }
}

/* One row, of an even width. */
void sines_at(int position, int width, float *out) {
    for (int i = 0; i < width; i += 2) {
        double sine, cosine;
        sine_and_cosine(position * exponential(-9.210340371976184 * i / width), &sine, &cosine); /* ln 10000 */
        out[i] = (float)sine;
        out[i + 1] = (float)cosine;
    }
}
