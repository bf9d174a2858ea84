/* What is compiled: rounds of conjugate gradients (descent.h), the search of neighbours (search.h) and what rows make of
   their nearest anchors (mixing.h).

   Every function is there once for each kind of processor, named for the width of its vectors in single precision:
   rounds_16 needs AVX-512, rounds_8 AVX2 and FMA, rounds_4 runs anywhere. kernels_width() says what this machine
   can do. They do the same operations in the same order. Rounds and mixes fuse none of them (-ffp-contract=off), so
   every number is the same to the bit on any processor; a search fuses products with their sums (PLUS_PRODUCT) where vectors
   are of 8 or 16. No argument is checked, and no other library is needed. */

#include <sched.h>
#include <stdint.h>
#include <stdlib.h>

#define INTERFACE 8 /* kernels/__init__.py asks for this number, and loads nothing that answers with another one */
#define LINE 16     /* numbers that belong together in memory, on any processor: columns of a matrix, points */

#define JOINED(a, b) a##_##b
#define JOIN(a, b) JOINED(a, b)

#if defined(__x86_64__) && !defined(ANY_PROCESSOR)
#include <immintrin.h>
#define PAUSE _mm_pause()

int32_t kernels_width(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512f") ? 16 : __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? 8 : 4;
}

#define WIDTH 16
#define PROCESSOR __attribute__((target("avx512f")))
#define PLUS_PRODUCT_float(g, a, b) (g) = (vector)_mm512_fmadd_ps(_mm512_set1_ps(a), (__m512)(b), (__m512)(g))
#define PLUS_PRODUCT_double(g, a, b) (g) = (vector)_mm512_fmadd_pd(_mm512_set1_pd(a), (__m512d)(b), (__m512d)(g))
#define ABOVE_float(g, bar) ((uint32_t)_mm512_cmp_ps_mask((__m512)(g), _mm512_set1_ps(bar), _CMP_GT_OQ))
#define ABOVE_double(g, bar) ((uint32_t)_mm512_cmp_pd_mask((__m512d)(g), _mm512_set1_pd(bar), _CMP_GT_OQ))
#include "each.h"

#define WIDTH 8
#define PROCESSOR __attribute__((target("avx2,fma")))
#define PLUS_PRODUCT_float(g, a, b) (g) = (vector)_mm256_fmadd_ps(_mm256_set1_ps(a), (__m256)(b), (__m256)(g))
#define PLUS_PRODUCT_double(g, a, b) (g) = (vector)_mm256_fmadd_pd(_mm256_set1_pd(a), (__m256d)(b), (__m256d)(g))
#define ABOVE_float(g, bar) ((uint32_t)_mm256_movemask_ps(_mm256_cmp_ps((__m256)(g), _mm256_set1_ps(bar), _CMP_GT_OQ)))
#define ABOVE_double(g, bar) ((uint32_t)_mm256_movemask_pd(_mm256_cmp_pd((__m256d)(g), _mm256_set1_pd(bar), _CMP_GT_OQ)))
#include "each.h"

#define ABOVE_float(g, bar) ((uint32_t)_mm_movemask_ps(_mm_cmpgt_ps((__m128)(g), _mm_set1_ps(bar))))
#define ABOVE_double(g, bar) ((uint32_t)_mm_movemask_pd(_mm_cmpgt_pd((__m128d)(g), _mm_set1_pd(bar))))
#else
#define PAUSE (void)0

int32_t kernels_width(void) { return 4; }

#define ABOVE_float(g, bar) \
    ({ uint32_t bits = 0; for (int l = 0; l < LANES; l++) bits |= (uint32_t)((g)[l] > (bar)) << l; bits; })
#define ABOVE_double ABOVE_float
#endif

#define WIDTH 4
#define PROCESSOR
#define PLUS_PRODUCT_float(g, a, b) (g) += (a) * (b)
#define PLUS_PRODUCT_double PLUS_PRODUCT_float
#include "each.h"

int32_t kernels_interface(void) { return INTERFACE; }
