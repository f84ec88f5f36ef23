/* Rows of blocks of 2, 4 or 8 neighbours, of which some may be missing, with keys of KEY_BITS bits:
 * vectors are combined down the rows of a block, and then neighbours. All loops are short, and few
 * are unrolled: that made three times the code. block_keys.h includes this file once per width. */

#define VEC OF_KEY(vec)
typedef VECTOR(KEY, VEC_BYTES) VEC;
#define FOLD_LANES ((ptrdiff_t)(VEC_BYTES / sizeof(KEY)))

/* Load the keys of a vector of row t, and set where an element is missing. `orders`: keys of any
 * type are compared. Else they are added: floats as they are, or integers. */
INLINE VEC OF_KEY(take)(VEC *none, const block_folds_t *a, const key_rule_t *r, const int orders,
                        int t, ptrdiff_t at) {
    const VEC x = (VEC)vec_load(a->taps[t] + at * (ptrdiff_t)sizeof(KEY));
    const VEC nan = (x & KEY_MOST) > (KEY)r->infinity;
    const int floats = KEY_BITS > 16 || (KEY_BITS == 16 && orders);
    VEC key = x;
    __builtin_prefetch(a->taps[t] + at * (ptrdiff_t)sizeof(KEY) + 8192); /* (-15 % of the time) */
    if (orders && floats) key ^= key >> (KEY_BITS - 1) & (KEY)r->fold;
    if (orders || !floats) key ^= (KEY)r->flip;
    *none = key == (KEY)r->nodata[0];
    if (floats) *none |= key == (KEY)r->nodata[1];
    *none &= (KEY)r->has_nodata;
    if (floats) *none |= nan & (KEY)r->ignores_nan;
    if (orders) key ^= (KEY)r->inverted;
    if (orders && floats) key = SELECT(nan, KEY_MOST, key);
    if (a->rule->masked) {
        const uint8_t *where = a->where[t] + at;
        __builtin_prefetch(where + 8192);
#if KEY_BITS <= 16
        VECTOR(uint8_t, VEC_BYTES * 8 / KEY_BITS) there;
        memcpy(&there, where, sizeof there);
        *none |= __builtin_convertvector(there, VEC) == 0;
#else /* (gcc converts such vectors one by one) */
        KEY there[FOLD_LANES];
        for (int k = 0; k < FOLD_LANES; k++) there[k] = where[k];
        *none |= (VEC)vec_load(there) == 0;
#endif
    }
    return SELECT(*none, (KEY)r->filler, key);
}

#define GREATER_OF(a, b) (VEC)vec_max((vec_t)(a), (vec_t)(b), (KEY *)0)
#define SUM_OF(a, b) ((a) + (b))
/* Combine neighbours of two vectors. */
#define NEIGHBOURS(op, a, b)                                                                      \
    op((__typeof__(a))vec_concat_even((vec_t)(a), (vec_t)(b), (__typeof__((a)[0]) *)0),           \
       (__typeof__(a))vec_concat_odd((vec_t)(a), (vec_t)(b), (__typeof__((a)[0]) *)0))
