/* The parts of a model, as in Figure 1, and the state of a search. */

#ifndef ALLYOUNEED_MODEL_H
#define ALLYOUNEED_MODEL_H

#include <stddef.h>

#include "engine.h"

/* Memory that is freed together, in blocks of zeros. Each begins at a cache line: then no load of a register crosses
   lines. After an allocation has failed, `failed` is set. */
typedef struct {
    struct PoolBlock *newest;
    int failed;
} Pool;

typedef struct { const float *gain, *bias; } Norm;

typedef struct {
    Linear query, key_value, output; /* keys and values side by side: (…, D) → (…, H·K + H·Kv) */
    const float *query_gain, *key_gain;
} Attention;

typedef struct {
    Linear inner, outer;
} FeedForward;

typedef struct {
    Attention self_attention, cross_attention; /* an encoder block has no cross-attention */
    FeedForward feed_forward;
    Norm self_attention_norm, cross_attention_norm, feed_forward_norm;
} Block;

/* A table of V vectors: rows (V, D) or, in int8, the outputs of a linear map, which a tied projection shares. */
typedef struct {
    const float *rows;
    const Linear *map;
} Embedding;

struct Model {
    Config config;
    Pool pool;
    const Kernels *kernels;
    Embedding source_embedding, target_embedding;
    const float *source_positions, *target_positions; /* learned ones, (max_length, D), or NULL */
    float *sines;                                     /* positions to add, (known_positions, D), or NULL */
    float *turns;                                     /* sines and cosines of rotary positions, (known_positions, K) */
    int known_positions;                              /* sines of later positions are computed when needed */
    Block *encoder, *decoder;
    Norm encoder_norm, decoder_norm; /* closing norms of "pre" */
    Linear projection;
    Linear source_table, target_table; /* int8, of embeddings that are not tied to the projection */
};

/* Memory for the numbers of one pass through the layers, for up to `rows` rows that are `*_stride` numbers apart. */
typedef struct {
    Pool pool;
    int rows, length;
    size_t columns_size;
    float *x, *normed, *query, *key_value, *attended, *hidden, *result;
    int8_t *levels;       /* a row of inputs in int8 */
    Rounding *rounding;   /* of each row */
    float *scores;        /* of one query */
    float *columns;       /* keys of a sentence, in columns */
    const float **cached; /* the address of each position's keys and values */
    float *turn;          /* sines and cosines of one late position */
    float *seen;          /* the numbers of a watched search */
    size_t seen_size, seen_room;
    int seen_failed;
} Workspace;

/* A sentence's keys and values for the cross-attention of all decoder layers:
     keys   [decoder_layers][H][S / 16, rounded up][K][16]
     values [decoder_layers][S][H · Kv] */
typedef struct {
    int length;
    float *keys, *values;
} Memory;

/* All hypotheses at one position, and their keys and values: [decoder_layers][rows][H · K + H · Kv]. These never move;
   the row at the previous position that each hypothesis extends is recorded instead. */
typedef struct CachedPosition {
    const struct CachedPosition *previous;
    int rows;
    int32_t *parents, *sentences; /* of each hypothesis */
    float *key_value;
} CachedPosition;

struct Search {
    const Model *model;
    Workspace workspace;
    Pool pool;
    int sentences, length;        /* all sentences; tokens so far */
    Memory *memory;               /* of each sentence */
    const CachedPosition *newest; /* before the first token, each sentence has one hypothesis */
    float *log_probabilities;
    size_t log_probabilities_size;
    int32_t *banned;
    int banned_count, renormalize;
};

/* linear.c */
void linear_new(Pool *pool, Linear *map, const float *const *weights, const float *const *scales,
                const float *const *biases, const int *outputs, int count, int in, int int8);
void linear_row(const Linear *map, int output, float *x);
int all_finite(const float *x, size_t size);

/* pool.c */
void *pool_take(Pool *pool, size_t size);
void pool_free(Pool *pool);

/* position.c */
void sines_at(int position, int width, float *out);

static inline int round_up(int size, int multiple) { return (size + multiple - 1) / multiple * multiple; }

#endif
