#ifndef ALLYOUNEED_ENCODER_H
#define ALLYOUNEED_ENCODER_H

#include "layers.h"

/* Encode sentences into `memory`, whose numbers are taken from the pool. The caller must check ids and lengths. */
int encode(const Model *model, Workspace *w, Pool *pool, const int32_t *ids, const int32_t *lengths, int sentences,
           Memory *memory);

#endif
