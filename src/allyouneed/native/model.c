/* A model from its weights. */

#include <stdlib.h>
#include <string.h>

#include "model.h"

enum { KNOWN_POSITIONS = 512 };

/* The fastest first; build.py defines which sets the compiler knew. */
static const Kernels *const KNOWN[] = {
#ifdef HAVE_AVX512_VNNI
    &kernels_avx512_vnni,
#endif
#ifdef HAVE_AVX_VNNI
    &kernels_avx_vnni,
#endif
#ifdef HAVE_AVX2
    &kernels_avx2,
#endif
#ifdef HAVE_NEON_DOT
    &kernels_neon_dot,
#endif
#ifdef HAVE_NEON
    &kernels_neon,
#endif
#ifdef HAVE_WASM
    &kernels_wasm, /* no other: a page should not load code that it never runs */
#else
    &kernels_plain,
#endif
};

#if defined(__x86_64__)
#include <cpuid.h>

/* Ask the processor itself, because the compilers' own functions need libraries that some compilers lack. */
static int supported(const char *name) {
    const int wide = !strcmp(name, "avx512-vnni"), vnni = !strcmp(name, "avx-vnni"), avx2 = !strcmp(name, "avx2");
    unsigned a, b, c, d, b7, c7, saved;
    if (!wide && !vnni && !avx2) return 1;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 27 & 1) || !__get_cpuid_count(7, 0, &a, &b7, &c7, &d)) return 0;
    __asm__("xgetbv" : "=a"(saved), "=d"(d) : "c"(0)); /* which registers the system keeps for a program */
    if ((saved & 0x06) != 0x06 || !(b7 >> 5 & 1)) return 0;
    if (avx2) return 1;
    if (vnni) return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 4 & 1);
    return (saved & 0xe0) == 0xe0 && (b7 >> 16 & 1) && (b7 >> 17 & 1) && (b7 >> 30 & 1) && (b7 >> 31 & 1) && (c7 >> 11 & 1);
}
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>

static int supported(const char *name) {
    return strcmp(name, "neon-dot") || (getauxval(AT_HWCAP) >> 20 & 1); /* HWCAP_ASIMDDP */
}
#else
static int supported(const char *name) { return name != NULL; } /* every Apple M has the dot product */
#endif

static const Kernels *kernels_at(int number) {
    for (size_t k = 0; k < sizeof KNOWN / sizeof *KNOWN; k++)
        if (supported(KNOWN[k]->name) && number-- == 0) return KNOWN[k];
    return NULL;
}

#ifndef SOURCES
#define SOURCES unknown
#endif
#define QUOTED(x) #x
#define AS_TEXT(x) QUOTED(x)

const char *sources(void) { return AS_TEXT(SOURCES); }

const char *instruction_set(int number) {
    const Kernels *kernels = kernels_at(number);
    return kernels ? kernels->name : NULL;
}

/* ---- Weights, in the order in which native/engine.py lists them ---- */

typedef struct {
    const float *const *next, *const *scales;
    const Config *config;
    Model *model;
    int error;
} Reader;

static const float *take(Reader *reader, size_t size) {
    const float *weight = *reader->next++;
    if (reader->scales) reader->scales++;
    if (weight && !reader->error && !all_finite(weight, size)) reader->error = NOT_FINITE;
    return weight;
}

/* A copy that the model keeps. */
static const float *keep(Reader *reader, const float *weight, size_t size) {
    float *copy = weight ? pool_take(&reader->model->pool, sizeof(float) * size) : NULL;
    if (copy) memcpy(copy, weight, sizeof(float) * size);
    return copy;
}

static const float *take_copy(Reader *reader, size_t size) { return keep(reader, take(reader, size), size); }

static Norm take_norm(Reader *reader) {
    Norm norm;
    norm.gain = take_copy(reader, reader->config->d_model);
    norm.bias = take_copy(reader, reader->config->d_model);
    return norm;
}

/* Take `count` linear maps of vectors of size `in`, each with a weight and a bias, as one map. */
static void take_linear(Reader *reader, Linear *map, int in, int count, const int *outputs) {
    const float *weights[3], *scales[3], *biases[3];
    for (int m = 0; m < count; m++) {
        scales[m] = reader->scales ? *reader->scales : NULL;
        weights[m] = take(reader, (size_t)outputs[m] * in);
        biases[m] = take(reader, outputs[m]);
    }
    if (!reader->error)
        linear_new(&reader->model->pool, map, weights, scales, biases, outputs, count, in, reader->config->int8);
}

static void take_attention(Reader *reader, Attention *attention, int is_self) {
    const Config *c = reader->config;
    const int keys = c->heads * c->d_k, key_value[] = {keys, c->heads * c->d_v};
    take_linear(reader, &attention->query, c->d_model, 1, &keys);
    take_linear(reader, &attention->key_value, c->d_model, 2, key_value);
    take_linear(reader, &attention->output, c->heads * c->d_v, 1, &c->d_model);
    if (is_self) {
        attention->query_gain = take_copy(reader, c->d_k);
        attention->key_gain = take_copy(reader, c->d_k);
    }
}

