/* All functions for one kind of processor, of vectors of WIDTH float32. */

#include "descent.h"
#include "mixing.h"

#define NUMBER float
#define WHOLE int32_t /* as many bits */
#define ABOVE ABOVE_float
#define PLUS_PRODUCT PLUS_PRODUCT_float
#include "search.h"
#undef NUMBER
#undef WHOLE
#undef ABOVE
#undef PLUS_PRODUCT

#define NUMBER double
#define WHOLE int64_t
#define ABOVE ABOVE_double
#define PLUS_PRODUCT PLUS_PRODUCT_double
#include "search.h"
#undef NUMBER
#undef WHOLE
#undef ABOVE
#undef PLUS_PRODUCT

#undef WIDTH
#undef PROCESSOR
#undef PLUS_PRODUCT_float
#undef PLUS_PRODUCT_double
#undef ABOVE_float
#undef ABOVE_double
