/* The search of neighbours, for numbers of one precision: graph/compiled_search.py calls it.

   A point is q coordinates and half its squared norm, a = q + 1 numbers. LINE points are a line, and lie transposed:
   (a, LINE). A row is near a point where g = row'point - |point|^2 / 2 is large. Near an origin, which rows and points
   are seen from, g loses less to rounding; less |row|^2 / 2 it is then half the squared distance, negative. Each g is
   added up by itself, so it does not depend on what other rows and points there are. */

#define NAMED(name) JOIN(JOIN(name, NUMBER), WIDTH)
#define INSIDE PROCESSOR static inline __attribute__((always_inline))
#define LANES (WIDTH * 4 / (int)sizeof(NUMBER)) /* of a vector */
#define VECTORS (LINE / LANES)                  /* of a line */
#define ROWS (VECTORS > 6 ? 1 : 12 / VECTORS) /* compared at once: what the registers hold */
#define HALF_ROWS (ROWS / 2 + ROWS % 2)
#define PAIRS (VECTORS < 3 ? 4 : 8 / VECTORS)                    /* the same for distances */
#define vector NAMED(vector)
#define wholes NAMED(wholes)
#define Points NAMED(Points)
#define Best NAMED(Best)

typedef NUMBER vector __attribute__((vector_size(4 * WIDTH), aligned(sizeof(NUMBER)), may_alias));
typedef WHOLE wholes __attribute__((vector_size(4 * WIDTH), aligned(sizeof(NUMBER)), may_alias));

typedef struct {
    int64_t a;
    const NUMBER *lines;   /* (lines, a, LINE) */
    const WHOLE *number;   /* (lines, LINE) of each point */
} Points;

/* The w nearest points of each row, nearest first. A list has room for whole lines. */
typedef struct {
    int64_t w, room;
    NUMBER *g;     /* (rows, room) */
    WHOLE *number; /* (rows, room), -1 where there are fewer points */
} Best;

/* Lists of so many rows, ended by free(best.g), which is nothing where there is no memory. */
INSIDE Best NAMED(lists)(int64_t w, int64_t n_rows)
{
    int64_t room = (w + LINE - 1) / LINE * LINE;
    NUMBER *memory = malloc(n_rows * room * (sizeof(NUMBER) + sizeof(WHOLE)));
    return (Best){w, room, memory, memory ? (WHOLE *)(memory + n_rows * room) : 0};
}

INSIDE void NAMED(empty)(const Best *best, int64_t n)
{
    for (int64_t i = 0; i < n * best->room; i++) best->g[i] = -__builtin_inf(), best->number[i] = -1;
}

/* The last number of one vector, then all but the last of the next. */
INSIDE wholes NAMED(shifted)(wholes ahead, wholes here)
{
    wholes found = {ahead[LANES - 1]};
#ifdef __clang__
    for (int64_t l = 1; l < LANES; l++) found[l] = here[l - 1];
#else
    for (int64_t l = 0; l < LANES; l++) found[l] = LANES - 1 + l;
    found = __builtin_shuffle(ahead, here, found);
#endif
    return found;
}

/* All that is farther moves on by one place. A branch for each place would be guessed wrong; and vectors are read only as
   they were written, or the processor would wait until that is done. */
INSIDE void NAMED(insert)(NUMBER *list, WHOLE *numbers, int64_t w, NUMBER g, WHOLE number)
{
    union { NUMBER number; WHOLE bits; } value = {g};
    wholes none = {0}, new_g = none + value.bits, new_number = none + number;
    for (int64_t i = (w - 1) / LANES * LANES; i >= 0; i -= LANES) {
        vector here = *(vector *)(list + i), ahead = i ? *(vector *)(list + i - LANES) : here;
        wholes number_here = *(wholes *)(numbers + i), number_ahead = i ? *(wholes *)(numbers + i - LANES) : none;
        vector before = (vector)NAMED(shifted)((wholes)ahead, (wholes)here);
        wholes stays = here >= g, moves = before < g;
        if (i == 0) moves[0] = 0;
        *(wholes *)(list + i) = (stays & (wholes)here) | (~stays & ((moves & (wholes)before) | (~moves & new_g)));
        wholes number_before = NAMED(shifted)(number_ahead, number_here);
        *(wholes *)(numbers + i) =
            (stays & number_here) | (~stays & ((moves & number_before) | (~moves & new_number)));
        if (stays[0]) return;
    }
}

