/* The steps of conjugate gradients on some rows: operators/steps.py says what each of them does.

   Arrays hold n rows of K lines, in single precision. Every number comes from the same operations in the same order as
   in steps.py. (On ARM it is SciPy that fuses them: there the two differ in their last digits.) */

#define NAMED(name) JOIN(name, WIDTH)
#define INSIDE PROCESSOR static inline __attribute__((always_inline))
#define VECTORS (LINE / WIDTH) /* of a line */
#define vector NAMED(vector)

typedef float vector __attribute__((vector_size(4 * WIDTH), aligned(4), may_alias)); /* aligned as a float is */

/* How sums over rows are taken: slabs of rows are added up one after the other, then the rows of that by halves. */
#ifndef SUMS
#define SUMS
typedef struct {
    int64_t sum_rows, slab_rows;
    void *slab;   /* (slab_rows, K lines) */
    double *sums; /* (sums, K lines) */
} Sums;
#endif

INSIDE void NAMED(add_to_slab)(const Sums *s, int64_t i, int64_t V, int64_t v, const vector *value)
{
    int64_t row = i % s->sum_rows;
    vector *place = (vector *)s->slab + row % s->slab_rows * V + v;
    if (row < s->slab_rows) *place = *value;
    else *place += *value;
}

/* After the last row of a sum, or of all n: what is in the slab becomes a sum. */
INSIDE void NAMED(end_row)(const Sums *s, int64_t i, int64_t n, int64_t V)
{
    vector *slab = s->slab;
    int64_t rows = i % s->sum_rows + 1;
    if (rows < s->sum_rows && i < n - 1) return;
    rows = rows < s->slab_rows ? rows : s->slab_rows;
    while (rows > 1) {
        int64_t half = rows / 2;
        for (int64_t v = 0; v < half * V; v++) slab[v] += slab[(rows - half) * V + v];
        rows -= half;
    }
    for (int64_t c = 0; c < V * WIDTH; c++) s->sums[i / s->sum_rows * V * WIDTH + c] = slab[c / WIDTH][c % WIDTH];
}

/* x <- x + step p */
PROCESSOR void NAMED(follow)(int64_t n, int64_t K, vector *x, const vector *p, const vector *step)
{
    int64_t V = K * VECTORS;
    for (int64_t i = 0; i < n; i++, x += V, p += V)
        for (int64_t v = 0; v < V; v++) x[v] += step[v] * p[v];
}

/* x <- x + step p, then p <- beta p + moving (r + entry y); y (groups, K) is that of the row's group, where there are any */
PROCESSOR void NAMED(turn)(int64_t n, int64_t K, vector *x, vector *p, const vector *r, const vector *step,
                           const vector *beta, const vector *moving, const float *entry, const int32_t *group,
                           const vector *y)
{
    int64_t V = K * VECTORS;
    for (int64_t i = 0; i < n; i++, x += V, p += V, r += V)
        for (int64_t v = 0; v < V; v++) {
            x[v] += step[v] * p[v];
            p[v] = beta[v] * p[v] + moving[v] * r[v];
            if (group) p[v] += moving[v] * (entry[i] * y[group[i] * V + v]);
        }
}

/* q <- A p, and sums of p q; p holds all rows, own those of A */
PROCESSOR void NAMED(multiply)(int64_t n, int64_t K, const int32_t *indptr, const int32_t *indices, const float *data,
                               const vector *p, const vector *own, vector *q, Sums s)
{
    int64_t V = K * VECTORS;
    for (int64_t i = 0; i < n; i++, own += V, q += V) {
        for (int64_t k = 0; k < V; k += VECTORS) {
            vector sum[VECTORS];
            for (int64_t v = 0; v < VECTORS; v++) sum[v] = (vector){0};
            for (int32_t j = indptr[i]; j < indptr[i + 1]; j++)
                for (int64_t v = 0; v < VECTORS; v++) sum[v] += data[j] * p[indices[j] * V + k + v];
            for (int64_t v = 0; v < VECTORS; v++) {
                q[k + v] = sum[v];
                sum[v] *= own[k + v];
                NAMED(add_to_slab)(&s, i, V, k + v, sum + v);
            }
        }
        NAMED(end_row)(&s, i, n, V);
    }
}

/* r <- r - step q, and sums of r r */
PROCESSOR void NAMED(move)(int64_t n, int64_t K, vector *r, const vector *q, const vector *step, Sums s)
{
    int64_t V = K * VECTORS;
    for (int64_t i = 0; i < n; i++, r += V, q += V) {
        for (int64_t v = 0; v < V; v++) {
            r[v] -= step[v] * q[v];
            vector square = r[v] * r[v];
            NAMED(add_to_slab)(&s, i, V, v, &square);
        }
        NAMED(end_row)(&s, i, n, V);
    }
}

#undef NAMED
#undef INSIDE
#undef VECTORS
#undef vector
