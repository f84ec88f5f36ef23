/* What blocks.h does with keys of KEY_BITS bits. It includes this file once per width. */

#define KEY_TOP ((KEY)((uint64_t)1 << (KEY_BITS - 1)))
#define KEY_MOST ((KEY) ~KEY_TOP)
#define KEY_MIRROR(r) ((KEY)(KEY_BITS > 8 ? (r)->mirror : 0)) /* (no float has 8 bits) */

/* Turn rows of elements into keys. A NaN becomes KEY_MOST. Clear `there` of elements that are
 * missing, which become the filler. Count the others. */
static VECTORISED void OF_KEY(mark)(KEY (*restrict rows)[LANES], uint8_t (*restrict there)[LANES],
                                    KEY *restrict count, int taps, const key_rule_t *r) {
    const KEY flip = (KEY)r->flip, mirror = KEY_MIRROR(r), infinity = (KEY)r->infinity;
    const KEY first = (KEY)r->nodata[0], second = (KEY)r->nodata[1], inverted = (KEY)r->inverted;
    const KEY has_nodata = (KEY)r->has_nodata, ignores_nan = (KEY)r->ignores_nan;
    const KEY filler = (KEY)r->filler, all = (KEY)(r->all_there ? taps : 0);
    EACH_LANE count[i] = all;
    for (int t = 0; t < taps; t++) {
        KEY absent[LANES], *row = rows[t];
        if (all) {
            EACH_LANE row[i] ^= (KEY)(flip ^ inverted);
            continue;
        }
        EACH_LANE absent[i] = there[t][i] ? 0 : -1;
        EACH_LANE {
            KEY b = row[i], key = (KEY)(b ^ flip ^ (b >> (KEY_BITS - 1) & mirror));
            KEY nan = (KEY)(key > infinity || key < (KEY)~infinity ? -1 : 0);
            KEY none = (KEY)((b == first || b == second ? -1 : 0) & has_nodata);
            none |= (nan & ignores_nan) | absent[i];
            key = nan ? KEY_MOST : (KEY)(key ^ inverted);
            row[i] = none ? filler : key;
            absent[i] = none;
            count[i] = (KEY)(count[i] + 1 + none);
        }
        EACH_LANE there[t][i] = (uint8_t)(absent[i] + 1);
    }
}

static VECTORISED void OF_KEY(set_counts)(int64_t *restrict to, const KEY *restrict from, int all) {
    if (all)
        EACH_LANE to[i] = all;
    else
        EACH_LANE to[i] = from[i];
}

/* Return the element of a key. */
INLINE KEY OF_KEY(element)(KEY key, KEY flip, KEY mirror, KEY inverted) {
    key = key == KEY_MOST && mirror ? KEY_MOST : (KEY)(key ^ inverted);
    return (KEY)(key ^ flip ^ (key >> (KEY_BITS - 1) & mirror));
}

/* Set results that are elements by their keys. */
static VECTORISED void OF_KEY(set_elements)(block_lanes_t *restrict to, const KEY *restrict keys,
                                            const KEY *restrict count, const block_rule_t *rule,
                                            const key_rule_t *r) {
    const KEY flip = (KEY)r->flip, mirror = KEY_MIRROR(r), inverted = (KEY)r->inverted;
    const KEY missing = (KEY)rule->missing;
    const KEY need = (KEY)(rule->need > MOST_TAPS ? MOST_TAPS + 1 : rule->need);
    KEY *restrict row = (KEY *)to->row;
    if (mirror)
        EACH_LANE row[i] = OF_KEY(element)(keys[i], flip, mirror, inverted);
    else
        EACH_LANE row[i] = (KEY)(keys[i] ^ flip ^ inverted);
    EACH_LANE row[i] = count[i] < need ? missing : row[i];
}

/* Is a nonzero byte of a bool an element of 1? */
static void OF_KEY(one_bits)(KEY *row, int code) {
    if (code == BOOL)
        EACH_LANE row[i] = row[i] != 0;
}