/* R rows less an origin, if there is one, as they are compared: (q, R), and half their squared lengths from it. Of n < R
   the first one fills up. */
INSIDE void NAMED(gather)(const int64_t R, int64_t n, const int32_t *rows, const NUMBER *Q, int64_t q,
                          const NUMBER *origin, NUMBER *room, NUMBER *half)
{
    const NUMBER *row[ROWS];
    for (int64_t j = 0; j < R; j++) row[j] = Q + rows[j < n ? j : 0] * q, half[j] = 0;
    for (int64_t c = 0; c < q; c++)
        for (int64_t j = 0; j < R; j++) {
            NUMBER value = origin ? row[j][c] - origin[c] : row[j][c];
            room[c * R + j] = value;
            if (origin) half[j] += value * value;
        }
    for (int64_t j = 0; j < R; j++) half[j] /= 2;
}

/* Puts points of n_lines lines, from the first on, into the lists of n <= R rows, whose numbers are in ``rows``. */
INSIDE void NAMED(compare_some)(const int64_t R, int64_t n, const int32_t *rows, const NUMBER *Q, int64_t q,
                                const Points *points, const NUMBER *origin, int64_t first, int64_t n_lines,
                                const Best *best, NUMBER *room)
{
    NUMBER half[ROWS];
    NAMED(gather)(R, n, rows, Q, q, origin, room, half);
    for (int64_t line = first; line < first + n_lines; line++) {
        const vector *point = (const vector *)(points->lines + line * points->a * LINE);
        vector g[ROWS][VECTORS];
        for (int64_t j = 0; j < R; j++)
            for (int64_t v = 0; v < VECTORS; v++) g[j][v] = -point[q * VECTORS + v] - half[j];
        for (int64_t c = 0; c < q; c++)
            for (int64_t j = 0; j < R; j++)
                for (int64_t v = 0; v < VECTORS; v++) PLUS_PRODUCT(g[j][v], room[c * R + j], point[c * VECTORS + v]);
        for (int64_t j = 0; j < n; j++) {
            int64_t list = rows[j] * best->room;
            const NUMBER *last = best->g + list + best->w - 1;
            uint32_t above = 0;
            for (int64_t v = 0; v < VECTORS; v++) above |= ABOVE(g[j][v], *last) << v * LANES;
            for (; above; above &= above - 1) {
                int l = __builtin_ctz(above);
                NUMBER found = g[j][l / LANES][l % LANES];
                if (found > *last)
                    NAMED(insert)(best->g + list, best->number + list, best->w, found, points->number[line * LINE + l]);
            }
        }
    }
}

/* The same for any n; what is left of the rows at the end is compared in smaller numbers. */
INSIDE void NAMED(compare)(int64_t n, const int32_t *rows, const NUMBER *Q, int64_t q, const Points *points,
                           const NUMBER *origin, int64_t first, int64_t n_lines, const Best *best, NUMBER *room)
{
    for (; n > HALF_ROWS; n -= ROWS, rows += ROWS)
        NAMED(compare_some)(ROWS, n < ROWS ? n : ROWS, rows, Q, q, points, origin, first, n_lines, best, room);
    if (n > 0) NAMED(compare_some)(HALF_ROWS, n, rows, Q, q, points, origin, first, n_lines, best, room);
}

