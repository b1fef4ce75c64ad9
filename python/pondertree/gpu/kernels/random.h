// The engine's random generator (`runtime/random.rs`).

#define PURPOSE_SELECT 1

DEVICE uint64 mix(uint64 z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
}
DEVICE uint64 fold(uint64 key, uint64 value) { return mix(key ^ mix(value + 0x9E3779B97F4A7C15ULL)); }
DEVICE int below(uint64 *state, int n) {
    *state += 0x9E3779B97F4A7C15ULL;
    return (int)(((mix(*state) >> 32) * (uint64)n) >> 32);
}