static void take_block(Reader *reader, Block *block, int is_decoder) {
    const Config *c = reader->config;
    take_attention(reader, &block->self_attention, 1);
    block->self_attention_norm = take_norm(reader);
    if (is_decoder) {
        take_attention(reader, &block->cross_attention, 0);
        block->cross_attention_norm = take_norm(reader);
    }
    take_linear(reader, &block->feed_forward.inner, c->d_model, 1, &c->d_ff);
    take_linear(reader, &block->feed_forward.outer, c->d_ff, 1, &c->d_model);
    block->feed_forward_norm = take_norm(reader);
}

/* A table of V vectors as given, with the scales of its rows if the rows are already rounded to levels. */
typedef struct {
    const float *numbers, *scale;
} Table;

static Table take_table(Reader *reader, int vocab_size) {
    Table table;
    table.scale = reader->scales ? *reader->scales : NULL;
    table.numbers = take(reader, (size_t)vocab_size * reader->config->d_model);
    return table;
}

/* A table as a linear map, in which every vector is an output. */
static void new_table(Reader *reader, Linear *map, Table table, const float *bias, int vocab_size) {
    const Config *c = reader->config;
    if (!reader->error)
        linear_new(&reader->model->pool, map, &table.numbers, &table.scale, &bias, &vocab_size, 1, c->d_model, c->int8);
}

/* Take the embeddings: as copies of their tables or, in int8, as linear maps. Tied embeddings share a map. */
static void new_embeddings(Reader *reader, Model *model, Table source, Table target, int projection_is_tied) {
    const Config *c = reader->config;
    const int is_tied = !target.numbers;
    if (!c->int8) {
        model->source_embedding.rows = keep(reader, source.numbers, (size_t)c->vocab_size * c->d_model);
        model->target_embedding.rows = keep(reader, target.numbers, (size_t)c->target_vocab_size * c->d_model);
        if (is_tied) model->target_embedding = model->source_embedding;
        return;
    }
    if (!projection_is_tied) new_table(reader, &model->target_table, is_tied ? source : target, NULL, c->target_vocab_size);
    model->target_embedding.map = projection_is_tied ? &model->projection : &model->target_table;
    if (!is_tied) new_table(reader, &model->source_table, source, NULL, c->vocab_size);
    model->source_embedding.map = is_tied ? model->target_embedding.map : &model->source_table;
}

Model *model_new(const Config *config, const float *const *weights, const float *const *scales, int set, int *error) {
    Model *model = calloc(1, sizeof *model);
    Reader reader = {weights, scales, config, model, OK};
    Table source, target, projection;
    const float *bias;
    const Config *c;
    int rotated;

    *error = NO_MEMORY;
    if (!model) return NULL;
    model->config = *config;
    c = &model->config;
    rotated = c->d_k - c->d_k % 2;
    model->kernels = kernels_at(set);
    model->known_positions = c->max_length < KNOWN_POSITIONS ? c->max_length : KNOWN_POSITIONS;
    model->encoder = pool_take(&model->pool, sizeof *model->encoder * c->encoder_layers);
    model->decoder = pool_take(&model->pool, sizeof *model->decoder * c->decoder_layers);
    if (c->sinusoidal) model->sines = pool_take(&model->pool, sizeof(float) * model->known_positions * c->d_model);
    if (c->rotary) model->turns = pool_take(&model->pool, sizeof(float) * model->known_positions * c->d_k);
    if (!model->kernels || model->pool.failed) {
        model_free(model);
        return NULL;
    }
    for (int position = 0; position < model->known_positions; position++) {
        if (c->sinusoidal) sines_at(position, c->d_model, model->sines + (size_t)position * c->d_model);
        if (c->rotary) sines_at(position, rotated, model->turns + (size_t)position * c->d_k);
    }

    source = take_table(&reader, c->vocab_size);
    model->source_positions = take_copy(&reader, (size_t)c->max_length * c->d_model);
    for (int l = 0; l < c->encoder_layers; l++) take_block(&reader, model->encoder + l, 0);
    model->encoder_norm = take_norm(&reader);
    target = take_table(&reader, c->target_vocab_size);
    model->target_positions = take_copy(&reader, (size_t)c->max_length * c->d_model);
    for (int l = 0; l < c->decoder_layers; l++) take_block(&reader, model->decoder + l, 1);
    model->decoder_norm = take_norm(&reader);
    projection = take_table(&reader, c->target_vocab_size);
    bias = take(&reader, c->target_vocab_size);
    new_table(&reader, &model->projection, projection.numbers ? projection : target.numbers ? target : source, bias,
              c->target_vocab_size);
    new_embeddings(&reader, model, source, target, !projection.numbers);

    *error = model->pool.failed ? NO_MEMORY : reader.error;
    if (*error) {
        model_free(model);
        return NULL;
    }
    return model;
}

void model_free(Model *model) {
    if (model) pool_free(&model->pool);
    free(model);
}
