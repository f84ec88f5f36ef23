/* Modes of blocks of two neighbours in each of two or four rows, in registers, and the labels of
 * blocks as lists, with keys of KEY_BITS bits. block_keys.h includes this file once per width. */

INLINE void OF_KEY(order)(VEC *a, VEC *b) {
    const VEC greater = GREATER_OF(*a, *b);
    *a ^= *b ^ greater;
    *b = greater;
}

INLINE void OF_KEY(order_4)(VEC *k) {
    OF_KEY(order)(k, k + 1), OF_KEY(order)(k + 2, k + 3);
    OF_KEY(order)(k, k + 2), OF_KEY(order)(k + 1, k + 3);
    OF_KEY(order)(k + 1, k + 2);
}

/* Return the modes of a vector of blocks. Sort their elements, as keys. Count those that are there,
 * which come first. */
INLINE VEC OF_KEY(modes_of)(VEC *k, VEC *count, const key_rule_t *r, const int taps) {
    VEC run = (VEC){0} + 1, longest = run, best;
    for (int t = 0; t < taps; t++) {
        const VEC none = (k[t] == (KEY)r->nodata[0]) & (KEY)r->has_nodata;
        k[t] = SELECT(none, KEY_MOST, k[t] ^ (KEY)r->flip);
        *count += none;
    }
    OF_KEY(order_4)(k);
    if (taps == 8) {
        OF_KEY(order_4)(k + 4);
        for (int t = 0; t < 4; t++) OF_KEY(order)(k + t, k + t + 4);
        OF_KEY(order)(k + 2, k + 4), OF_KEY(order)(k + 3, k + 5);
        for (int t = 1; t < 7; t += 2) OF_KEY(order)(k + t, k + t + 1);
    }
    best = k[0];
    for (int t = 1; t < taps; t++) {
        run = (run & (k[t] == k[t - 1])) + 1;
        const VEC better = (run > longest) & (*count > (KEY)t);
        longest = SELECT(better, run, longest);
        best = SELECT(better, k[t], best);
    }
    return best;
}

/* Set the modes of n blocks, a vector at a time. Segments are large: vectors of one label need no
 * order. */
static void OF_KEY(small_modes)(block_lanes_t *to, void *sorted, const char *x,
                                const ptrdiff_t *places, int taps, int n, int counts,
                                const block_rule_t *rule) {
    const key_rule_t r = key_rule_of(rule, KEY_BITS);
    KEY(*rows)[LANES] = (KEY(*)[LANES])sorted;
    KEY best[LANES], count[LANES];
    VEC k[8] = {{0}};
    EACH_VECTOR(VEC_KEYS, n) {
        VEC others = {0}, there = others + (KEY)taps, mode;
        for (int t = 0; t < taps; t += 2) {
            const KEY *from = (const KEY *)(x + places[t]) + 2 * i;
            const vec_t a = vec_load(from), b = vec_load(from + VEC_KEYS);
            __builtin_prefetch((const char *)from + 1024); /* (-20 % of the time) */
            __builtin_prefetch((const char *)from + 1024 + VEC_BYTES);
            k[t] = (VEC)vec_concat_even(a, b, from);
            k[t + 1] = (VEC)vec_concat_odd(a, b, from);
            others |= (k[t] ^ k[0]) | (k[t + 1] ^ k[0]);
        }
        if (vec_any((vec_t)others)) {
            mode = taps == 4 ? OF_KEY(modes_of)(k, &there, &r, 4)
                             : OF_KEY(modes_of)(k, &there, &r, 8);
            for (int t = 0; t < taps; t++) vec_store(rows[t] + i, (vec_t)k[t]);
        } else {
            mode = k[0] ^ (KEY)r.flip;
            there &= (k[0] != (KEY)r.nodata[0]) | (KEY)~r.has_nodata;
            vec_store(rows[0] + i, (vec_t)mode), vec_store(rows[taps - 1] + i, (vec_t)mode);
        }
        vec_store(best + i, (vec_t)mode);
        vec_store(count + i, (vec_t)there);
    }
    OF_KEY(set_elements)(to, best, count, rule, &r);
    if (counts) OF_KEY(set_counts)(to->count, count, 0); /* (12 % of the time of uint8) */
}

/* Append n columns of sorted keys: those of one label, and lists of the labels of the others. */
static NOINLINE void OF_KEY(list_columns)(label_lists_t *to, const void *sorted,
                                          const int64_t *count, int taps, int n, int whole,
                                          const block_rule_t *rule) {
    const KEY(*rows)[LANES] = (const KEY(*)[LANES])sorted;
    const int64_t nodata = nodata_key(rule), has_nodata = rule->has_nodata;
    ptrdiff_t kept = to->kept, lists = to->lists;
    int64_t *restrict keys = to->keys, *restrict labels = to->labels + to->blocks;
    int32_t *restrict counts = to->counts, *restrict list_of = to->list_of + to->blocks;
    for (int i = 0; i < n; i++) {
        const int held = (int)count[i];
        const int equal = held == taps ? rows[0][i] == rows[taps - 1][i] : !held && has_nodata;
        labels[i] = held ? rows[0][i] : nodata, list_of[i] = -1;
        if (whole && equal) continue;
        const int one = held && rows[0][i] == rows[held - 1][i];
        if (one) keys[kept] = labels[i], counts[kept++] = held;
        for (int t = 1, before = 0; t <= held && !one; t++) { /* (there is one row more) */
            const int last = (t == held) | (rows[t - 1][i] != rows[t][i]);
            keys[kept] = rows[t - 1][i], counts[kept] = t - before;
            kept += last; /* (no branches: they would be mispredicted) */
            before += (t - before) & -last;
        }
        list_of[i] = (int32_t)lists;
        to->ends[lists++] = kept;
    }
    to->kept = kept, to->lists = lists, to->blocks += n;
}
