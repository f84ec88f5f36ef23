/* What the parts of blocks.h share: rules, and the lanes of columns and of rows. */
#ifndef FASTPOOL_BLOCK_TYPES_H
#define FASTPOOL_BLOCK_TYPES_H

#include "loops.h"
#include "convert.h"

enum { LANES = 64, MOST_TAPS = 64 }; /* MOST_TAPS: of blocks in columns; fits int8_t */
enum { FEW_LABELS = 12 }; /* searched without a table: 4 levels of 2x2 cells 9.0 -> 8.3 ms */
enum { MOST_SLOT_BITS = 11 }; /* of a table of keys, which stays in the first-level cache */

/* Lanes share nothing. Compilers that ask at run time whether they do, or that unroll such loops,
 * make three times the code. */
#if defined(__GNUC__) && !defined(__clang__)
#define ROLLED _Pragma("GCC unroll 1")
#define EACH_LANE ROLLED _Pragma("GCC ivdep") for (int i = 0; i < LANES; i++)
#else
#define ROLLED
#define EACH_LANE for (int i = 0; i < LANES; i++)
#endif

/* In the order of FUNCTIONS (fastpool/_planning/blocks.py). */
enum block_function { B_MAX, B_MIN, B_MODE, B_MEDIAN, B_MEAN, B_SUM, B_VAR, B_STD, B_COUNT };

typedef struct {
    int64_t code, function;
    int64_t result;      /* code of the type of results; float medians, var and std: F64 or F32 */
    int64_t rounding;    /* of quotients that become integers */
    int64_t ignores_nan; /* is a NaN missing? */
    int64_t has_nodata;  /* is an element missing that equals `nodata`? */
    int64_t nodata;      /* in the lowest bytes */
    int64_t missing;     /* what stands for a missing result, in the lowest bytes */
    int64_t need;        /* elements without which a result is missing */
    int64_t ddof;
    int64_t masked;      /* does the caller say which elements are missing? */
} block_rule_t;

/* A rule as constants of one width. mirror: bits that change in negative floats. */
typedef struct {
    int64_t flip, mirror, infinity, nodata[2], has_nodata, ignores_nan, inverted, filler;
    int all_there; /* integers none of which is missing */
} key_rule_t;

/* What a column or a list comes to: sums or other values, and how many elements they are of. */
typedef struct {
    int64_t high[LANES], low[LANES], by[LANES], count[LANES];
    double x[LANES];
    uint64_t bits[LANES]; /* of results */
    uint64_t row[LANES];  /* results, as elements of their type */
} block_lanes_t;

/* The labels of blocks. A whole block of equal elements has a label, which is the key of `nodata`
 * if all are missing. Any other block has a list: its different labels, and how many elements have
 * each. */
typedef struct {
    int64_t *labels;
    int32_t *list_of; /* -1 if all elements are equal */
    ptrdiff_t blocks;
    int64_t *keys;
    int32_t *counts;
    ptrdiff_t kept;  /* labels in lists */
    ptrdiff_t *ends; /* of each list; before the first one is 0 */
    ptrdiff_t lists;
    uint32_t *slots; /* a table of the labels of one list */
    int stopped;     /* are there no lists of what follows? */
} label_lists_t;

/* Elements in a row, of which some are missing. */
typedef struct {
    int64_t code;
    /* Of results. zeros: both zeros are missing. Magnitudes beyond `last` are missing. Those beyond
     * `most` are wild, and so are elements that equal the filler. */
    int64_t has_nodata, nodata, zeros, filler, most, last;
    int wild; /* is one that is there? */
    const char *x;
    const uint8_t *where; /* or NULL */
    char *to;
    ptrdiff_t n;
} fill_t;
enum { FILLED = 1024 }; /* at a time */

/* A row of outputs that are folded: blocks of `width` neighbours in each of `count` rows. After row
 * t of floats is read, the last sums[t] partial sums are added to it. */
typedef struct {
    char *to;
    int64_t *counts; /* or NULL */
    const char *taps[MOST_TAPS];
    const uint8_t *where[MOST_TAPS]; /* if the rule is masked */
    const uint8_t *sums;
    int count, width, pairs, odd; /* width: pairs * odd */
    int need;    /* of the rule, but it fits int8_t */
    ptrdiff_t n; /* outputs, of a vector at least */
    const block_rule_t *rule;
} block_folds_t;

static int is_float_code(int code) { return code <= F64; }
static int is_unsigned_code(int code) { return code >= U8 && code <= U64; }

/* A function by the bytes of an element. */
#define BY_BYTES(bytes, name, ...)                                                                \
    ((bytes) == 1   ? name##_8(__VA_ARGS__)                                                       \
     : (bytes) == 2 ? name##_16(__VA_ARGS__)                                                      \
     : (bytes) == 4 ? name##_32(__VA_ARGS__)                                                      \
                    : name##_64(__VA_ARGS__))

#endif
