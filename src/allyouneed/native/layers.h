/* The parts of the encoder and the decoder (layers.c). */

#ifndef ALLYOUNEED_LAYERS_H
#define ALLYOUNEED_LAYERS_H

#include "model.h"

int workspace_reserve(Workspace *w, const Config *c, int rows, int length, size_t columns);
void workspace_free(Workspace *w);
void note(const Model *model, Workspace *w, const float *numbers, int count);

void embed(const Model *model, Workspace *w, const Embedding *embedding, const float *learned, int id, int position,
           float *x);
void apply(const Model *model, Workspace *w, const Linear *map, const float *x, int x_stride, int rows, float *y,
           int y_stride);
const float *sublayer_input(const Model *model, Workspace *w, const Norm *norm, int rows);
void add_and_norm(const Model *model, Workspace *w, const Norm *norm, int rows);
void adjust_heads(const Model *model, Workspace *w, float *heads, const float *gain, int position);
void keys_to_columns(const float *keys, int stride, int length, int d_k, float *columns);
void feed_forward(const Model *model, Workspace *w, const Block *block, int rows);

#endif
