/* Room for the numbers of a pass. */

#include <stdlib.h>
#include <string.h>

#include "layers.h"

static int largest(int a, int b) { return a > b ? a : b; }

static int grow(void *buffer, size_t size) {
    void **pointer = buffer;
    free(*pointer);
    *pointer = calloc(size, 1);
    return *pointer ? OK : NO_MEMORY;
}

/* Allocate room for `rows` rows, queries over `length` positions, and `columns` numbers of keys in columns. */
int workspace_reserve(Workspace *w, const Config *c, int rows, int length, size_t columns) {
    const int keys = c->heads * c->d_k, values = c->heads * c->d_v;
    const int widest = largest(largest(c->d_model, c->d_ff), values) + 4;
    int error = OK;
    if (rows > w->rows) {
        const size_t size = sizeof(float) * rows;
        w->rows = rows;
        error |= grow(&w->x, size * round_up(c->d_model, PANEL));
        error |= grow(&w->normed, size * round_up(c->d_model, PANEL));
        error |= grow(&w->query, size * round_up(keys, PANEL));
        error |= grow(&w->key_value, size * round_up(keys + values, PANEL));
        error |= grow(&w->attended, size * round_up(values, PANEL));
        error |= grow(&w->hidden, size * round_up(c->d_ff, PANEL));
        error |= grow(&w->result, size * round_up(c->d_model, PANEL));
        error |= grow(&w->levels, (size_t)rows * widest);
        error |= grow(&w->rounding, sizeof *w->rounding * rows);
        error |= grow(&w->turn, sizeof(float) * largest(c->d_model, c->d_k));
    }
    if (length > w->scores_size) {
        w->scores_size = 2 * length;
        error |= grow(&w->scores, sizeof(float) * (round_up(w->scores_size, 16) + 16));
        error |= grow(&w->cached, sizeof(float *) * w->scores_size);
    }
    if (columns > w->columns_size) {
        w->columns_size = columns;
        error |= grow(&w->columns, sizeof(float) * columns);
    }
    return error;
}

/* Keep numbers for the reader of a watched search. */
void note(const Model *model, Workspace *w, const float *numbers, int count) {
    if (!model->config.watched || w->seen_failed) return;
    if (w->seen_size + count > w->seen_room) {
        const size_t room = 2 * w->seen_room + count;
        float *seen = realloc(w->seen, sizeof(float) * room);
        w->seen_failed = !seen;
        if (!seen) return;
        w->seen = seen;
        w->seen_room = room;
    }
    memcpy(w->seen + w->seen_size, numbers, sizeof(float) * count);
    w->seen_size += count;
}

void workspace_free(Workspace *w) {
    void *buffers[] = {w->x,      w->normed,      w->query,  w->key_value, w->attended, w->hidden, w->result,
                       w->levels, w->rounding, w->scores, w->columns,   w->cached,   w->turn,
                       w->seen};
    for (size_t b = 0; b < sizeof buffers / sizeof *buffers; b++) free(buffers[b]);
}
