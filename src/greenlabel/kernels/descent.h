/* Rounds of conjugate gradients: operators/descent.py says what each step of them does.

   Arrays hold n rows of K lines, in single precision. Every number comes from the same operations in the same order as
   in descent.py. (On ARM it is SciPy that fuses them: there the two differ in their last digits.)

   Members of a team run the same rounds, each on rows of its own, and meet between the steps. They wait by spinning: a
   step takes less time than to wake up a thread. What concerns all columns, each member reckons for itself. */

#define NAMED(name) JOIN(name, WIDTH)
#define INSIDE PROCESSOR static inline __attribute__((always_inline))
#define VECTORS (LINE / WIDTH) /* of a line */
#define vector NAMED(vector)

typedef float vector __attribute__((vector_size(4 * WIDTH), aligned(4), may_alias)); /* aligned as a float is */

#ifndef DESCENT
#define DESCENT
#define MOST_COLUMNS 1024 /* operators/compiled_descent.py gives no more */
#define PATIENT_TURNS 4096 /* of waiting, before others may have the processor */

typedef struct {
    const int32_t *indptr, *indices;
    const float *data;
} Matrix;

typedef struct {
    int64_t n, K, n_members, block_rows, sum_rows, slab_rows;
    Matrix A;                 /* (n, n) */
    float *x, *r, *p, *q;     /* (n, K) */
    int64_t u;                /* groups of rows, 0 where there are none: */
    Matrix down;              /* P' (u, n), */
    const float *entry;       /* P (n, u), one entry in each row */
    const int32_t *group;
    float *residual, *y;      /* (u, K) */
    int64_t m;                /* clusters, which are these groups or hold them: */
    const float *inverse;     /* (m, m) */
    Matrix far_down;          /* Q' (m, u), nothing where clusters are the groups, */
    const float *far_entry;   /* Q (u, m), one entry in each row */
    const int32_t *cluster;
    const float *scale;       /* (u,) of a group by itself */
    float *far_residual, *far; /* (m, K) */
    double *pq, *rr, *ry;     /* (sums, K) over rows, rows and groups */
    double *slab;             /* (members, slab_rows, K) room for sums */
    const double *goal2;      /* of each column */
    double *length2, *rz, *before, *step;
    int64_t *taken;           /* rounds of each column so far */
    int64_t arrived;          /* how often members have come to a meeting */
} Rounds;

static void meet(Rounds *s, int64_t *meetings)
{
    int64_t all = s->n_members * ++*meetings;
    __atomic_add_fetch(&s->arrived, 1, __ATOMIC_ACQ_REL);
    for (int64_t turn = 0; __atomic_load_n(&s->arrived, __ATOMIC_ACQUIRE) < all; turn++)
        if (turn < PATIENT_TURNS) PAUSE;
        else sched_yield();
}

static int64_t share(int64_t n, int64_t member, int64_t n_members) { return n * member / n_members; }

/* All sums together, one after the other. */
static void add_up(const double *sums, int64_t n_sums, int64_t C, double *total)
{
    for (int64_t c = 0; c < C; c++) total[c] = sums[c];
    for (int64_t i = 1; i < n_sums; i++)
        for (int64_t c = 0; c < C; c++) total[c] += sums[i * C + c];
}

/* Sums of a b over rows: slabs of rows are added up one after the other, then the rows of that by halves. */
static void sum_products(const Rounds *s, const float *a, const float *b, int64_t n, double *slab, double *sums)
{
    int64_t C = s->K * LINE;
    for (int64_t i = 0; i < n; i++) {
        double *place = slab + i % s->slab_rows * C;
        for (int64_t c = 0; c < C; c++) {
            double product = (double)a[i * C + c] * b[i * C + c];
            place[c] = i < s->slab_rows ? product : place[c] + product;
        }
    }
    for (int64_t rows = n < s->slab_rows ? n : s->slab_rows, half; rows > 1; rows -= half) {
        half = rows / 2;
        for (int64_t c = 0; c < half * C; c++) slab[c] += slab[(rows - half) * C + c];
    }
    for (int64_t c = 0; c < C; c++) sums[c] = slab[c];
}
#endif

INSIDE void NAMED(add_to_slab)(const Rounds *s, vector *slab, int64_t i, int64_t V, int64_t v, const vector *value)
{
    int64_t row = i % s->sum_rows;
    vector *place = slab + row % s->slab_rows * V + v;
    if (row < s->slab_rows) *place = *value;
    else *place += *value;
}

/* After the last row of a sum, or of all n: what is in the slab becomes a sum. */
INSIDE void NAMED(end_row)(const Rounds *s, vector *slab, int64_t i, int64_t n, int64_t V, double *sums)
{
    int64_t rows = i % s->sum_rows + 1;
    if (rows < s->sum_rows && i < n - 1) return;
    rows = rows < s->slab_rows ? rows : s->slab_rows;
    while (rows > 1) {
        int64_t half = rows / 2;
        for (int64_t v = 0; v < half * V; v++) slab[v] += slab[(rows - half) * V + v];
        rows -= half;
    }
    for (int64_t c = 0; c < V * WIDTH; c++) sums[i / s->sum_rows * V * WIDTH + c] = slab[c / WIDTH][c % WIDTH];
}