/* What is in the lists of n rows, as arrays (n, w). */
INSIDE void NAMED(give)(const Best *best, int64_t n, NUMBER *g, int32_t *number)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < best->w; j++) {
            if (g) g[i * best->w + j] = best->g[i * best->room + j];
            number[i * best->w + j] = best->number[i * best->room + j];
        }
}

/* Lines of points: numbers (n_lines, LINE) of rows of Q (m, q), -1 where a line holds fewer. With origins each line is
   seen from its own, or all of them from the first. */
PROCESSOR void NAMED(pack)(int64_t n_lines, int64_t q, const NUMBER *Q, const WHOLE *number, const NUMBER *origins,
                           const int32_t *origin_of, NUMBER *lines)
{
    for (int64_t i = 0; i < n_lines * LINE; i++) {
        NUMBER *line = lines + i / LINE * (q + 1) * LINE + i % LINE, half = 0;
        const NUMBER *point = Q + (number[i] < 0 ? 0 : number[i]) * q;
        const NUMBER *origin = origins ? origins + (origin_of ? origin_of[i / LINE] : 0) * q : 0;
        for (int64_t c = 0; c < q; c++) {
            line[c * LINE] = number[i] < 0 ? 0 : origin ? point[c] - origin[c] : point[c];
            half += line[c * LINE] * line[c * LINE];
        }
        line[q * LINE] = number[i] < 0 ? __builtin_inf() : half / 2;
    }
}

/* Q (n, n_lines LINE) = (X - mean) V: rows X (n, d) by axes, LINE of them together: (n_lines, d, LINE). */
PROCESSOR int32_t NAMED(project)(int64_t n, int64_t d, const NUMBER *X, const NUMBER *mean, int64_t n_lines,
                                 const NUMBER *axes, NUMBER *Q)
{
    int32_t rows[ROWS];
    NUMBER *room = malloc(d * ROWS * sizeof(NUMBER)), half[ROWS];
    if (!room) return 0;
    for (int64_t i = 0; i < n; i += ROWS) {
        int64_t m = n - i < ROWS ? n - i : ROWS;
        for (int64_t j = 0; j < ROWS; j++) rows[j] = j;
        NAMED(gather)(ROWS, m, rows, X + i * d, d, mean, room, half);
        for (int64_t line = 0; line < n_lines; line++) {
            const vector *axis = (const vector *)(axes + line * d * LINE);
            vector sum[ROWS][VECTORS];
            for (int64_t j = 0; j < ROWS; j++)
                for (int64_t v = 0; v < VECTORS; v++) sum[j][v] = (vector){0};
            for (int64_t c = 0; c < d; c++)
                for (int64_t j = 0; j < ROWS; j++)
                    for (int64_t v = 0; v < VECTORS; v++) PLUS_PRODUCT(sum[j][v], room[c * ROWS + j], axis[c * VECTORS + v]);
            for (int64_t j = 0; j < m; j++)
                for (int64_t v = 0; v < VECTORS; v++)
                    ((vector *)Q)[((i + j) * n_lines + line) * VECTORS + v] = sum[j][v];
        }
    }
    free(room);
    return 1;
}

/* The w nearest of all points for each of n rows: g and numbers (n, w). Some lines at a time, which stay in the cache. */
PROCESSOR int32_t NAMED(nearest)(int64_t n, int64_t q, const NUMBER *Q, int64_t n_lines, const NUMBER *lines,
                                 const WHOLE *number, int64_t w, int64_t rows_at_once, int64_t lines_at_once,
                                 NUMBER *found, int32_t *found_number)
{
    Points points = {q + 1, lines, number};
    Best best = NAMED(lists)(w, rows_at_once);
    int32_t *all = malloc(rows_at_once * sizeof(int32_t));
    NUMBER *room = malloc(q * ROWS * sizeof(NUMBER));
    int32_t is_done = best.g && all && room;
    if (is_done) {
        for (int64_t i = 0; i < rows_at_once; i++) all[i] = i;
        for (int64_t first = 0; first < n; first += rows_at_once) {
            int64_t m = n - first < rows_at_once ? n - first : rows_at_once;
            NAMED(empty)(&best, m);
            for (int64_t line = 0; line < n_lines; line += lines_at_once)
                NAMED(compare)(m, all, Q + first * q, q, &points, 0, line,
                               n_lines - line < lines_at_once ? n_lines - line : lines_at_once, &best, room);
            NAMED(give)(&best, m, found + first * w, found_number + first * w);
        }
    }
    free(best.g);
    free(all);
    free(room);
    return is_done;
}

