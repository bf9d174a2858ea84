/* The steps of conjugate gradients on some rows: steps.py says what each of them does, compiled.py calls them.

   Arrays hold n rows of K lines, a line is 16 columns in single precision. Every number comes from the same operations
   in the same order as in steps.py, none fused with another (-ffp-contract=off), so it is the same to the bit on any
   processor. (On ARM it is SciPy that fuses them: there the two differ in their last digits.) Nothing is allocated,
   nothing is checked, no other library is needed. */

#include <stdint.h>

#define INTERFACE 1 /* compiled.py asks for this number, and loads nothing that answers with another one */
#define LINE 16

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define FOR_EACH_PROCESSOR __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define FOR_EACH_PROCESSOR
#endif

typedef float line __attribute__((vector_size(4 * LINE), aligned(4), may_alias)); /* memory is aligned as for a float */

/* How sums over rows are taken: slabs of rows are added up one after the other, then the rows of that by halves. */
typedef struct {
    int64_t sum_rows, slab_rows;
    line *slab;   /* (slab_rows, K) */
    double *sums; /* (sums, K lines) */
} Sums;

int32_t steps_interface(void) { return INTERFACE; }

/* Part of each function below for each processor, so it has to be inside of it. */
#define INSIDE static inline __attribute__((always_inline))

INSIDE void add_to_slab(const Sums *s, int64_t i, int64_t K, int64_t k, const line *value)
{
    int64_t row = i % s->sum_rows;
    line *place = s->slab + row % s->slab_rows * K + k;
    if (row < s->slab_rows) *place = *value;
    else *place += *value;
}

/* After the last row of a sum, or of all n: what is in the slab becomes a sum. */
INSIDE void end_row(const Sums *s, int64_t i, int64_t n, int64_t K)
{
    int64_t rows = i % s->sum_rows + 1;
    if (rows < s->sum_rows && i < n - 1) return;
    rows = rows < s->slab_rows ? rows : s->slab_rows;
    while (rows > 1) {
        int64_t half = rows / 2;
        for (int64_t k = 0; k < half * K; k++) s->slab[k] += s->slab[(rows - half) * K + k];
        rows -= half;
    }
    for (int64_t c = 0; c < K * LINE; c++) s->sums[i / s->sum_rows * K * LINE + c] = s->slab[c / LINE][c % LINE];
}

/* x <- x + step p */
FOR_EACH_PROCESSOR
void follow(int64_t n, int64_t K, line *x, const line *p, const line *step)
{
    for (int64_t i = 0; i < n; i++, x += K, p += K)
        for (int64_t k = 0; k < K; k++) x[k] += step[k] * p[k];
}

/* x <- x + step p, then p <- beta p + moving r + entry y; y (groups, K) is that of the row's group, where there are any */
FOR_EACH_PROCESSOR
void turn(int64_t n, int64_t K, line *x, line *p, const line *r, const line *step, const line *beta, const line *moving,
          const float *entry, const int32_t *group, const line *y)
{
    for (int64_t i = 0; i < n; i++, x += K, p += K, r += K)
        for (int64_t k = 0; k < K; k++) {
            x[k] += step[k] * p[k];
            p[k] = beta[k] * p[k] + moving[k] * r[k];
            if (group) p[k] += entry[i] * y[group[i] * K + k];
        }
}

/* q <- A p, and sums of p q; p holds all rows, own those of A */
FOR_EACH_PROCESSOR
void multiply(int64_t n, int64_t K, const int32_t *indptr, const int32_t *indices, const float *data, const line *p,
              const line *own, line *q, Sums s)
{
    for (int64_t i = 0; i < n; i++, own += K, q += K) {
        for (int64_t k = 0; k < K; k++) {
            line sum = {0};
            for (int32_t j = indptr[i]; j < indptr[i + 1]; j++) sum += data[j] * p[indices[j] * K + k];
            q[k] = sum;
            sum *= own[k];
            add_to_slab(&s, i, K, k, &sum);
        }
        end_row(&s, i, n, K);
    }
}

/* r <- r - step q, and sums of r r */
FOR_EACH_PROCESSOR
void move(int64_t n, int64_t K, line *r, const line *q, const line *step, Sums s)
{
    for (int64_t i = 0; i < n; i++, r += K, q += K) {
        for (int64_t k = 0; k < K; k++) {
            r[k] -= step[k] * q[k];
            line square = r[k] * r[k];
            add_to_slab(&s, i, K, k, &square);
        }
        end_row(&s, i, n, K);
    }
}