static VECTORISED void OF_KEY(row_max)(KEY *restrict best, const KEY *restrict row) {
    EACH_LANE best[i] = row[i] > best[i] ? row[i] : best[i];
}

static VECTORISED void OF_KEY(row_add)(int64_t *restrict high, int64_t *restrict low,
                                      const KEY *restrict row) {
#if KEY_BITS == 64
    EACH_LANE high[i] += row[i] >> 32, low[i] += row[i] & 0xffffffff;
#else
    (void)high;
    EACH_LANE low[i] += row[i];
#endif
}

/* Batcher's odd-even merge sort, of every column. */
static VECTORISED void OF_KEY(sort_columns)(KEY (*rows)[LANES], int taps) {
    for (int p = 1; p < taps; p *= 2)
        for (int k = p; k >= 1; k /= 2)
            for (int j = k & (p - 1); j + k < taps; j += 2 * k)
                for (int t = j; t < j + k && t + k < taps; t++) {
                    if ((t ^ (t + k)) >= 2 * p) continue;
                    KEY *restrict lower = rows[t], *restrict upper = rows[t + k];
                    EACH_LANE {
                        KEY a = lower[i], b = upper[i];
                        lower[i] = a < b ? a : b;
                        upper[i] = a < b ? b : a;
                    }
                }
}

/* Set `best` to the key with the longest run in each sorted column, the least of several. */
static VECTORISED void OF_KEY(longest_runs)(KEY *restrict best, KEY (*restrict rows)[LANES],
                                            const KEY *restrict count, int taps) {
    KEY run[LANES], longest[LANES];
    EACH_LANE run[i] = longest[i] = 1, best[i] = rows[0][i];
    for (int t = 1; t < taps; t++) {
        const KEY *row = rows[t], *before = rows[t - 1], at = (KEY)t;
        EACH_LANE {
            KEY next = (KEY)((row[i] == before[i] ? run[i] : 0) + 1);
            KEY better = (KEY)((next > longest[i] ? -1 : 0) & (count[i] > at ? -1 : 0));
            run[i] = next;
            longest[i] = better ? next : longest[i];
            best[i] = better ? row[i] : best[i];
        }
    }
}

/* Set sums of keys as sums of elements. */
static void OF_KEY(set_sums)(block_lanes_t *to, const int64_t *by_key, int n, const key_rule_t *r) {
    for (int i = 0; i < n; i++) {
#if KEY_BITS == 64
        to->high[i] -= r->flip ? by_key[i] * -0x80000000LL : 0;
#else
        to->low[i] -= r->flip ? by_key[i] * -(1LL << (KEY_BITS - 1)) : 0;
        to->x[i] = (double)to->low[i];
        to->high[i] = to->low[i] >> 32;
        to->low[i] &= 0xffffffff;
#endif
    }
}

/* Set the means of the two middle elements. The last one tells whether there is a NaN. Return
 * whether the results are keys, at `means`. */
