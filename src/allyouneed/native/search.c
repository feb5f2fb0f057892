/* The functions that a search calls: extend hypotheses, and find the best continuations. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "decoder.h"
#include "encoder.h"

static int stride_of(const Search *search) { return round_up(search->model->config.target_vocab_size, PANEL); }

static int bad_ids(const int32_t *ids, int count, int vocab_size) {
    for (int i = 0; i < count; i++)
        if (ids[i] < 0 || ids[i] >= vocab_size) return 1;
    return 0;
}

static int check_sentences(const Config *c, const int32_t *ids, const int32_t *lengths, int sentences) {
    for (int s = 0; s < sentences; ids += lengths[s++]) {
        if (lengths[s] < 1 || lengths[s] > c->max_length) return TOO_LONG;
        if (bad_ids(ids, lengths[s], c->vocab_size)) return BAD_ID;
    }
    return OK;
}

/* Add a position with `rows` hypotheses. */
static CachedPosition *add_position(Search *search, int rows) {
    const Config *c = &search->model->config;
    const size_t width = (size_t)c->heads * (c->d_k + c->d_v);
    CachedPosition *position = pool_take(&search->pool, sizeof *position);
    int32_t *parents = pool_take(&search->pool, sizeof *parents * rows);
    int32_t *sentences = pool_take(&search->pool, sizeof *sentences * rows);
    float *key_value = pool_take(&search->pool, sizeof(float) * c->decoder_layers * rows * width);
    if (search->pool.failed) return NULL;
    *position = (CachedPosition){search->newest, rows, parents, sentences, key_value};
    search->newest = position;
    return position;
}

static int begin(Search *search, const int32_t *ids, const int32_t *lengths, int sentences, const int32_t *banned,
                 int banned_count) {
    CachedPosition *position = add_position(search, sentences);
    search->memory = pool_take(&search->pool, sizeof *search->memory * sentences);
    search->banned = pool_take(&search->pool, sizeof *banned * (banned_count + 1));
    if (search->pool.failed) return NO_MEMORY;
    for (int s = 0; s < sentences; s++) position->sentences[s] = s;
    if (banned_count) memcpy(search->banned, banned, sizeof *banned * banned_count);
    return encode(search->model, &search->workspace, &search->pool, ids, lengths, sentences, search->memory);
}

Search *search_new(const Model *model, const int32_t *ids, const int32_t *lengths, int sentences, const int32_t *banned,
                   int banned_count, int renormalize, int *error) {
    const Config *c = &model->config;
    Search *search = NULL;

    *error = bad_ids(banned, banned_count, c->target_vocab_size) ? BAD_ID : check_sentences(c, ids, lengths, sentences);
    if (*error) return NULL;
    *error = NO_MEMORY;
    search = calloc(1, sizeof *search);
    if (!search) return NULL;
    search->model = model;
    search->sentences = sentences;
    search->banned_count = banned_count;
    search->renormalize = renormalize;
    *error = begin(search, ids, lengths, sentences, banned, banned_count);
    if (search->workspace.seen_failed) *error = NO_MEMORY;
    if (*error == OK) return search;
    search_free(search);
    return NULL;
}

void search_free(Search *search) {
    if (!search) return;
    pool_free(&search->pool);
    workspace_free(&search->workspace);
    free(search->log_probabilities);
    free(search);
}

/* Set up the rows of the remaining hypotheses, before their newest token is computed. */
static int continue_rows(Search *search, const int32_t *hypotheses, int rows) {
    const CachedPosition *before = search->newest;
    CachedPosition *position = add_position(search, rows);
    if (!position) return NO_MEMORY;
    for (int n = 0; n < rows; n++) {
        position->parents[n] = hypotheses[n];
        position->sentences[n] = before->sentences[hypotheses[n]];
    }
    search->length++;
    return OK;
}

int search_step(Search *search, const int32_t *hypotheses, const int32_t *tokens, int rows) {
    const Config *c = &search->model->config;
    const int stride = stride_of(search);
    const size_t size = (size_t)rows * stride;

    if (bad_ids(tokens, rows, c->target_vocab_size)) return BAD_ID;
    if (rows < 1 || bad_ids(hypotheses, rows, search->newest->rows)) return BAD_HYPOTHESIS;
    if (c->acausal && rows % (search->length + 1)) return BAD_HYPOTHESIS;
    if (search->length == c->max_length) return TOO_LONG;
    search->workspace.seen_size = 0;
    if (size > search->log_probabilities_size) {
        free(search->log_probabilities);
        search->log_probabilities_size = size;
        search->log_probabilities = malloc(sizeof(float) * size);
        if (!search->log_probabilities) search->log_probabilities_size = 0;
    }
    if (!search->log_probabilities || continue_rows(search, hypotheses, rows)) return NO_MEMORY;
    {
        int longest = search->length;
        for (int s = 0; s < search->sentences; s++)
            longest = search->memory[s].length > longest ? search->memory[s].length : longest;
        if (workspace_reserve(&search->workspace, c, rows, longest, 0)) return NO_MEMORY;
    }

    decode(search, &search->workspace, tokens, search->log_probabilities, stride);
    for (int n = 0; n < rows; n++) {
        float *row = search->log_probabilities + (size_t)n * stride;
        if (!search->renormalize) search->model->kernels->log_softmax(row, c->target_vocab_size);
        for (int b = 0; b < search->banned_count; b++) row[search->banned[b]] = -INFINITY;
        if (search->renormalize) search->model->kernels->log_softmax(row, c->target_vocab_size);
    }
    return search->workspace.seen_failed ? NO_MEMORY : OK;
}

