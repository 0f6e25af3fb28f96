#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/hash.h"

#include <stdio.h>

Hash128 hash128_seed(const void *bytes, size_t length, uint64_t seed)
{
    XXH128_hash_t hash = XXH3_128bits_withSeed(bytes, length, seed);
    return (Hash128){.low = hash.low64, .high = hash.high64};
}

Hash128 hash128(const void *bytes, size_t length)
{
    return hash128_seed(bytes, length, 0);
}

void hash128_bytes(Hash128 hash, uint8_t out[16])
{
    for (int i = 0; i < 8; i++) {
        out[i] = (uint8_t)(hash.high >> (56 - 8 * i));
        out[8 + i] = (uint8_t)(hash.low >> (56 - 8 * i));
    }
}

void hash128_hex(Hash128 hash, char out[33])
{
    snprintf(out, 33, "%016llx%016llx", (unsigned long long)hash.high, (unsigned long long)hash.low);
}
