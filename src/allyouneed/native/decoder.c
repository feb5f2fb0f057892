/* The decoder (§3.1, Figure 1 right), one token of every hypothesis at a time. */

#include <string.h>

#include "decoder.h"

/* The position of a row: the newest one. In a target without the causal mask, every position is a row. */
static int position_of(const Search *search, int row) {
    return search->model->config.acausal ? row % search->length : search->length - 1;
}

/* Find the keys and values that a row attends to, the newest first: those of its ancestors or, without the causal
   mask, those of rows of this step. */
static void find_cached(const Search *search, Workspace *w, int layer, int row, int width) {
    const CachedPosition *position = search->newest;
    const int acausal = search->model->config.acausal;
    if (acausal) row += search->length - 1 - row % search->length;
    for (int t = search->length - 1; t >= 0; t--) {
        w->cached[t] = position->key_value + ((size_t)layer * position->rows + row) * width;
        row = acausal ? row - 1 : position->parents[row];
        position = acausal ? position : position->previous;
    }
}

/* Self-attention to the positions so far. The newest keys and values are put into the cache, where each hypothesis
   finds the keys and values of its own past. */
static void attend_to_past(const Search *search, Workspace *w, int layer, const float *input) {
    const Model *model = search->model;
    const Config *c = &model->config;
    const Attention *attention = &model->decoder[layer].self_attention;
    const int rows = search->newest->rows;
    const int keys = c->heads * c->d_k, values = c->heads * c->d_v, d_stride = round_up(c->d_model, PANEL);
    const int q_stride = round_up(keys, PANEL), kv_stride = round_up(keys + values, PANEL), v_stride = round_up(values, PANEL);
    float *cached = search->newest->key_value + (size_t)layer * rows * (keys + values);

    apply(model, w, &attention->query, input, d_stride, rows, w->query, q_stride);
    apply(model, w, &attention->key_value, input, d_stride, rows, w->key_value, kv_stride);
    for (int n = 0; n < rows; n++) {
        float *key_value = w->key_value + (size_t)n * kv_stride;
        adjust_heads(model, w, w->query + (size_t)n * q_stride, attention->query_gain, position_of(search, n));
        adjust_heads(model, w, key_value, attention->key_gain, position_of(search, n));
        memcpy(cached + (size_t)n * (keys + values), key_value, sizeof(float) * (keys + values));
        note(model, w, w->query + (size_t)n * q_stride, keys);
        note(model, w, key_value, keys + values);
    }
    for (int n = 0; n < rows; n++) {
        find_cached(search, w, layer, n, keys + values);
        for (int h = 0; h < c->heads; h++) {
            model->kernels->attend_rows(w->query + (size_t)n * q_stride + h * c->d_k, w->cached, h * c->d_k,
                                        keys + h * c->d_v, search->length, c->d_k, c->d_v, w->scores,
                                        w->attended + (size_t)n * v_stride + h * c->d_v);
            note(model, w, w->scores, search->length);
        }
    }
    apply(model, w, &attention->output, w->attended, v_stride, rows, w->result, d_stride);
}

static void attend_to_memory(const Search *search, Workspace *w, int layer, const float *input) {
    const Model *model = search->model;
    const Config *c = &model->config;
    const Attention *attention = &model->decoder[layer].cross_attention;
    const int rows = search->newest->rows, d_stride = round_up(c->d_model, PANEL), values = c->heads * c->d_v;
    const int q_stride = round_up(c->heads * c->d_k, PANEL), v_stride = round_up(values, PANEL);

    apply(model, w, &attention->query, input, d_stride, rows, w->query, q_stride);
    for (int n = 0; n < rows; n++) note(model, w, w->query + (size_t)n * q_stride, c->heads * c->d_k);
    for (int n = 0; n < rows; n++) {
        const Memory *memory = search->memory + search->newest->sentences[n];
        const size_t head = (size_t)round_up(memory->length, 16) * c->d_k;
        for (int h = 0; h < c->heads; h++) {
            model->kernels->attend_memory(w->query + (size_t)n * q_stride + h * c->d_k,
                                          memory->keys + ((size_t)layer * c->heads + h) * head,
                                          memory->values + (size_t)layer * memory->length * values + h * c->d_v, values,
                                          memory->length, c->d_k, c->d_v, w->scores,
                                          w->attended + (size_t)n * v_stride + h * c->d_v);
            note(model, w, w->scores, memory->length);
        }
    }
    apply(model, w, &attention->output, w->attended, v_stride, rows, w->result, d_stride);
}

void decode(const Search *search, Workspace *w, const int32_t *tokens, float *logits, int stride) {
    const Model *model = search->model;
    const Config *c = &model->config;
    const int rows = search->newest->rows, d_stride = round_up(c->d_model, PANEL);

    for (int n = 0; n < rows; n++)
        embed(model, w, &model->target_embedding, model->target_positions, tokens[n], position_of(search, n),
              w->x + (size_t)n * d_stride);
    for (int l = 0; l < c->decoder_layers; l++) {
        const Block *block = model->decoder + l;
        attend_to_past(search, w, l, sublayer_input(model, w, &block->self_attention_norm, rows));
        add_and_norm(model, w, &block->self_attention_norm, rows);
        attend_to_memory(search, w, l, sublayer_input(model, w, &block->cross_attention_norm, rows));
        add_and_norm(model, w, &block->cross_attention_norm, rows);
        feed_forward(model, w, block, rows);
    }
    apply(model, w, &model->projection, sublayer_input(model, w, &model->decoder_norm, rows), d_stride, rows, logits, stride);
}
