/* What rows make of their k nearest of m anchors, to the bit what NumPy makes of them (graph/mixing.py).

   index, weight (n, k) the anchors of each row */

#define INSIDE PROCESSOR static inline __attribute__((always_inline))
#define vector JOIN(numbers, WIDTH)

#ifndef MIXED
#define MIXED 32 /* rows at once */

/* The nearest anchors of n rows, as graph/mixing.py has them. */
typedef struct {
    int64_t n, is_short, is_single;
    const void *index; /* (n, k), short ones of 16 bits */
    const void *dist2; /* (k + 1, n) squared distances, ascending, in single or double precision */
} Near;
#endif

typedef double vector __attribute__((vector_size(4 * WIDTH), aligned(8), may_alias));

/* Z'Z in whole numbers; high, low (m (m + 1) / 2) are of the upper triangle, row by row. */
PROCESSOR void JOIN(add_products, WIDTH)(int64_t n, int64_t k, int64_t m, double half, const int32_t *index,
                                         const double *weight, int64_t *high, int64_t *low)
{
    for (int64_t i = 0; i < n; i++, index += k, weight += k)
        for (int64_t a = 0; a < k; a++)
            for (int64_t b = a; b < k; b++) {
                int64_t first = index[a] < index[b] ? index[a] : index[b], second = (int64_t)index[a] + index[b] - first;
                int64_t place = first * (2 * m - 1 - first) / 2 + second;
                double product = weight[a] * weight[b] * half; /* never negative, so whole numbers are cut downwards */
                int64_t whole = product;
                double left = (product - whole) * half;
                int64_t whole_left = left;
                high[place] += whole;
                low[place] += whole_left + (whole_left < left);
            }
}

/* The weights (k, MIXED) of n <= MIXED rows, as mixing_weights and joining_weights give them; dist2 (k + 1, all rows). */
INSIDE void JOIN(weigh, WIDTH)(int64_t n, int64_t k, const Near *near, int64_t row, double *weight)
{
    double yardstick[MIXED], total[MIXED];
    for (int64_t j = k; j >= 0; j--) {
        double *found = j < k ? weight + j * MIXED : yardstick;
        if (near->is_single) for (int64_t i = 0; i < n; i++) found[i] = ((const float *)near->dist2)[j * near->n + row + i];
        else for (int64_t i = 0; i < n; i++) found[i] = ((const double *)near->dist2)[j * near->n + row + i];
    }
    for (int64_t i = 0; i < n; i++) total[i] = 0;
    for (int64_t j = 0; j < k; j++)
        for (int64_t i = 0; i < n; i++) {
            weight[j * MIXED + i] = yardstick[i] - weight[j * MIXED + i];
            total[i] += weight[j * MIXED + i];
        }
    for (int64_t j = 0; j < k; j++)
        for (int64_t i = 0; i < n; i++) weight[j * MIXED + i] /= total[i];
    for (int64_t i = 0; i < n; i++) {
        if (!(total[i] > 0))
            for (int64_t j = 0; j < k; j++) weight[j * MIXED + i] = 1.0 / k;
        if (k > 1 && weight[MIXED + i] == 0)
            for (int64_t j = 0; j < k; j++) weight[j * MIXED + i] = j ? 1.0 / (k + 1) : 2 * (1.0 / (k + 1));
    }
}

/* The class with the largest score of each of n rows from a first one on, the first class of equal ones. Scores are mixed
   of the first c columns of C (m, columns), columns whole vectors, and moved by the offsets (columns,). A row for which
   column c says 0, if it is asked, gets the class ``otherwise``; -1 asks for none.     room (k MIXED + columns) */
PROCESSOR void JOIN(largest, WIDTH)(int64_t first, int64_t n, int64_t k, Near near, int64_t c, int64_t columns,
                                    int64_t otherwise, const double *C, const double *offset, double *room, int32_t *best)
{
    double *weight = room, *score = room + k * MIXED;
    int64_t V = columns * (int64_t)sizeof(double) / (int64_t)sizeof(vector);
    for (int64_t i = 0; i < n; i++) {
        if (i % MIXED == 0) JOIN(weigh, WIDTH)(n - i < MIXED ? n - i : MIXED, k, &near, first + i, weight);
        int64_t at = (first + i) * k;
        for (int64_t v = 0; v < V; v++) {
            vector sum = {0};
            for (int64_t j = 0; j < k; j++) {
                int64_t anchor = near.is_short ? ((const uint16_t *)near.index)[at + j] : ((const int32_t *)near.index)[at + j];
                sum += weight[j * MIXED + i % MIXED] * ((const vector *)C)[anchor * V + v];
            }
            ((vector *)score)[v] = sum + ((const vector *)offset)[v];
        }
        int64_t found = 0;
        double top = score[0];
        for (int64_t l = 1; l < c; l++) {
            found = score[l] > top ? l : found;
            top = score[l] > top ? score[l] : top;
        }
        best[i] = otherwise < 0 || score[c] > 0 ? found : otherwise;
    }
}

#undef INSIDE
#undef vector
