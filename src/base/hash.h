/* Hashes. XXH3-128 (libxxhash, inlined) for identities and checksums; SHA-like strength is not needed anywhere: these
 * tell accidents apart, not attackers. */
#ifndef OPENETL_BASE_HASH_H
#define OPENETL_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

typedef struct Hash128 {
    uint64_t low;
    uint64_t high;
} Hash128;

Hash128 hash128(const void *bytes, size_t length);
Hash128 hash128_seed(const void *bytes, size_t length, uint64_t seed);
/* Big-endian 16 bytes (XXH128's canonical form). */
void hash128_bytes(Hash128 hash, uint8_t out[16]);
/* 32 hex digits and a NUL. */
void hash128_hex(Hash128 hash, char out[33]);

#endif
