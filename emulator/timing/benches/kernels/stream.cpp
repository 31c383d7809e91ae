// Streaming kernels in f64, an element for each work-item, after the description of RRZE's gpu-stream.
#include "common.h"

#define AT (GX * n_group + LX)

KERNEL SIZE_GROUP void init(double *a, u32 n_group) { a[AT] = 0.23; }
KERNEL SIZE_GROUP void read(double *a, double *b, u32 n_group) {
    double value = b[AT];
    if (value == 1.2345) a[AT] = value;
}
KERNEL SIZE_GROUP void scale(double *a, double *b, u32 n_group) { a[AT] = b[AT] * 1.2; }
KERNEL SIZE_GROUP void triad(double *a, double *b, double *c, double *d, u32 n_group) {
    a[AT] = b[AT] * d[AT] + c[AT];
}
KERNEL SIZE_GROUP void stencil3(double *a, double *b, u32 n_group) {
    u32 i = AT;
    a[i + 1] = (b[i] + b[i + 1] + b[i + 2]) * 0.3;
}
KERNEL SIZE_GROUP void stencil5(double *a, double *b, u32 n_group) {
    u32 i = AT;
    a[i + 2] = (b[i] + b[i + 1] + b[i + 2] + b[i + 3] + b[i + 4]) * 0.2;
}