/* The clusters near to each other, among which rows of one look for those nearest to them. */
typedef struct {
    int64_t n_near, lines;
    const NUMBER *centres; /* (clusters, q) */
    const WHOLE *near;     /* (clusters, n_near), nearest first */
    NUMBER *around;        /* the centres near to one cluster, in lines, seen from its own */
    WHOLE *number;         /* of each of them, */
    WHOLE *position;       /* and its place among them */
    int32_t *all;          /* as many rows as are looked at once, one after the other */
    NUMBER *room;          /* see gather */
    Best probed;           /* the w nearest of each row: their places */
} NAMED(Near);

/* Ended by ``left``; whether there was memory. */
INSIDE int32_t NAMED(entered)(NAMED(Near) *near, int64_t q, int64_t w, int64_t rows_at_once)
{
    near->lines = (near->n_near + LINE - 1) / LINE;
    near->around = malloc(near->lines * LINE * (q + 1) * sizeof(NUMBER));
    near->number = malloc(2 * near->lines * LINE * sizeof(WHOLE));
    near->all = malloc(rows_at_once * sizeof(int32_t));
    near->room = malloc(q * ROWS * sizeof(NUMBER));
    near->probed = NAMED(lists)(w, rows_at_once);
    if (!(near->around && near->number && near->all && near->room && near->probed.g)) return 0;
    near->position = near->number + near->lines * LINE;
    for (int64_t i = 0; i < near->lines * LINE; i++) near->position[i] = i, near->number[i] = -1;
    for (int64_t i = 0; i < rows_at_once; i++) near->all[i] = i;
    return 1;
}

INSIDE void NAMED(left)(NAMED(Near) *near)
{
    free(near->around);
    free(near->number);
    free(near->all);
    free(near->room);
    free(near->probed.g);
}

INSIDE void NAMED(look_from)(NAMED(Near) *near, int64_t cluster, int64_t q)
{
    for (int64_t i = 0; i < near->n_near; i++) near->number[i] = near->near[cluster * near->n_near + i];
    NAMED(pack)(near->lines, q, near->centres, near->number, near->centres + cluster * q, 0, near->around);
}

INSIDE void NAMED(probe)(NAMED(Near) *near, int64_t cluster, int64_t m, const NUMBER *rows, int64_t q)
{
    Points centres = {q + 1, near->around, near->position};
    NAMED(empty)(&near->probed, m);
    NAMED(compare)(m, near->all, rows, q, &centres, near->centres + cluster * q, 0, near->lines, &near->probed, near->room);
}

/* The nearest centre of each row, among those near to the cluster that a run of rows has in common.

   start (n_runs + 1) of each run, cluster (n_runs,) of its rows */
PROCESSOR int32_t NAMED(nearest_centre)(int64_t n_runs, const int64_t *start, const int32_t *cluster, int64_t q,
                                        const NUMBER *Q, const NUMBER *centres, const WHOLE *near_clusters,
                                        int64_t n_near, int64_t rows_at_once, int32_t *found)
{
    NAMED(Near) near = {.n_near = n_near, .centres = centres, .near = near_clusters};
    int32_t is_done = NAMED(entered)(&near, q, 1, rows_at_once);
    for (int64_t r = 0; is_done && r < n_runs; r++) {
        NAMED(look_from)(&near, cluster[r], q);
        for (int64_t first = start[r]; first < start[r + 1]; first += rows_at_once) {
            int64_t m = start[r + 1] - first < rows_at_once ? start[r + 1] - first : rows_at_once;
            NAMED(probe)(&near, cluster[r], m, Q + first * q, q);
            for (int64_t i = 0; i < m; i++) {
                WHOLE place = near.probed.number[i * near.probed.room];
                found[first + i] = place < 0 ? cluster[r] : near.number[place];
            }
        }
    }
    NAMED(left)(&near);
    return is_done;
}