static VECTORISED int OF_KEY(set_middle)(block_lanes_t *restrict to, KEY *restrict means,
                                         const KEY *lower, const KEY *upper, const KEY *last,
                                         int n, const block_rule_t *rule, const key_rule_t *r) {
    const KEY flip = (KEY)r->flip, mirror = KEY_MIRROR(r);
    if (mirror) {
        double x[2][LANES];
        for (int k = 0; k < 2; k++) {
            const KEY *middle = k ? upper : lower;
            EACH_LANE means[i] = OF_KEY(element)(last[i] == KEY_MOST ? last[i] : middle[i],
                                                 0, mirror, 0);
            to_doubles_of((int)rule->code)(x[k], means, LANES, 0);
        }
        EACH_LANE {
            double sum = x[0][i] + x[1][i];
            x[0][i] = sum - sum == 0 ? sum * 0.5 : x[0][i] * 0.5 + x[1][i] * 0.5;
        }
        if (rule->result == F32)
            EACH_LANE to->bits[i] = f32_bits((float)x[0][i]);
        else
            memcpy(to->bits, x[0], sizeof(x[0]));
    } else if (rule->result == rule->code) {
        const KEY even = rule->rounding == HALF_EVEN, away = rule->rounding == HALF_AWAY;
        const KEY trunc = rule->rounding == TRUNC, is_signed = flip ? 0 : -1;
        EACH_LANE {
            KEY differ = (KEY)(lower[i] ^ upper[i]);
            KEY mean = (KEY)((lower[i] & upper[i]) + (differ >> 1)); /* (rounded down) */
            KEY negative = (KEY)((mean < 0 ? -1 : 0) & is_signed);
            KEY up = (KEY)((even & mean) | (away & ~negative) | (trunc & negative));
            means[i] = (KEY)(mean + (differ & up & 1));
        }
        return 1;
    } else {
        EACH_LANE {
            to->by[i] = 2;
#if KEY_BITS == 64
            to->high[i] = (lower[i] >> 32) + (upper[i] >> 32);
            to->low[i] = (lower[i] & 0xffffffff) + (upper[i] & 0xffffffff);
#else
            to->low[i] = (int64_t)lower[i] + upper[i];
#endif
        }
        OF_KEY(set_sums)(to, to->by, n, r);
        set_quotients(to, rule, n, KEY_BITS < 64);
    }
    return 0;
}

/* The difference of a key to another, rounded to a double. */
INLINE double OF_KEY(key_difference)(KEY key, KEY first) {
    return key < first ? -(double)((uint64_t)first - (uint64_t)key)
                       : (double)((uint64_t)key - (uint64_t)first);
}

/* Set integers as doubles, but for a constant per column: 64 bits relative to the first one. */
static VECTORISED void OF_KEY(set_doubles)(double (*x)[LANES], KEY (*rows)[LANES],
                                           uint8_t (*there)[LANES], int taps) {
#if KEY_BITS == 64
    EACH_LANE {
        int first = 0;
        while (first < taps - 1 && !there[first][i]) first++;
        KEY key = rows[first][i];
        for (int t = 0; t < taps; t++) x[t][i] = OF_KEY(key_difference)(rows[t][i], key);
    }
#else
    (void)there;
    for (int t = 0; t < taps; t++)
        EACH_LANE x[t][i] = (double)rows[t][i];
#endif
}

