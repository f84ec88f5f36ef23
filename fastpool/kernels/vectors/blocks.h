/* Blocks: reduce the elements of blocks that share no element.
 *
 * Small blocks are reduced in columns: up to LANES blocks at a time, one row of LANES elements per
 * tap. A larger block is reduced as a list of the keys that are there. Elements become keys, which
 * are signed integers of their width with the same order (keys.h). `mark` tells which of them are
 * missing. block_keys.h has what depends on the width of a key.
 *
 * All sums of integers are exact: high * 2**32 + low. */
#ifndef FASTPOOL_BLOCKS_H
#define FASTPOOL_BLOCKS_H

#include "block_neighbours.h"
#include "block_quotients.h"
#include "block_rows.h"
#include "block_variances.h"

/* ---- keys ---- */

/* Return the constants of a rule for elements of some bits. */
static NOINLINE key_rule_t key_rule_of(const block_rule_t *rule, int bits) {
    const int code = (int)rule->code, floats = is_float_code(code), function = (int)rule->function;
    const int adds = function == B_MEAN || function == B_SUM;
    const int64_t top = (int64_t)(~0ULL << (bits - 1)), most = ~top, nodata = rule->nodata;
    const int64_t infinity = code == F16    ? 0x7c00
                             : code == BF16 ? 0x7f80
                             : code == F32  ? 0x7f800000
                                            : 0x7ff0000000000000;
    const int zero = floats && !(nodata & most); /* (both are missing) */
    return (key_rule_t){
        .flip = is_unsigned_code(code) ? top : 0,
        .mirror = floats && !adds ? most : 0,
        .infinity = floats ? infinity : most,
        .nodata = {nodata, zero && rule->has_nodata ? nodata ^ top : nodata},
        .has_nodata = -(rule->has_nodata != 0),
        .ignores_nan = -(floats && rule->ignores_nan),
        .inverted = -(function == B_MIN),
        .filler = function == B_MAX || function == B_MIN           ? top
                  : function == B_MODE || function == B_MEDIAN ? most
                  : floats && adds                             ? top /* -0 */
                                                               : 0,
        .all_there = !floats && !rule->has_nodata && !rule->masked,
    };
}

/* Return the bits in which labels and their keys differ, sign-extended as `nodata` is. */
static int64_t label_flip(const block_rule_t *rule) {
    const int bits = dtype_bytes[rule->code] * 8;
    return is_unsigned_code((int)rule->code) ? (int64_t)(~0ULL << (bits - 1)) : 0;
}

static int64_t nodata_key(const block_rule_t *rule) { return rule->nodata ^ label_flip(rule); }

/* ---- one set of functions per width ---- */

#define JOINED_(a, b) a##_##b
#define JOINED(a, b) JOINED_(a, b)
#define OF_KEY(name) JOINED(name, KEY_BITS)
#define KEY_BITS 8
#define KEY int8_t
#include "block_keys.h"
#define KEY_BITS 16
#define KEY int16_t
#include "block_keys.h"
#define KEY_BITS 32
#define KEY int32_t
#include "block_keys.h"
#define KEY_BITS 64
#define KEY int64_t
#include "block_keys.h"

/* Reduce n columns of `taps` rows of elements, which are overwritten. `there` tells which elements
 * the caller wants, and is overwritten. `work` has 8 * LANES * taps bytes. */
static void reduce_columns(block_lanes_t *to, void *rows, uint8_t *there, void *work, int taps,
                           int n, const block_rule_t *rule) {
    BY_BYTES(dtype_bytes[rule->code], columns, to, rows, (uint8_t(*)[LANES])there, work, taps, n,
             rule);
}

/* Append the elements of a row that are there to a list of keys. Return how many. */
static ptrdiff_t append_keys(void *list, void *row, uint8_t *there, int n,
                             const block_rule_t *rule) {
    return BY_BYTES(dtype_bytes[rule->code], append, list, row, there, n, rule);
}