/* Combine vector j of a row with those before it that wait for it. */
#define FOLD(j, op, v, counts)                                                                    \
    ROLLED for (int m = j; m & 1; m /= 2) {                                                       \
        waiting--;                                                                                \
        v = NEIGHBOURS(op, v##s[waiting], v);                                                     \
        counts = NEIGHBOURS(SUM_OF, counts##s[waiting], counts);                                  \
    }                                                                                             \
    v##s[waiting] = v, counts##s[waiting++] = counts;

static NOINLINE void OF_KEY(fold_greatest)(const block_folds_t *a) {
    const key_rule_t r = OF_KEY(key_rule)(a->rule);
    const VEC zero = {0};
    EACH_VECTOR(FOLD_LANES) {
        VEC bests[3], kepts[3], best = zero, kept = zero, none;
        for (int j = 0, waiting = 0; j < a->width; j++) {
            best = zero + KEY_TOP, kept = zero + (KEY)a->count;
            for (int t = 0; t < a->count; t++) {
                VEC key = OF_KEY(take)(&none, a, &r, 1, t, i * a->width + j * FOLD_LANES);
                best = GREATER_OF(best, key);
                kept += none;
            }
            FOLD(j, GREATER_OF, best, kept)
        }
        VEC key = best ^ (KEY)r.inverted;
        if (KEY_BITS > 8) {
            key ^= key >> (KEY_BITS - 1) & (KEY)r.fold;
            key = SELECT((best == KEY_MOST) & (KEY)(r.fold ? -1 : 0), KEY_MOST, key);
        }
        key = SELECT(kept < (KEY)a->need, zero + (KEY)a->rule->missing, key ^ (KEY)r.flip);
        vec_store((KEY *)a->to + i, (vec_t)key);
        for (int k = 0; a->counts && k < FOLD_LANES; k++) a->counts[i + k] = kept[k];
    }
}

#if KEY_BITS <= 16 /* integers: neighbours are added in lanes of twice their width */
#if KEY_BITS == 8
#define TWICE vec_u16
#else
#define TWICE vec_u32
#endif
#define PAIRS(v) (((TWICE)(v) << KEY_BITS >> KEY_BITS) + ((TWICE)(v) >> KEY_BITS))
INLINE void OF_KEY(fold_integers)(const block_folds_t *a, const int width, const int count) {
    key_rule_t r = OF_KEY(key_rule)(a->rule);
    const int bias = r.flip ? 0 : 1 << (KEY_BITS - 1);
    r.flip ^= KEY_TOP, r.nodata[0] ^= KEY_TOP; /* (unsigned numbers are added) */
    EACH_VECTOR(FOLD_LANES) {
        TWICE sums[2], kepts[2], sum = {0}, kept = {0};
        vec_t halves[2];
        VEC none;
        for (int half = 0; half < 2; half++) {
            for (int j = 0, waiting = 0; j < width / 2; j++) {
                const ptrdiff_t at = i * width + (half * width / 2 + j) * FOLD_LANES;
                VEC there = (VEC){0} + (KEY)count;
                sum = (TWICE){0};
                for (int t = 0; t < count; t++) {
                    VEC key = OF_KEY(take)(&none, a, &r, 0, t, at);
                    sum += PAIRS(key);
                    there += none;
                }
                kept = PAIRS(there);
                FOLD(j, SUM_OF, sum, kept)
            }
            const ptrdiff_t to = i + half * FOLD_LANES / 2;
#if KEY_BITS == 8
            const vec_u32 s = (vec_u32)sum, n = (vec_u32)kept;
            vec_i32 low = fold_results(s & 0xffff, n & 0xffff, a, bias, to + HIGH_HALF_FIRST, 2);
            vec_i32 high = fold_results(s >> 16, n >> 16, a, bias, to + !HIGH_HALF_FIRST, 2);
            halves[half] = (vec_t)((low & 0xffff) | high << 16);
#else
            halves[half] = (vec_t)fold_results(sum, kept, a, bias, to, 1);
#endif
        }
        if (a->rule->function == B_MEAN)
            vec_store((KEY *)a->to + i, LOW_HALVES(halves[0], halves[1], (KEY *)0));
    }
}
static NOINLINE void OF_KEY(fold_sums)(const block_folds_t *a) {
    if (a->width == 2 && a->count == 2)
        OF_KEY(fold_integers)(a, 2, 2);
    else
        OF_KEY(fold_integers)(a, a->width, a->count);
}
#undef TWICE
#undef PAIRS
#else /* floats: down the rows, whose number is a power of two, by a tree */
#if KEY_BITS == 32
#define FLOATS vec_f32
#else
#define FLOATS vec_f64
#endif
static NOINLINE void OF_KEY(fold_sums)(const block_folds_t *a) {
    const key_rule_t r = OF_KEY(key_rule)(a->rule);
    const FLOATS zero = {0}, one = zero + 1;
    EACH_VECTOR(FOLD_LANES) {
        FLOATS sums[3], kepts[3], parts[8], sum = zero, kept = zero;
        VEC none;
        for (int j = 0, waiting = 0; j < a->width; j++) {
            int halves = 0;
            kept = zero;
            for (int t = 0; t < a->count; t++) {
                sum = (FLOATS)OF_KEY(take)(&none, a, &r, 0, t, i * a->width + j * FOLD_LANES);
                ROLLED for (int m = t; m & 1; m /= 2) sum = parts[--halves] + sum;
                parts[halves++] = sum;
                kept += (FLOATS)(~none & (VEC)one);
            }
            FOLD(j, SUM_OF, sum, kept)
        }
        none = (VEC)(kept < zero + (float)a->need);
        if (a->rule->function == B_MEAN) sum /= kept;
        none = SELECT(none, (VEC){0} + (KEY)a->rule->missing, (VEC)sum);
        vec_store((KEY *)a->to + i, (vec_t)none);
        for (int k = 0; a->counts && k < FOLD_LANES; k++) a->counts[i + k] = (int64_t)kept[k];
    }
}
#undef FLOATS
#endif
#undef VEC
