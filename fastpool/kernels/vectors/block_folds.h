/* Rows of blocks of which some elements may be missing, with keys of KEY_BITS bits: vectors are
 * combined down the rows of a block, then the `odd` neighbours of each part of a block, and then
 * its `pairs` parts, a power of two. All loops are short, and few are unrolled: that made three
 * times the code. block_keys.h includes this file once per width. */

/* Load the keys of a vector of row t, and set where an element is missing. `orders`: keys of any
 * type are compared. Else they are added: floats as they are, or integers. */
INLINE VEC OF_KEY(take)(VEC *none, const block_folds_t *a, const key_rule_t *r, const int orders,
                        int t, ptrdiff_t at) {
    const char *from = a->taps[t] + at * (ptrdiff_t)sizeof(KEY);
    const VEC x = (VEC)vec_load(from), nan = (x & KEY_MOST) > (KEY)r->infinity;
    const int floats = KEY_BITS > 16 || (KEY_BITS == 16 && orders);
    VEC key = x;
    __builtin_prefetch(from + 8192); /* (-15 % of the time) */
    *none = (VEC){0}; /* (branches that are always the same cost less than what they save) */
    if (r->has_nodata) *none = x == (KEY)r->nodata[0];
    if (floats && r->nodata[0] != r->nodata[1]) *none |= x == (KEY)r->nodata[1];
    if (floats && r->ignores_nan) *none |= nan;
    if (orders && floats) key ^= key >> (KEY_BITS - 1) & (KEY)r->mirror;
    if (orders || !floats) key ^= (KEY)(r->flip ^ r->inverted);
    if (orders && floats) key = SELECT(nan, KEY_MOST, key);
    if (a->rule->masked) {
        const uint8_t *where = a->where[t] + at;
        __builtin_prefetch(where + 8192);
#if KEY_BITS <= 16
        VECTOR(uint8_t, VEC_BYTES * 8 / KEY_BITS) there;
        memcpy(&there, where, sizeof there);
        *none |= __builtin_convertvector(there, VEC) == 0;
#else
        *none |= (VEC)OF_KEY(wide_bytes)(where) == 0;
#endif
    }
    return SELECT(*none, (KEY)r->filler, key);
}

/* Combine the vectors of a row of blocks. (A call takes as long as blocks of 2 by 2.) */
#define FOLD(v, op, combined)                                                                     \
    (pairs == 2 && odd == 1 ? NEIGHBOURS(op, (v)[0], (v)[1])                                      \
                            : (__typeof__((v)[0]))combined(v, pairs, odd, &lanes))

static NOINLINE void OF_KEY(fold_greatest)(const block_folds_t *a) {
    const key_rule_t r = key_rule_of(a->rule, KEY_BITS);
    const odd_lanes_t lanes = OF_KEY(odd_lanes)(a->odd);
    const int pairs = a->pairs, odd = a->odd, width = pairs * odd, count = a->count;
    const VEC zero = {0};
    EACH_VECTOR(VEC_KEYS, a->n) {
        VEC bests[MOST_VECTORS], kepts[MOST_VECTORS];
        for (int j = 0; j < width; j++) {
            VEC best = zero + KEY_TOP, kept = zero + (KEY)count;
            for (int t = 0; t < count; t++) {
                VEC none, key = OF_KEY(take)(&none, a, &r, 1, t, i * width + j * VEC_KEYS);
                best = GREATER_OF(best, key);
                kept += none;
            }
            bests[j] = best, kepts[j] = kept;
        }
        const VEC best = FOLD(bests, GREATER_OF, OF_KEY(greatest));
        const VEC kept = FOLD(kepts, SUM_OF, OF_KEY(sum));
        VEC key = best ^ (KEY)r.inverted;
        if (KEY_BITS > 8) {
            key ^= key >> (KEY_BITS - 1) & (KEY)r.mirror;
            key = SELECT((best == KEY_MOST) & (KEY)(r.mirror ? -1 : 0), KEY_MOST, key);
        }
        key = SELECT(kept < (KEY)a->need, zero + (KEY)a->rule->missing, key ^ (KEY)r.flip);
        vec_store((KEY *)a->to + i, (vec_t)key);
        for (int k = 0; a->counts && k < VEC_KEYS; k++) a->counts[i + k] = kept[k];
    }
}

