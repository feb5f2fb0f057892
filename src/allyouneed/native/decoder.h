#ifndef ALLYOUNEED_DECODER_H
#define ALLYOUNEED_DECODER_H

#include "layers.h"

/* Return the logits of the next token, (N, V), `stride` apart. `search->length` already counts the newest tokens. */
void decode(const Search *search, Workspace *w, const int32_t *tokens, float *logits, int stride);

#endif