/* x <- x + step p */
PROCESSOR void NAMED(follow)(int64_t n, int64_t K, vector *x, const vector *p, const vector *step)
{
    int64_t V = K * VECTORS;
    for (int64_t i = 0; i < n; i++, x += V, p += V)
        for (int64_t v = 0; v < V; v++) x[v] += step[v] * p[v];
}

/* x <- x + step p, then p <- beta p + moving (r + entry y); y is that of the row's group, where there are any */
INSIDE void NAMED(turn)(const Rounds *s, int64_t first, int64_t last, const vector *step, const vector *beta,
                        const vector *moving)
{
    int64_t V = s->K * VECTORS;
    vector *x = (vector *)s->x, *p = (vector *)s->p;
    const vector *r = (vector *)s->r, *y = (vector *)s->y;
    for (int64_t i = first; i < last; i++)
        for (int64_t v = 0; v < V; v++) {
            int64_t at = i * V + v;
            x[at] += step[v] * p[at];
            p[at] = beta[v] * p[at] + moving[v] * r[at];
            if (s->u) p[at] += moving[v] * (s->entry[i] * y[s->group[i] * V + v]);
        }
}

/* One row of a product of a sparse matrix with p. */
INSIDE void NAMED(row_of)(const Matrix *A, int64_t i, const vector *p, int64_t V, int64_t k, vector *sum)
{
    for (int64_t v = 0; v < VECTORS; v++) sum[v] = (vector){0};
    for (int32_t j = A->indptr[i]; j < A->indptr[i + 1]; j++)
        for (int64_t v = 0; v < VECTORS; v++) sum[v] += A->data[j] * p[A->indices[j] * V + k + v];
}

/* q <- A p, and sums of p q */
INSIDE void NAMED(multiply)(const Rounds *s, int64_t first, int64_t last, vector *slab)
{
    int64_t V = s->K * VECTORS;
    vector *p = (vector *)s->p, *q = (vector *)s->q;
    for (int64_t i = first; i < last; i++) {
        for (int64_t k = 0; k < V; k += VECTORS) {
            vector sum[VECTORS];
            NAMED(row_of)(&s->A, i, p, V, k, sum);
            for (int64_t v = 0; v < VECTORS; v++) {
                q[i * V + k + v] = sum[v];
                sum[v] *= p[i * V + k + v];
                NAMED(add_to_slab)(s, slab, i, V, k + v, sum + v);
            }
        }
        NAMED(end_row)(s, slab, i, last, V, s->pq);
    }
}

/* r <- r - step q, and sums of r r */
INSIDE void NAMED(move)(const Rounds *s, int64_t first, int64_t last, const vector *step, vector *slab)
{
    int64_t V = s->K * VECTORS;
    vector *r = (vector *)s->r;
    const vector *q = (vector *)s->q;
    for (int64_t i = first; i < last; i++) {
        for (int64_t v = 0; v < V; v++) {
            r[i * V + v] -= step[v] * q[i * V + v];
            vector square = r[i * V + v] * r[i * V + v];
            NAMED(add_to_slab)(s, slab, i, V, v, &square);
        }
        NAMED(end_row)(s, slab, i, last, V, s->rr);
    }
}

/* down <- A up, rows of a member */
INSIDE void NAMED(gather_groups)(const Matrix *A, int64_t first, int64_t last, int64_t V, const float *up, float *down)
{
    for (int64_t i = first; i < last; i++)
        for (int64_t k = 0; k < V; k += VECTORS) {
            vector sum[VECTORS];
            NAMED(row_of)(A, i, (const vector *)up, V, k, sum);
            for (int64_t v = 0; v < VECTORS; v++) ((vector *)down)[i * V + k + v] = sum[v];
        }
}

/* found <- inverse residual, rows of a member; four at once, for which each row of the residual is read once */
INSIDE void NAMED(invert)(const Rounds *s, int64_t first, int64_t last, int64_t V, const float *residual, float *found)
{
    for (int64_t i = first; i < last; i += 4) {
        int64_t n = last - i < 4 ? last - i : 4;
        for (int64_t v = 0; v < V; v++) {
            vector sum[4] = {{0}, {0}, {0}, {0}};
            for (int64_t j = 0; j < s->m; j++) {
                vector one = ((const vector *)residual)[j * V + v];
                for (int64_t l = 0; l < 4; l++) sum[l] += s->inverse[(l < n ? i + l : i) * s->m + j] * one;
            }
            for (int64_t l = 0; l < n; l++) ((vector *)found)[(i + l) * V + v] = sum[l];
        }
    }
}