const float *search_seen(const Search *search) { return search->workspace.seen; }

float *search_log_probabilities(Search *search, int *stride) {
    *stride = stride_of(search);
    return search->log_probabilities;
}

int search_restrict(Search *search, int hypothesis, const int32_t *penalized, int penalized_count, float penalty,
                    const int32_t *banned, int banned_count, int forced) {
    const int size = search->model->config.target_vocab_size;
    float *row, *before;

    if (!search->length || hypothesis < 0 || hypothesis >= search->newest->rows) return BAD_HYPOTHESIS;
    if (bad_ids(penalized, penalized_count, size) || bad_ids(banned, banned_count, size) || forced >= size) return BAD_ID;
    row = search->log_probabilities + (size_t)hypothesis * stride_of(search);
    before = malloc(sizeof(float) * size);
    if (!before) return NO_MEMORY;
    for (int i = 0; i < penalized_count; i++) row[penalized[i]] *= penalty;
    memcpy(before, row, sizeof(float) * size);
    for (int i = 0; i < size && forced >= 0; i++)
        if (i != forced) row[i] = -INFINITY;
    for (int i = 0; i < banned_count; i++) row[banned[i]] = -INFINITY;
    if (search->model->kernels->next_above(row, 0, size, -INFINITY) == size) memcpy(row, before, sizeof(float) * size);
    free(before);
    return OK;
}

/* ---- The best continuations, in a heap whose root is the worst one ---- */

static int is_better(const Continuation *a, const Continuation *b) {
    if (a->total != b->total) return a->total > b->total;
    if (a->hypothesis != b->hypothesis) return a->hypothesis < b->hypothesis;
    return a->token < b->token;
}

static int best_first(const void *a, const void *b) { return is_better(a, b) ? -1 : is_better(b, a); }

static void sink(Continuation *heap, int size) {
    int parent = 0;
    for (;;) {
        int worst = parent;
        for (int child = 2 * parent + 1; child <= 2 * parent + 2 && child < size; child++)
            if (is_better(heap + worst, heap + child)) worst = child;
        if (worst == parent) return;
        const Continuation moved = heap[parent];
        heap[parent] = heap[worst];
        heap[worst] = moved;
        parent = worst;
    }
}

static void rise(Continuation *heap, int child) {
    while (child && is_better(heap + (child - 1) / 2, heap + child)) {
        const Continuation moved = heap[child];
        heap[child] = heap[(child - 1) / 2];
        heap[(child - 1) / 2] = moved;
        child = (child - 1) / 2;
    }
}

/* Put the continuations of one hypothesis into a heap of at most `count`. Returns its size. */
static int offer(const Search *search, int hypothesis, double total, Continuation *heap, int size, int count) {
    const int vocabulary = search->model->config.target_vocab_size;
    const float *row = search->log_probabilities + (size_t)hypothesis * stride_of(search);
    float bound = -INFINITY;
    for (int token = 0;; token++) {
        Continuation offered;
        if (size == count) {
            bound = (float)(heap[0].total - total); /* rounded, so a little lower: the doubles decide below */
            bound -= fabsf(bound) * 1e-6f + 1e-30f;
        }
        token = search->model->kernels->next_above(row, token, vocabulary, bound);
        if (token == vocabulary) return size;
        offered.total = total + row[token];
        offered.hypothesis = hypothesis;
        offered.token = token;
        if (size < count) {
            heap[size] = offered;
            rise(heap, size++);
        } else if (is_better(&offered, heap)) {
            heap[0] = offered;
            sink(heap, size);
        }
    }
}

int search_best(const Search *search, const double *totals, int count, int32_t *found, Continuation *best) {
    const int rows = search->newest->rows;
    const int32_t *sentence_of = search->newest->sentences;
    int sentences = 0, n = 0;
    while (n < rows) {
        const int sentence = sentence_of[n];
        int size = 0;
        for (; n < rows && sentence_of[n] == sentence; n++)
            if (totals[n] > -INFINITY) size = offer(search, n, totals[n], best, size, count);
        qsort(best, size, sizeof *best, best_first);
        best += size;
        found[sentences++] = size;
    }
    return sentences;
}
