#ifndef ALLYOUNEED_DECODER_H
#define ALLYOUNEED_DECODER_H

#include "layers.h"

/* The logits of the token after the newest ones, which `search->length` counts already: (N, V), `stride` apart. */
void decode(const Search *search, Workspace *w, const int32_t *tokens, float *logits, int stride);

#endif