static void OF_KEY(columns)(block_lanes_t *to, void *elements, uint8_t (*there)[LANES], void *work,
                            int taps, int n, const block_rule_t *rule) {
    KEY(*rows)[LANES] = (KEY(*)[LANES])elements;
    const key_rule_t r = key_rule_of(rule, KEY_BITS);
    const int function = (int)rule->function, code = (int)rule->code;
    const int spread = function == B_VAR || function == B_STD;
    double (*x)[LANES] = (double (*)[LANES])work;
    const int all = !(rule->has_nodata || rule->masked || rule->ignores_nan);
    KEY count[LANES], best[LANES];
    if (code == BOOL || (spread && r.mirror))
        for (int t = 0; t < taps; t++) {
            OF_KEY(one_bits)(rows[t], code);
            if (spread && r.mirror) to_doubles_of(code)(x[t], rows[t], LANES, 0);
        }
    if (spread && r.mirror && all)
        EACH_LANE count[i] = (KEY)taps;
    else
        OF_KEY(mark)(rows, there, count, taps, &r);
    OF_KEY(set_counts)(to->count, count, all ? taps : 0);
    if (function == B_COUNT) {
        memcpy(to->bits, to->count, sizeof(to->bits));
    } else if (function <= B_MODE) {
        int rest = 1; /* (rows of large segments are equal) */
        memcpy(best, rows[0], sizeof(best));
        if (function == B_MODE) {
            while (rest < taps && !memcmp(rows[rest], rows[0], (size_t)n * sizeof(KEY))) rest++;
            if (rest < taps) {
                OF_KEY(sort_columns)(rows, taps);
                OF_KEY(longest_runs)(best, rows, count, taps);
            }
        } else
            for (; rest < taps; rest++) OF_KEY(row_max)(best, rows[rest]);
        OF_KEY(set_elements)(to, best, count, rule, &r);
        return;
    } else if (function == B_MEDIAN) {
        KEY of_lane[3][LANES];
        const KEY *middle[] = {rows[(taps - 1) / 2], rows[taps / 2], rows[taps - 1]};
        OF_KEY(sort_columns)(rows, taps);
        for (int i = 0; i < n && !all; i++) {
            int there_i = count[i] ? count[i] : 1;
            of_lane[0][i] = rows[(there_i - 1) / 2][i];
            of_lane[1][i] = rows[there_i / 2][i];
            of_lane[2][i] = rows[there_i - 1][i];
        }
        for (int k = 0; k < 3 && !all; k++) middle[k] = of_lane[k];
        if (OF_KEY(set_middle)(to, best, middle[0], middle[1], middle[2], n, rule, &r)) {
            OF_KEY(set_elements)(to, best, count, rule, &r);
            return;
        }
    } else if (spread) {
        if (!r.mirror) OF_KEY(set_doubles)(x, rows, there, taps);
        const uint8_t(*taken)[LANES] = (const uint8_t(*)[LANES])there;
        const int exact = KEY_BITS < 32 && !r.mirror;
        if (is_precise(rule) && !exact)
            precise_variances(to, x, taken, taps, (double)rule->ddof);
        else
            column_variances(to, x, taken, taps, all, exact, KEY_BITS == 64,
                             (double)rule->ddof);
        for (int i = 0; i < n; i++)
            set_variance(&to->bits[i], to->x[i], f64_of_bits(to->bits[i]), rule);
    } else {
        memset(to->high, 0, sizeof(to->high));
        memset(to->low, 0, sizeof(to->low));
        for (int t = 0; t < taps; t++) OF_KEY(row_add)(to->high, to->low, rows[t]);
        OF_KEY(set_sums)(to, to->count, n, &r);
        EACH_LANE to->by[i] = function == B_MEAN ? to->count[i] : 1;
        set_quotients(to, rule, n, KEY_BITS < 64);
    }
    choose_results(to, rule);
}

static ptrdiff_t OF_KEY(append)(void *list, void *elements, uint8_t *there, int n,
                                const block_rule_t *rule) {
    KEY *row = (KEY *)elements, *to = (KEY *)list, count[LANES];
    const key_rule_t r = key_rule_of(rule, KEY_BITS);
    ptrdiff_t kept = 0;
    OF_KEY(one_bits)(row, (int)rule->code);
    OF_KEY(mark)((KEY(*)[LANES])row, (uint8_t(*)[LANES])there, count, 1, &r);
    for (int i = 0; i < n; i++) kept += count[i];
    if (kept == n || r.all_there) {
        memcpy(to, row, (size_t)n * sizeof(KEY));
        return n;
    }
    kept = 0;
    for (int i = 0; i < n; i++) {
        to[kept] = row[i];
        kept += there[i];
    }
    return kept;
}

/* Return the bits in which keys differ. */
static VECTORISED uint64_t OF_KEY(differences)(const KEY *list, ptrdiff_t n) {
    KEY differ = 0;
    for (ptrdiff_t i = 0; i < n; i++) differ |= list[i] ^ list[0];
    return (uint64_t)differ & (~0ULL >> (64 - KEY_BITS));
}

/* Sort n keys by those of their bytes that differ, the lowest first. Return the sorted list: one of
 * the two. */
