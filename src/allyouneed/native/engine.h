/* The encoder-decoder Transformer for translating on a CPU: weights go in, log-probabilities of the next token come
   out.

   `nn/` is the definition, and docs/walk explains it; these files have the same parts under the same names. There is no
   global state: a model never changes after it was made, so any number of threads may use it at once, each with a
   search of its own. Callers check sizes against the config before they pass a pointer (native/engine.py). Ids and
   indices of hypotheses are checked here.

   B sentences   S source length   N hypotheses   D d_model   H heads   K, Kv widths of a head   F d_ff   V vocabulary */

#ifndef ALLYOUNEED_ENGINE_H
#define ALLYOUNEED_ENGINE_H

#include <stdint.h>

#include "kernels.h"

#if defined(_WIN32)
#define PUBLIC __declspec(dllexport)
#else
#define PUBLIC __attribute__((visibility("default")))
#endif

enum { OK = 0, NO_MEMORY = 1, BAD_ID = 2, BAD_HYPOTHESIS = 3, TOO_LONG = 4, NOT_FINITE = 5 };

/* The fields of `ModelConfig`, all in 32 bits. */
typedef struct {
    int32_t vocab_size, target_vocab_size, d_model, d_ff, heads, d_k, d_v, encoder_layers, decoder_layers, max_length;
    int32_t activation;     /* an `Activation` */
    int32_t norm_first;     /* "pre" */
    int32_t sinusoidal;     /* sines and cosines are added to the embeddings */
    int32_t rotary;         /* queries and keys of self-attention are rotated */
    int32_t query_key_norm; /* queries and keys of self-attention are normalized in each head */
    int32_t int8;           /* linear maps and embeddings in int8 */
    int32_t acausal;        /* only for the page: the target has no causal mask, see `search_step` */
    int32_t watched;        /* only for the page: a search keeps the numbers for `search_seen` */
} Config;

/* A hypothesis extended by a token, and the log-probability of both together. */
typedef struct {
    double total;
    int32_t hypothesis, token;
} Continuation;

typedef struct Model Model;
typedef struct Search Search;

/* The digest of the files that this library was compiled from. */
PUBLIC const char *sources(void);

/* The instruction sets of this processor, the fastest first; NULL after the last. */
PUBLIC const char *instruction_set(int number);

/* Make a model of the weights in the order of native/engine.py, with NULL for weights that the model lacks. The
   weights are copied. Weights that are already rounded to levels come with the scales of their rows; otherwise
   `scales` is NULL. If this fails, it sets `*error` and returns NULL. */
PUBLIC Model *model_new(const Config *config, const float *const *weights, const float *const *scales,
                        int instruction_set, int *error);
PUBLIC void model_free(Model *model);

/* Encode B sentences, which follow one another in `ids`, and start a search. Ids in `banned` get a probability of 0;
   with `renormalize`, the other ids share the banned probability. If this fails, it sets `*error` and returns NULL. */
PUBLIC Search *search_new(const Model *model, const int32_t *ids, const int32_t *lengths, int sentences,
                          const int32_t *banned, int banned_count, int renormalize, int *error);
PUBLIC void search_free(Search *search);

/* Make N hypotheses: new hypothesis n is `hypotheses[n]` of the previous step, extended by `tokens[n]`. Without the
   causal mask every step computes all positions again: the rows of a hypothesis are its tokens so far, and its last
   row predicts the next token. */
PUBLIC int search_step(Search *search, const int32_t *hypotheses, const int32_t *tokens, int rows);

/* The log-probabilities of the next token, (N, V); rows are `*stride` numbers apart. */
PUBLIC float *search_log_probabilities(Search *search, int *stride);

/* The queries, keys, values and attention weights of a watched search of one sentence. After `search_new`, for each
   layer of the encoder: S times a query (H · K) and a key and value (H · K + H · Kv), and weights (H, S, S); then,
   for each layer of the decoder, S times a key and value of the memory. After a step, for each layer: N times a
   query, key and value, weights (N, H, positions), N times a query to the memory, and weights (N, H, S). */
PUBLIC const float *search_seen(const Search *search);

/* Restrict the next token of one hypothesis: multiply the log-probabilities of `penalized` tokens, then keep only
   `forced` (−1: all), then remove `banned`, unless nothing would remain. */
PUBLIC int search_restrict(Search *search, int hypothesis, const int32_t *penalized, int penalized_count, float penalty,
                           const int32_t *banned, int banned_count, int forced);

/* Find the `count` best continuations of each remaining sentence, best first; `found` gets the number for each
   sentence. `best` must have room for `count` continuations per sentence. Returns the number of sentences. */
PUBLIC int search_best(const Search *search, const double *totals, int count, int32_t *found, Continuation *best);

#endif
