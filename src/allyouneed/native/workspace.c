/* Room for the numbers of a pass. */

#include <stdlib.h>
#include <string.h>

#include "layers.h"

static int largest(int a, int b) { return a > b ? a : b; }

/* Allocate room for `rows` rows, queries over `length` positions, and `columns` numbers of keys in columns. If one of
   them grows, all memory is new. */
int workspace_reserve(Workspace *w, const Config *c, int rows, int length, size_t columns) {
    const int keys = c->heads * c->d_k, values = c->heads * c->d_v;
    const int widest = largest(largest(c->d_model, c->d_ff), values) + 4;
    size_t size;
    if (w->pool.failed) return NO_MEMORY;
    if (rows <= w->rows && length <= w->length && columns <= w->columns_size) return OK;

    if (length > w->length) w->length = 2 * length;
    if (columns > w->columns_size) w->columns_size = columns;
    w->rows = largest(rows, w->rows);
    size = sizeof(float) * w->rows;
    pool_free(&w->pool);
    w->x = pool_take(&w->pool, size * round_up(c->d_model, PANEL));
    w->normed = pool_take(&w->pool, size * round_up(c->d_model, PANEL));
    w->query = pool_take(&w->pool, size * round_up(keys, PANEL));
    w->key_value = pool_take(&w->pool, size * round_up(keys + values, PANEL));
    w->attended = pool_take(&w->pool, size * round_up(values, PANEL));
    w->hidden = pool_take(&w->pool, size * round_up(c->d_ff, PANEL));
    w->result = pool_take(&w->pool, size * round_up(c->d_model, PANEL));
    w->levels = pool_take(&w->pool, (size_t)w->rows * widest);
    w->rounding = pool_take(&w->pool, sizeof *w->rounding * w->rows);
    w->turn = pool_take(&w->pool, sizeof(float) * largest(c->d_model, c->d_k));
    w->scores = pool_take(&w->pool, sizeof(float) * (round_up(w->length, 16) + 16));
    w->cached = pool_take(&w->pool, sizeof(float *) * w->length);
    w->columns = pool_take(&w->pool, sizeof(float) * w->columns_size);
    return w->pool.failed ? NO_MEMORY : OK;
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
    pool_free(&w->pool);
    free(w->seen);
}