static KEY *OF_KEY(sort_list)(KEY *list, KEY *other, ptrdiff_t n) {
    const uint64_t differ = OF_KEY(differences)(list, n);
    for (int shift = 0; shift < KEY_BITS; shift += 8) {
        ptrdiff_t at[256] = {0}, before = 0;
        if (!(differ >> shift & 255)) continue;
        for (ptrdiff_t i = 0; i < n; i++) at[(uint64_t)(list[i] ^ KEY_TOP) >> shift & 255]++;
        for (int digit = 0; digit < 256; digit++) {
            ptrdiff_t count = at[digit];
            at[digit] = before;
            before += count;
        }
        for (ptrdiff_t i = 0; i < n; i++)
            other[at[(uint64_t)(list[i] ^ KEY_TOP) >> shift & 255]++] = list[i];
        KEY *sorted = other;
        other = list, list = sorted;
    }
    return list;
}

/* Set the mode of a list by a table of counts. Return 0 if that takes many steps: of many keys. */
static int OF_KEY(tally)(KEY *mode, const KEY *list, ptrdiff_t n) {
    KEY keys[1 << MOST_SLOT_BITS];
    ptrdiff_t counts[1 << MOST_SLOT_BITS], most = 0, steps = 2 * n, next;
    int bits = 6;
    while (bits < MOST_SLOT_BITS && (ptrdiff_t)1 << bits < 2 * n) bits++;
    memset(counts, 0, sizeof(*counts) << bits);
    for (ptrdiff_t i = 0; i < n; i = next) {
        const KEY key = list[i];
        size_t at = (size_t)((uint64_t)key * 0x9e3779b97f4a7c15 >> (64 - bits));
        for (next = i + 1; next < n && list[next] == key; next++) {} /* (labels are in runs) */
        while (counts[at] && keys[at] != key) {
            if (--steps < 0) return 0;
            at = (at + 1) & (((size_t)1 << bits) - 1);
        }
        keys[at] = key;
        counts[at] += next - i;
        if (counts[at] > most || (counts[at] == most && key < *mode))
            most = counts[at], *mode = key;
    }
    return 1;
}

static void OF_KEY(list_spread)(block_lanes_t *to, const KEY *keys, double *x, ptrdiff_t n,
                                const block_rule_t *rule, const key_rule_t *r) {
    double scale = 1, variance;
    if (n <= rule->ddof) {
        set_variance(to->bits, NAN, 1, rule);
    } else if (!r->mirror && KEY_BITS < 32) {
        twice_t squares = {0, 0};
        uint64_t sum = 0;
        KEY least = KEY_MOST;
        for (ptrdiff_t i = 0; i < n; i++) least = keys[i] < least ? keys[i] : least;
        for (ptrdiff_t i = 0; i < n; i++) {
            uint64_t z = (uint64_t)((int64_t)keys[i] - least);
            sum += z;
            squares.low += z * z;
        }
        const int result = rule->function == B_STD ? F64 : (int)rule->result;
        to->bits[0] = exact_variance((uint64_t)n, sum, squares, (uint64_t)(n - rule->ddof), result);
        if (rule->function == B_STD)
            set_variance(to->bits, f64_of_bits(to->bits[0]), 1, rule);
    } else {
        for (ptrdiff_t i = 0; i < n; i++) {
            if (r->mirror) {
                KEY element = keys[i];
                element = OF_KEY(element)(element, 0, (KEY)r->mirror, 0);
                to_doubles_of((int)rule->code)(&x[i], &element, 1, 0);
            } else
                x[i] = OF_KEY(key_difference)(keys[i], keys[0]);
        }
        variance = list_variance(x, n, (double)rule->ddof, is_precise(rule), &scale);
        set_variance(to->bits, variance, scale, rule);
    }
}