/* Compares rows with the clusters that they probe, from a rank to another one: all rows of a cluster one after the other,
   so that its points are read once. probed (n, n_probed), nearest first     looking (n n_probed), end (n_clusters + 1) room */
INSIDE void NAMED(compare_probed)(int64_t n, int64_t n_probed, const int32_t *probed, int64_t from, int64_t to,
                                  int64_t n_clusters, int32_t *looking, int64_t *end, const NUMBER *Q, int64_t q,
                                  const Points *points, const int64_t *first_line, const NUMBER *centres,
                                  const Best *best, NUMBER *room)
{
    for (int64_t c = 0; c <= n_clusters; c++) end[c] = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = from; j < to; j++)
            if (probed[i * n_probed + j] >= 0) end[probed[i * n_probed + j] + 1]++;
    for (int64_t c = 0; c < n_clusters; c++) end[c + 1] += end[c]; /* where a cluster begins; filled, where it ends */
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = from; j < to; j++)
            if (probed[i * n_probed + j] >= 0) looking[end[probed[i * n_probed + j]]++] = i;
    for (int64_t c = 0, begin = 0; c < n_clusters; begin = end[c++])
        NAMED(compare)(end[c] - begin, looking + begin, Q, q, points, centres + c * q, first_line[c],
                       first_line[c + 1] - first_line[c], best, room);
}

/* The w nearest points in the clusters nearest to each row; first_line (clusters + 1) of each cluster's points, which are
   seen from its centre. The nearest cluster of each row comes first: it leaves few of the other points to be listed. */
PROCESSOR int32_t NAMED(nearest_around)(int64_t n_runs, const int64_t *start, const int32_t *cluster, int64_t q,
                                        const NUMBER *Q, const NUMBER *lines, const WHOLE *number,
                                        const int64_t *first_line, const NUMBER *centres, const WHOLE *near_clusters,
                                        int64_t n_near, int64_t n_clusters, int64_t n_probed, int64_t w,
                                        int64_t rows_at_once, int32_t *found_number)
{
    int64_t n = start[n_runs];
    NAMED(Near) near = {.n_near = n_near, .centres = centres, .near = near_clusters};
    Points points = {q + 1, lines, number};
    Best best = NAMED(lists)(w, n + 1);
    int32_t *probed = malloc((n * n_probed + 1) * sizeof(int32_t)), *looking = malloc((n * n_probed + 1) * sizeof(int32_t));
    int64_t *end = malloc((n_clusters + 1) * sizeof(int64_t));
    int32_t is_done = NAMED(entered)(&near, q, n_probed, rows_at_once) && best.g && probed && looking && end;
    for (int64_t r = 0; is_done && r < n_runs; r++) {
        NAMED(look_from)(&near, cluster[r], q);
        for (int64_t first = start[r]; first < start[r + 1]; first += rows_at_once) {
            int64_t m = start[r + 1] - first < rows_at_once ? start[r + 1] - first : rows_at_once;
            NAMED(probe)(&near, cluster[r], m, Q + first * q, q);
            for (int64_t i = 0; i < m * n_probed; i++) {
                WHOLE place = near.probed.number[i / n_probed * near.probed.room + i % n_probed];
                probed[first * n_probed + i] = place < 0 ? -1 : near.number[place];
            }
        }
    }
    if (is_done) {
        NAMED(empty)(&best, n);
        for (int64_t from = 0; from < n_probed; from = from ? n_probed : 1)
            NAMED(compare_probed)(n, n_probed, probed, from, from ? n_probed : 1, n_clusters, looking, end, Q, q, &points,
                                  first_line, centres, &best, near.room);
        NAMED(give)(&best, n, 0, found_number);
    }
    NAMED(left)(&near);
    free(best.g);
    free(probed);
    free(looking);
    free(end);
    return is_done;
}

