/* Memory that is freed together. */

#include <stdint.h>
#include <stdlib.h>

#include "model.h"

#ifndef LINE
#define LINE 64 /* bytes of a cache line; the sanitizers are given 16, which leaves nothing unused after a block */
#endif

typedef struct PoolBlock {
    _Alignas(16) struct PoolBlock *previous; /* calloc aligns to 16 bytes */
} PoolBlock;

void *pool_take(Pool *pool, size_t size) {
    PoolBlock *block = calloc(sizeof *block + LINE - 16 + size, 1);
    if (!block) {
        pool->failed = 1;
        return NULL;
    }
    block->previous = pool->newest;
    pool->newest = block;
    return (void *)(((uintptr_t)(block + 1) + LINE - 1) / LINE * LINE);
}

void pool_free(Pool *pool) {
    while (pool->newest) {
        PoolBlock *block = pool->newest;
        pool->newest = block->previous;
        free(block);
    }
}