static void OF_KEY(list)(block_lanes_t *to, void *elements, void *work, ptrdiff_t n,
                         const block_rule_t *rule) {
    KEY *keys = (KEY *)elements, best = n ? keys[0] : 0;
    const key_rule_t r = key_rule_of(rule, KEY_BITS);
    const int function = (int)rule->function;
    to->bits[0] = (uint64_t)n;
    to->high[0] = to->low[0] = 0;
    if (function == B_COUNT) return;
    if (!n && function != B_SUM) return; /* (the result is missing) */
    if (function <= B_MODE) {
        for (ptrdiff_t i = 1; i < n && function != B_MODE; i++)
            best = keys[i] > best ? keys[i] : best;
        if (function == B_MODE && !OF_KEY(tally)(&best, keys, n)) {
            ptrdiff_t longest = 0, start = 0;
            keys = OF_KEY(sort_list)(keys, (KEY *)work, n);
            for (ptrdiff_t i = 0; i < n; i++) {
                if (keys[i] != keys[start]) start = i;
                if (i - start + 1 > longest) longest = i - start + 1, best = keys[i];
            }
        }
        to->bits[0] = (uint64_t)OF_KEY(element)(best, (KEY)r.flip, (KEY)r.mirror, (KEY)r.inverted);
    } else if (function == B_MEDIAN) {
        KEY means[LANES], middle[3][LANES] = {0};
        keys = OF_KEY(sort_list)(keys, (KEY *)work, n);
        middle[0][0] = keys[(n - 1) / 2], middle[1][0] = keys[n / 2], middle[2][0] = keys[n - 1];
        if (OF_KEY(set_middle)(to, means, middle[0], middle[1], middle[2], 1, rule, &r))
            to->bits[0] = (uint64_t)OF_KEY(element)(means[0], (KEY)r.flip, 0, 0);
    } else if (function == B_VAR || function == B_STD) {
        OF_KEY(list_spread)(to, keys, (double *)work, n, rule, &r);
    } else {
        for (ptrdiff_t i = 0; i < n; i++) {
#if KEY_BITS == 64
            to->high[0] += keys[i] >> 32, to->low[0] += keys[i] & 0xffffffff;
            carry(&to->high[0], &to->low[0]);
#else
            to->low[0] += keys[i];
#endif
        }
        to->by[0] = n;
        OF_KEY(set_sums)(to, to->by, 1, &r);
        to->by[0] = function == B_MEAN ? n : 1;
        set_quotients(to, rule, 1, 0);
    }
}

/* Copy FILLED elements, with the filler where one is missing. Return whether one is wild. */
static VECTORISED int OF_KEY(fill)(void *restrict to, const void *restrict from,
                                   const uint8_t *restrict there, const fill_t *f) {
    const KEY *x = (const KEY *)from;
    const KEY first = (KEY)f->nodata, most = (KEY)f->most, last = (KEY)f->last;
    const KEY second = f->zeros ? (KEY)(first ^ KEY_TOP) : first, filler = (KEY)f->filler;
    const KEY has_nodata = f->has_nodata ? -1 : 0;
    KEY wild = 0;
    for (int i = 0; i < FILLED; i++) {
        KEY size = x[i] & KEY_MOST;
        KEY none = (KEY)((x[i] == first || x[i] == second ? -1 : 0) & has_nodata);
        none |= (KEY)((there[i] ? 0 : -1) | (size > last ? -1 : 0));
        wild |= (KEY)((size > most || x[i] == filler ? -1 : 0) & ~none);
        ((KEY *)to)[i] = none ? filler : x[i];
    }
    return wild != 0;
}

#define VEC OF_KEY(vec)
typedef VECTOR(KEY, VEC_BYTES) VEC;
#define VEC_KEYS ((ptrdiff_t)(VEC_BYTES / sizeof(KEY)))
#include "block_folds.h"
#include "block_modes.h"
#undef VEC_KEYS
#undef VEC
#undef KEY_TOP
#undef KEY_MOST
#undef KEY_MIRROR
#undef KEY_BITS
#undef KEY
