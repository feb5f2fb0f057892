/* The boxes of Figure 1 that the encoder and the decoder share. */

#include <string.h>

#include "layers.h"

/* Return the sines of a position, from the table or computed now. */
static const float *sines(const Model *model, Workspace *w, const float *known, int position, int width, int stride) {
    if (position < model->known_positions) return known + (size_t)position * stride;
    sines_at(position, width, w->turn);
    return w->turn;
}

/* Embed an id (§3.4 and §3.5): a row of the table times √d_model, plus the vector of its position. */
void embed(const Model *model, Workspace *w, const Embedding *embedding, const float *learned, int id, int position,
           float *x) {
    const int d_model = model->config.d_model;
    const float scale = __builtin_sqrtf((float)d_model);
    if (embedding->map)
        linear_row(embedding->map, id, x);
    else
        memcpy(x, embedding->rows + (size_t)id * d_model, sizeof(float) * d_model);
    for (int i = 0; i < d_model; i++) x[i] *= scale;
    if (learned) model->kernels->add(x, learned + (size_t)position * d_model, d_model);
    if (model->config.sinusoidal)
        model->kernels->add(x, sines(model, w, model->sines, position, d_model, d_model), d_model);
}

/* Apply a linear map to rows. In int8, each row is rounded to levels first. */
void apply(const Model *model, Workspace *w, const Linear *map, const float *x, int x_stride, int rows, float *y,
           int y_stride) {
    const Kernels *kernels = model->kernels;
    if (!map->levels) {
        kernels->linear_float(map, x, x_stride, rows, y, y_stride);
        return;
    }
    for (int r = 0; r < rows; r++)
        kernels->quantize(x + (size_t)r * x_stride, map->in, w->levels + (size_t)r * map->quads * 4, w->rounding + r);
    kernels->linear_int8(map, w->levels, w->rounding, rows, y, y_stride);
}

/* "pre": x normalized; "post": x itself (§3.1). */
const float *sublayer_input(const Model *model, Workspace *w, const Norm *norm, int rows) {
    const int d_model = model->config.d_model, stride = round_up(d_model, PANEL);
    if (!model->config.norm_first) return w->x;
    for (int r = 0; r < rows; r++)
        model->kernels->layer_norm(w->x + (size_t)r * stride, norm->gain, norm->bias, d_model, w->normed + (size_t)r * stride);
    return w->normed;
}

/* x + the sublayer's result, normalized with "post". */
void add_and_norm(const Model *model, Workspace *w, const Norm *norm, int rows) {
    const int d_model = model->config.d_model, stride = round_up(d_model, PANEL);
    for (int r = 0; r < rows; r++) {
        float *x = w->x + (size_t)r * stride;
        model->kernels->add(x, w->result + (size_t)r * stride, d_model);
        if (!model->config.norm_first) model->kernels->layer_norm(x, norm->gain, norm->bias, d_model, x);
    }
}

/* Normalize, then rotate the queries or keys of all heads at one position, as the parts of `younger/` do. */
void adjust_heads(const Model *model, Workspace *w, float *heads, const float *gain, int position) {
    const Config *c = &model->config;
    const int half = c->d_k / 2;
    const float *turn = c->rotary ? sines(model, w, model->turns, position, 2 * half, c->d_k) : NULL;
    for (int h = 0; h < c->heads; h++) {
        float *x = heads + h * c->d_k;
        if (c->query_key_norm) model->kernels->rms_norm(x, gain, c->d_k);
        for (int i = 0; turn && i < half; i++) {
            const float first = x[i], second = x[half + i], sine = turn[2 * i], cosine = turn[2 * i + 1];
            x[i] = first * cosine - second * sine;
            x[half + i] = second * cosine + first * sine;
        }
    }
}

/* Arrange the keys of one head, one per row, in columns of 16 positions. The last column is filled up with zeros. */
void keys_to_columns(const float *keys, int stride, int length, int d_k, float *columns) {
    memset(columns, 0, sizeof(float) * round_up(length, 16) * d_k);
    for (int t = 0; t < length; t++)
        for (int k = 0; k < d_k; k++) columns[((size_t)(t / 16) * d_k + k) * 16 + t % 16] = keys[(size_t)t * stride + k];
}

/* §3.3, with its residual connection. */
void feed_forward(const Model *model, Workspace *w, const Block *block, int rows) {
    const Config *c = &model->config;
    const int d_stride = round_up(c->d_model, PANEL), f_stride = round_up(c->d_ff, PANEL);
    const float *input = sublayer_input(model, w, &block->feed_forward_norm, rows);
    apply(model, w, &block->feed_forward.inner, input, d_stride, rows, w->hidden, f_stride);
    for (int r = 0; r < rows; r++)
        model->kernels->activate(w->hidden + (size_t)r * f_stride, c->d_ff, (Activation)c->activation);
    apply(model, w, &block->feed_forward.outer, w->hidden, f_stride, rows, w->result, d_stride);
    add_and_norm(model, w, &block->feed_forward_norm, rows);
}
