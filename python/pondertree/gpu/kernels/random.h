// The engine's random generator (`runtime/random.rs`).

DEVICE bits64 mix(bits64 z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
}
DEVICE bits64 fold(bits64 key, bits64 word_) { return mix(key ^ mix(word_ + 0x9E3779B97F4A7C15ULL)); }
DEVICE int below(bits64 *state, int n) {
    *state += 0x9E3779B97F4A7C15ULL;
    return (int)(((mix(*state) >> 32) * (bits64)n) >> 32);
}
