#ifndef ALLYOUNEED_ENCODER_H
#define ALLYOUNEED_ENCODER_H

#include "layers.h"

/* Encode sentences. The caller must check ids and lengths, and free the contents of `memory`, even after an error. */
int encode(const Model *model, Workspace *w, const int32_t *ids, const int32_t *lengths, int sentences, Memory *memory);

#endif
