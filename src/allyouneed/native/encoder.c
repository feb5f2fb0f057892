/* The encoder (§3.1, Figure 1 left), and the keys and values that the decoder's layers compute from its output.

   Sentences are encoded as rows without padding, a few sentences at a time, so that their numbers stay in the cache.
   No row depends on another sentence. */

#include <string.h>

#include "encoder.h"

enum { ROWS_AT_ONCE = 128 };

static void attend(const Model *model, Workspace *w, const Attention *attention, const float *input, const int32_t *lengths,
                   int sentences, int rows) {
    const Config *c = &model->config;
    const int keys = c->heads * c->d_k, d_stride = round_up(c->d_model, PANEL), q_stride = round_up(keys, PANEL);
    const int kv_stride = round_up(keys + c->heads * c->d_v, PANEL), v_stride = round_up(c->heads * c->d_v, PANEL);
    int first = 0;
    apply(model, w, &attention->query, input, d_stride, rows, w->query, q_stride);
    apply(model, w, &attention->key_value, input, d_stride, rows, w->key_value, kv_stride);
    for (int s = 0; s < sentences; first += lengths[s++]) {
        const int length = lengths[s];
        for (int t = 0; t < length; t++) {
            adjust_heads(model, w, w->query + (size_t)(first + t) * q_stride, attention->query_gain, t);
            adjust_heads(model, w, w->key_value + (size_t)(first + t) * kv_stride, attention->key_gain, t);
            note(model, w, w->query + (size_t)(first + t) * q_stride, keys);
            note(model, w, w->key_value + (size_t)(first + t) * kv_stride, keys + c->heads * c->d_v);
        }
        for (int h = 0; h < c->heads; h++) {
            const float *key = w->key_value + (size_t)first * kv_stride + h * c->d_k;
            const float *value = w->key_value + (size_t)first * kv_stride + keys + h * c->d_v;
            keys_to_columns(key, kv_stride, length, c->d_k, w->columns);
            for (int t = first; t < first + length; t++) {
                model->kernels->attend_memory(w->query + (size_t)t * q_stride + h * c->d_k, w->columns, value, kv_stride,
                                              length, c->d_k, c->d_v, w->scores,
                                              w->attended + (size_t)t * v_stride + h * c->d_v);
                note(model, w, w->scores, length);
            }
        }
    }
    apply(model, w, &attention->output, w->attended, v_stride, rows, w->result, d_stride);
}

/* Compute the keys and values of one sentence, which begins at row `first` of the output, for one decoder layer. */
static void remember(const Model *model, Workspace *w, int layer, int first, Memory *memory) {
    const Config *c = &model->config;
    const int keys = c->heads * c->d_k, values = c->heads * c->d_v, kv_stride = round_up(keys + values, PANEL);
    const size_t head = (size_t)round_up(memory->length, 16) * c->d_k;
    for (int h = 0; h < c->heads; h++)
        keys_to_columns(w->key_value + (size_t)first * kv_stride + h * c->d_k, kv_stride, memory->length, c->d_k,
                        memory->keys + ((size_t)layer * c->heads + h) * head);
    for (int t = 0; t < memory->length; t++) {
        const float *key_value = w->key_value + (size_t)(first + t) * kv_stride;
        memcpy(memory->values + ((size_t)layer * memory->length + t) * values, key_value + keys, sizeof(float) * values);
        note(model, w, key_value, keys + values);
    }
}

static int encode_some(const Model *model, Workspace *w, Pool *pool, const int32_t *ids, const int32_t *lengths,
                       int sentences, int rows, Memory *memory) {
    const Config *c = &model->config;
    const int d_stride = round_up(c->d_model, PANEL), keys = c->heads * c->d_k, values = c->heads * c->d_v;
    int row = 0, longest = 0;
    for (int s = 0; s < sentences; s++) longest = lengths[s] > longest ? lengths[s] : longest;
    if (workspace_reserve(w, c, rows, longest, (size_t)round_up(longest, 16) * c->d_k)) return NO_MEMORY;

    for (int s = 0; s < sentences; s++)
        for (int t = 0; t < lengths[s]; t++, row++)
            embed(model, w, &model->source_embedding, model->source_positions, ids[row], t, w->x + (size_t)row * d_stride);
    for (int l = 0; l < c->encoder_layers; l++) {
        const Block *block = model->encoder + l;
        const float *input = sublayer_input(model, w, &block->self_attention_norm, rows);
        attend(model, w, &block->self_attention, input, lengths, sentences, rows);
        add_and_norm(model, w, &block->self_attention_norm, rows);
        feed_forward(model, w, block, rows);
    }

    for (int s = 0; s < sentences; s++) {
        const size_t layers = c->decoder_layers;
        memory[s].length = lengths[s];
        memory[s].keys = pool_take(pool, sizeof(float) * layers * keys * round_up(lengths[s], 16));
        memory[s].values = pool_take(pool, sizeof(float) * layers * values * lengths[s]);
    }
    if (pool->failed) return NO_MEMORY;
    for (int l = 0; l < c->decoder_layers; l++) {
        const float *output = sublayer_input(model, w, &model->encoder_norm, rows);
        int first = 0;
        apply(model, w, &model->decoder[l].cross_attention.key_value, output, d_stride, rows, w->key_value,
              round_up(keys + values, PANEL));
        for (int s = 0; s < sentences; first += lengths[s++]) remember(model, w, l, first, memory + s);
    }
    return OK;
}

int encode(const Model *model, Workspace *w, Pool *pool, const int32_t *ids, const int32_t *lengths, int sentences,
           Memory *memory) {
    int start = 0;
    while (start < sentences) {
        int end = start, rows = 0, error;
        do rows += lengths[end++];
        while (end < sentences && rows + lengths[end] <= ROWS_AT_ONCE);
        error = encode_some(model, w, pool, ids, lengths + start, end - start, rows, memory + start);
        if (error) return error;
        ids += rows;
        start = end;
    }
    return OK;
}