/* Reduce a list of n keys, which is overwritten, as lane 0. `work` has 8 * n bytes. */
static void reduce_list(block_lanes_t *to, void *list, void *work, ptrdiff_t n,
                        const block_rule_t *rule) {
    to->count[0] = n;
    BY_BYTES(dtype_bytes[rule->code], list, to, list, work, n, rule);
}

/* Reduce a row of outputs. Their function is B_MAX, B_MIN, B_MEAN or B_SUM. */
static void fold_blocks(const block_folds_t *a) {
    if (a->rule->function == B_MAX || a->rule->function == B_MIN)
        BY_BYTES(dtype_bytes[a->rule->code], fold_greatest, a);
    else
        BY_BYTES(dtype_bytes[a->rule->code], fold_sums, a);
}

/* Reduce n blocks of labels, whose rows are two neighbours. Blocks are next to each other. `places`
 * are those of a block's taps. Sort blocks of several labels into `rows`. Of blocks of one label
 * only the first and the last row are set. counts: set counts too. If there are not two or four
 * rows, if n is less than a vector, or of masked elements or bools, return 0. */
static int reduce_labels(block_lanes_t *to, void *rows, const char *x, const ptrdiff_t *places,
                         int taps, int n, int counts, const block_rule_t *rule) {
    const int bytes = dtype_bytes[rule->code];
    if ((taps != 4 && taps != 8) || n * bytes < VEC_BYTES || rule->masked || rule->code == BOOL)
        return 0;
    BY_BYTES(bytes, small_modes, to, rows, x, places, taps, n, counts, rule);
    return 1;
}

/* Append n columns that are reduced. Are they those of blocks of the full size? */
static void list_columns(label_lists_t *to, const void *rows, const int64_t *count, int taps,
                         int n, int whole, const block_rule_t *rule) {
    BY_BYTES(dtype_bytes[rule->code], list_columns, to, rows, count, taps, n, whole, rule);
}

/* Add n whole blocks whose rows are two blocks, `places` from the first one on, which have `size`
 * elements if they have no list. Set their labels, and where those differ, 0 as the list. */
static NOINLINE void join_labels(label_lists_t *to, block_lanes_t *lanes,
                                 const label_lists_t *from, ptrdiff_t first,
                                 const ptrdiff_t *places, int taps, int n, int32_t size,
                                 const block_rule_t *rule) {
    const int64_t nodata = nodata_key(rule), flip = label_flip(rule), all = (int64_t)taps * size;
    int64_t label[LANES], differs[LANES];
    EACH_VECTOR(VEC_BYTES / 8, n) {
        vec_t best = {0}, others = best;
        for (int t = 0; t < taps; t += 2) {
            const ptrdiff_t at = first + places[t] + 2 * i;
            const int64_t *row = from->labels + at;
            const vec_t a = vec_load(row), b = vec_load(row + VEC_BYTES / 8);
            const vec_t even = vec_concat_even(a, b, row), odd = vec_concat_odd(a, b, row);
            if (t == 0) best = even;
            /* (Two entries of list_of, -1 without a list, are as wide as a label.) */
            others |= (even ^ best) | (odd ^ best) | ~vec_load(from->list_of + at);
        }
        vec_store(label + i, best);
        vec_store(differs + i, others);
    }
    for (int i = 0; i < n; i++) {
        to->labels[to->blocks + i] = label[i];
        to->list_of[to->blocks + i] = differs[i] ? 0 : -1;
        lanes->bits[i] = (uint64_t)(label[i] ^ flip);
        lanes->count[i] = rule->has_nodata && label[i] == nodata ? 0 : all;
    }
}

/* Set a block to the blocks at n places, which have `size` elements if they have no list. Set its
 * mode, and the count of its elements. */
