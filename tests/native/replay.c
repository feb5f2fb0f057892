/* Compute a recorded search, and print the bits of its log-probabilities: how the tests compare instruction sets that
   Python does not run on. Not part of the library.

   The file holds 32-bit numbers: a Config; for each weight its size, or 0, and its numbers; the count of sentences,
   their lengths, their ids; the count of steps; and for each step the count of rows, hypotheses, tokens. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"

static int32_t *next;

static int32_t *take(int count) {
    int32_t *taken = next;
    next += count;
    return taken;
}

int main(int argc, char **argv) {
    const float *weights[4096];
    int weight_count, sentences, ids = 0, steps, error;
    int32_t *lengths, *file;
    Config config;
    long size;
    FILE *stream = argc > 1 ? fopen(argv[1], "rb") : NULL;

    if (!stream) return 2;
    fseek(stream, 0, SEEK_END);
    size = ftell(stream);
    rewind(stream);
    file = next = malloc(size);
    if (!file || fread(file, 1, size, stream) != (size_t)size) return 2;

    memcpy(&config, take(sizeof config / 4), sizeof config);
    weight_count = *take(1);
    for (int w = 0; w < weight_count; w++) {
        const int numbers = *take(1);
        weights[w] = numbers ? (const float *)take(numbers) : NULL;
    }
    sentences = *take(1);
    lengths = take(sentences);
    for (int s = 0; s < sentences; s++) ids += lengths[s];

    for (int set = 0; instruction_set(set); set++) {
        int32_t *start = next;
        uint32_t hash = 2166136261u; /* FNV-1a of all bits */
        Model *model = model_new(&config, weights, NULL, set, &error);
        Search *search = model ? search_new(model, take(ids), lengths, sentences, NULL, 0, 1, &error) : NULL;
        if (!search) return 3;
        steps = *take(1);
        for (int step = 0; step < steps; step++) {
            const int rows = *take(1);
            const int32_t *hypotheses = take(rows);
            int stride;
            float *found;
            if (search_step(search, hypotheses, take(rows), rows)) return 4;
            found = search_log_probabilities(search, &stride);
            for (int n = 0; n < rows; n++)
                for (int v = 0; v < config.target_vocab_size; v++) {
                    uint32_t bits;
                    memcpy(&bits, found + (size_t)n * stride + v, 4);
                    hash = (hash ^ bits) * 16777619u;
                }
        }
        printf("%s %08x\n", instruction_set(set), hash);
        search_free(search);
        model_free(model);
        next = start;
    }
    free(file);
    return 0;
}