#if KEY_BITS <= 16 /* integers: sums have lanes of twice their width */
#if KEY_BITS == 8
#define TWICE vec_u16
#define OF_TWICE(name) name##_16
#define HALF half_u8
#define WIDENED(half) (TWICE)WIDENED_u8(half)
#else
#define TWICE vec_u32
#define OF_TWICE(name) name##_32
#define HALF half_u16
#define WIDENED(half) (TWICE)WIDENED_u16(half)
#endif
#define PAIRS(v) (((TWICE)(v) << KEY_BITS >> KEY_BITS) + ((TWICE)(v) >> KEY_BITS))
/* `apart`: the number of neighbours is odd, so that two of them may belong to two blocks. */
INLINE void OF_KEY(fold_integers)(const block_folds_t *a, const int pairs, const int odd,
                                  const int count, const int apart) {
    key_rule_t r = key_rule_of(a->rule, KEY_BITS);
    const odd_lanes_t lanes = OF_TWICE(odd_lanes)(odd);
    const int bias = r.flip ? 0 : 1 << (KEY_BITS - 1), width = pairs * odd << !apart;
    r.flip ^= KEY_TOP; /* (unsigned numbers are added) */
    EACH_VECTOR(VEC_KEYS, a->n) {
        TWICE sums[MOST_VECTORS], kepts[MOST_VECTORS];
        vec_t halves[2];
        for (int j = 0; j < width; j++) {
            VEC there = (VEC){0} + (KEY)count, none;
            TWICE sum = {0}, other = sum;
            HALF part[2];
            for (int t = 0; t < count; t++) {
                VEC key = OF_KEY(take)(&none, a, &r, 0, t, i * width + j * VEC_KEYS);
                memcpy(part, &key, sizeof part);
                sum += apart ? WIDENED(part[0]) : PAIRS(key);
                if (apart) other += WIDENED(part[1]);
                there += none;
            }
            memcpy(part, &there, sizeof part);
            sums[j << apart] = sum, kepts[j << apart] = apart ? WIDENED(part[0]) : PAIRS(there);
            if (apart) sums[2 * j + 1] = other, kepts[2 * j + 1] = WIDENED(part[1]);
        }
        for (int half = 0; half < 2; half++) {
            const ptrdiff_t to = i + half * VEC_KEYS / 2;
            TWICE sum = sums[half], kept = kepts[half];
            if (pairs * odd > 1) {
                sum = (TWICE)OF_TWICE(sum)(sums + half * (pairs * odd), pairs, odd, &lanes);
                kept = (TWICE)OF_TWICE(sum)(kepts + half * (pairs * odd), pairs, odd, &lanes);
            }
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
        OF_KEY(fold_integers)(a, 1, 1, 2, 0);
    else
        OF_KEY(fold_integers)(a, (a->pairs + 1) / 2, a->odd, a->count, a->width & 1);
}
#undef TWICE
#undef OF_TWICE
#undef HALF
#undef WIDENED
#undef PAIRS
#else /* floats: by trees */
#if KEY_BITS == 32
#define FLOATS vec_f32
#define SUM_OF_FLOATS sum_f32
#define INTEGERS 0x1p23f
#else
#define FLOATS vec_f64
#define SUM_OF_FLOATS sum_f64
#define INTEGERS 0x1p52
#endif
static NOINLINE void OF_KEY(fold_sums)(const block_folds_t *a) {
    const key_rule_t r = key_rule_of(a->rule, KEY_BITS);
    const odd_lanes_t lanes = OF_KEY(odd_lanes)(a->odd);
    const int pairs = a->pairs, odd = a->odd, width = pairs * odd, count = a->count;
    const FLOATS integers = (FLOATS){0} + INTEGERS; /* (their lowest bit is 1) */
    EACH_VECTOR(VEC_KEYS, a->n) {
        FLOATS sums[MOST_VECTORS], rows[8];
        VEC kepts[MOST_VECTORS];
        for (int j = 0; j < width; j++) {
            VEC kept = (VEC){0} + (KEY)count, none;
            FLOATS sum = {0};
            for (int t = 0, waiting = 0; t < count; t++) {
                const ptrdiff_t at = i * width + j * VEC_KEYS;
                sum = (FLOATS)OF_KEY(take)(&none, a, &r, 0, t, at);
                ROLLED for (int m = a->sums[t]; m; m--) sum = rows[--waiting] + sum;
                rows[waiting++] = sum;
                kept += none;
            }
            sums[j] = sum, kepts[j] = kept;
        }
        const FLOATS sum = FOLD(sums, SUM_OF, SUM_OF_FLOATS);
        const VEC kept = FOLD(kepts, SUM_OF, OF_KEY(sum));
        VEC result = (VEC)sum;
        if (a->rule->function == B_MEAN)
            result = (VEC)(sum / ((FLOATS)(kept + (VEC)integers) - integers));
        result = SELECT(kept < (KEY)a->need, (VEC){0} + (KEY)a->rule->missing, result);
        vec_store((KEY *)a->to + i, (vec_t)result);
        for (int k = 0; a->counts && k < VEC_KEYS; k++) a->counts[i + k] = kept[k];
    }
}
#undef FLOATS
#undef SUM_OF_FLOATS
#undef INTEGERS
#endif
#undef FOLD