static NOINLINE void merge_lists(label_lists_t *to, block_lanes_t *lanes, int lane,
                                 const label_lists_t *from, const ptrdiff_t *places, ptrdiff_t n,
                                 int32_t size, int whole, const block_rule_t *rule) {
    const int64_t nodata = nodata_key(rule), flip = label_flip(rule);
    ptrdiff_t most = 0, total = 0, labels = 0, list = -1;
    int64_t *restrict keys = to->keys + to->kept, winner = from->labels[places[0]];
    int32_t *restrict counts = to->counts + to->kept;
    uint32_t kept = 0, *restrict slots = to->slots;
    int slot_bits = 4, equal = whole;
    for (ptrdiff_t i = 0; i < n; i++)
        equal &= from->list_of[places[i]] < 0 && from->labels[places[i]] == winner;
    if (equal) {
        total = rule->has_nodata && winner == nodata ? 0 : n * size;
    } else {
        /* (An address as a seed: nobody can choose labels that all want one slot.) */
        const uint64_t seed = (uint64_t)(uintptr_t)slots * 0x9e3779b97f4a7c15 | 1;
        const ptrdiff_t *ends = from->ends;
        for (ptrdiff_t i = 0; i < n; i++) {
            const int32_t of = from->list_of[places[i]];
            labels += of < 0 ? 1 : ends[of] - ends[of - 1];
        }
        const int few = labels <= FEW_LABELS;
        while ((ptrdiff_t)1 << slot_bits < 2 * labels) slot_bits++;
        if (!few) memset(slots, 0, sizeof(*slots) << slot_bits);
        for (ptrdiff_t i = 0; i < n; i++) {
            const int32_t of = from->list_of[places[i]];
            const int64_t *key_of = of < 0 ? &from->labels[places[i]] : from->keys + ends[of - 1];
            const int32_t *count_of = of < 0 ? &size : from->counts + ends[of - 1];
            ptrdiff_t m = of < 0 ? 1 : ends[of] - ends[of - 1];
            if (of < 0 && rule->has_nodata && *key_of == nodata) continue;
            for (; m; m--) {
                const int64_t key = *key_of++;
                uint32_t place = 0;
                if (few) {
                    while (place < kept && keys[place] != key) place++;
                } else {
                    const uint64_t mixed = ((uint64_t)key ^ (uint64_t)key >> 32) * seed;
                    size_t at = (size_t)((mixed ^ mixed >> 32) * 0x9e3779b97f4a7c15 >>
                                         (64 - slot_bits));
                    while (slots[at] && keys[slots[at] - 1] != key)
                        at = (at + 1) & (((size_t)1 << slot_bits) - 1);
                    place = slots[at] ? slots[at] - 1 : kept;
                    slots[at] = place + 1;
                }
                if (place == kept) keys[kept] = key, counts[kept++] = 0;
                counts[place] += *count_of++;
            }
        }
        for (uint32_t k = 0; k < kept; k++) {
            total += counts[k];
            if (counts[k] > most || (counts[k] == most && keys[k] < winner))
                most = counts[k], winner = keys[k];
        }
        to->kept += kept;
        list = to->lists++;
        to->ends[list] = to->kept;
    }
    to->list_of[to->blocks + lane] = (int32_t)list;
    to->labels[to->blocks + lane] = winner;
    lanes->bits[lane] = (uint64_t)(winner ^ flip);
    lanes->count[lane] = total;
}

/* ---- elements, with a filler where one is missing ---- */

static void fill_missing(fill_t *f, ptrdiff_t at, ptrdiff_t n) {
    const ptrdiff_t size = dtype_bytes[f->code];
    uint8_t there[FILLED];
    double row[FILLED], out[FILLED];
    int wild = 0;
    memset(there, 1, FILLED);
    for (ptrdiff_t m; n > 0; at += m, n -= m) {
        const char *x = f->x + at * size;
        char *to = f->to + at * size;
        m = n < FILLED ? n : FILLED;
        for (ptrdiff_t k = 0; k < m * size; k += 64) __builtin_prefetch(x + m * size + k);
        if (m < FILLED) memset(there + m, 0, (size_t)(FILLED - m));
        if (f->where) memcpy(there, f->where + at, (size_t)m);
        if (m < FILLED) memcpy(row, x, (size_t)(m * size));
        wild |= BY_BYTES(size, fill, m < FILLED ? (char *)out : to,
                         m < FILLED ? (const char *)row : x, there, f);
        if (m < FILLED) memcpy(to, out, (size_t)(m * size));
    }
    if (wild) __atomic_store_n(&f->wild, 1, __ATOMIC_RELAXED);
}

#endif