/* y of z = r + P y, and what it adds to r'z of each column. */
INSIDE void NAMED(correct)(Rounds *s, int64_t member, int64_t *meetings, double *slab, double *more)
{
    int64_t V = s->K * VECTORS, C = s->K * LINE, M = s->n_members;
    int64_t first = share(s->u, member, M), last = share(s->u, member + 1, M);
    int64_t first_far = share(s->m, member, M), last_far = share(s->m, member + 1, M);
    int is_far = s->far_down.indptr != 0;
    NAMED(gather_groups)(&s->down, first, last, V, s->r, s->residual);
    meet(s, meetings);
    if (is_far) {
        NAMED(gather_groups)(&s->far_down, first_far, last_far, V, s->residual, s->far_residual);
        meet(s, meetings);
    }
    NAMED(invert)(s, first_far, last_far, V, is_far ? s->far_residual : s->residual, is_far ? s->far : s->y);
    meet(s, meetings);
    if (is_far) {
        vector *residual = (vector *)s->residual, *y = (vector *)s->y, *far = (vector *)s->far;
        for (int64_t i = first; i < last; i++)
            for (int64_t v = 0; v < V; v++) {
                y[i * V + v] = residual[i * V + v] * s->scale[i];
                y[i * V + v] += s->far_entry[i] * far[s->cluster[i] * V + v];
            }
        meet(s, meetings);
    }
    int64_t n_sums = (s->u + s->sum_rows - 1) / s->sum_rows;
    for (int64_t i = member; i < n_sums; i += M) {
        int64_t begin = i * s->sum_rows, n = s->u - begin < s->sum_rows ? s->u - begin : s->sum_rows;
        sum_products(s, s->residual + begin * C, s->y + begin * C, n, slab, s->ry + i * C);
    }
    meet(s, meetings);
    add_up(s->ry, n_sums, C, more);
}

/* At most so many rounds, until each column is at its goal; whether all are. A new residual has to be measured first. */
PROCESSOR int32_t NAMED(rounds)(Rounds *s, int64_t member, int64_t is_new, int64_t n_rounds)
{
    int64_t C = s->K * LINE, meetings = 0, n_sums = (s->n + s->sum_rows - 1) / s->sum_rows;
    int64_t first = member * s->block_rows, last = first + s->block_rows;
    first = first < s->n ? first : s->n, last = last < s->n ? last : s->n;
    double *slab = s->slab + member * s->slab_rows * C;
    double length2[MOST_COLUMNS], rz[MOST_COLUMNS], before[MOST_COLUMNS], step[MOST_COLUMNS], more[MOST_COLUMNS];
    float short_step[MOST_COLUMNS], beta[MOST_COLUMNS], moving[MOST_COLUMNS];
    int64_t taken[MOST_COLUMNS];
    for (int64_t c = 0; c < C; c++)
        length2[c] = s->length2[c], rz[c] = s->rz[c], before[c] = s->before[c], step[c] = s->step[c], taken[c] = s->taken[c];
    int32_t is_open = 1;
    for (int64_t round = 0;; round++) {
        if (round || is_new) {
            for (int64_t c = 0; c < C; c++) short_step[c] = round ? step[c] : 0;
            NAMED(move)(s, first, last, (vector *)short_step, (vector *)slab);
            meet(s, &meetings);
            add_up(s->rr, n_sums, C, length2);
            for (int64_t c = 0; c < C; c++) more[c] = 0;
            if (s->u) NAMED(correct)(s, member, &meetings, slab, more);
            for (int64_t c = 0; c < C; c++) rz[c] = length2[c] + more[c];
        }
        is_open = 0;
        for (int64_t c = 0; c < C; c++) is_open |= (moving[c] = length2[c] > s->goal2[c]) != 0;
        if (!is_open || round == n_rounds) break;
        for (int64_t c = 0; c < C; c++) {
            short_step[c] = step[c];
            beta[c] = moving[c] == 0 ? 1 : before[c] > 0 ? rz[c] / before[c] : 0;
            if (moving[c] != 0) before[c] = rz[c], taken[c]++;
        }
        NAMED(turn)(s, first, last, (vector *)short_step, (vector *)beta, (vector *)moving);
        meet(s, &meetings);
        NAMED(multiply)(s, first, last, (vector *)slab);
        meet(s, &meetings);
        add_up(s->pq, n_sums, C, more);
        for (int64_t c = 0; c < C; c++) step[c] = moving[c] != 0 && more[c] > 0 ? rz[c] / more[c] : 0;
    }
    meet(s, &meetings); /* all have read what the first one now writes */
    if (member == 0)
        for (int64_t c = 0; c < C; c++)
            s->length2[c] = length2[c], s->rz[c] = rz[c], s->before[c] = before[c], s->step[c] = step[c], s->taken[c] = taken[c];
    return !is_open;
}

#undef NAMED
#undef INSIDE
#undef VECTORS
#undef vector
