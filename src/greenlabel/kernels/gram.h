/* Z'Z in whole numbers: graph/mixing.py says why, and what high and low are. To the bit what NumPy adds up there.

   index, weight (n, k) the anchors of each row     high, low (m (m + 1) / 2) the upper triangle, row by row */

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