/* The k nearest (n, k) of w candidates (n, w), -1 for none, of rows of X, by direct difference. A candidate own[i] does
   not count. Sums are those of LINE lanes, added by halves, then what is left. The next candidates are called for while
   these are compared: they lie anywhere, and the processor does not guess where. */
PROCESSOR void NAMED(nearest_of)(int64_t n, int64_t d, const NUMBER *X, const int64_t *rows, const NUMBER *P, int64_t w,
                                 const int32_t *candidates, const int64_t *own, int64_t k, double *dist2, int64_t *index)
{
    int64_t n_lines = d / LINE;
    for (int64_t i = 0; i < n; i++, candidates += w) {
        const NUMBER *x = X + rows[i] * d;
        double *nearest = dist2 + i * k;
        int64_t *number = index + i * k;
        for (int64_t j = 0; j < k; j++) nearest[j] = __builtin_inf(), number[j] = -1;
        for (int64_t first = 0; first < w; first += PAIRS) {
            int64_t m = w - first < PAIRS ? w - first : PAIRS;
            const NUMBER *p[PAIRS], *next[PAIRS];
            vector sum[PAIRS][VECTORS];
            for (int64_t j = 0; j < PAIRS; j++) {
                int32_t candidate = j < m ? candidates[first + j] : -1;
                p[j] = P + (candidate < 0 ? 0 : candidate) * d;
                int64_t following = first + PAIRS < w ? first + PAIRS + j : w + j; /* of this row or the next one */
                candidate = following < (i + 1 < n ? 2 * w : w) ? candidates[following] : -1;
                next[j] = P + (candidate < 0 ? 0 : candidate) * d;
                for (int64_t v = 0; v < VECTORS; v++) sum[j][v] = (vector){0};
            }
            for (int64_t c = 0; c < n_lines * VECTORS; c += VECTORS)
                for (int64_t j = 0; j < PAIRS; j++)
                    for (int64_t v = 0; v < VECTORS; v++) {
                        __builtin_prefetch((const vector *)next[j] + c + v);
                        vector gap = ((const vector *)x)[c + v] - ((const vector *)p[j])[c + v];
                        sum[j][v] += gap * gap;
                    }
            for (int64_t j = 0; j < m; j++) {
                int64_t candidate = candidates[first + j];
                if (candidate < 0 || (own && candidate == own[i])) continue;
                NUMBER lanes[LINE], left = 0;
                for (int64_t l = 0; l < LINE; l++) lanes[l] = sum[j][l / LANES][l % LANES];
                for (int64_t half = LINE / 2; half; half /= 2)
                    for (int64_t l = 0; l < half; l++) lanes[l] += lanes[l + half];
                for (int64_t c = n_lines * LINE; c < d; c++) left += (x[c] - p[j][c]) * (x[c] - p[j][c]);
                double found = lanes[0] + left;
                int64_t at = k;
                while (at > 0 && (found < nearest[at - 1] || (found == nearest[at - 1] && candidate < number[at - 1]))) at--;
                for (int64_t l = k - 1; l > at; l--) nearest[l] = nearest[l - 1], number[l] = number[l - 1];
                if (at < k) nearest[at] = found, number[at] = candidate;
            }
        }
    }
}

#undef NAMED
#undef INSIDE
#undef LANES
#undef VECTORS
#undef ROWS
#undef HALF_ROWS
#undef PAIRS
#undef vector
#undef wholes
#undef Points
#undef Best
