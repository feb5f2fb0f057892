#ifndef ALLYOUNEED_ENCODER_H
#define ALLYOUNEED_ENCODER_H

#include "layers.h"

/* Encode sentences; the caller has checked ids and lengths, and frees what `memory` points to, also after an error. */
int encode(const Model *model, Workspace *w, const int32_t *ids, const int32_t *lengths, int sentences, Memory *memory);

#endif
