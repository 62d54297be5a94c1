// Random numbers as a function of a seed, a stream and a position. The result has the same bits on every machine, in
// whatever order the numbers are computed and however the work is split. The generator is Philox4x32-10: Salmon,
// Moraes, Dror, Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3" (SC 2011). This code doesn't use libm, whose
// results differ between systems. It uses only +, -, *, / and sqrt, which IEEE 754 rounds the same everywhere.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string_view>

namespace disttrain {

using PhiloxBlock = std::array<std::uint32_t, 4>;

// Applies the ten rounds of Philox to a counter.
constexpr PhiloxBlock philox4x32_10(PhiloxBlock counter, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t product1 = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(product0)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

// Returns block `index` of a stream. The seed is Philox's key; index and stream form its counter.
constexpr PhiloxBlock random_block(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  return philox4x32_10({static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32),
                        static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32)},
                       {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
}

// Returns the number of a stream, which is the 64-bit FNV-1a hash of a purpose and a number. Each use has its own
// purpose, such as stream_of("shuffle", epoch), so that no two uses get the same bits.
constexpr std::uint64_t stream_of(std::string_view purpose, std::uint64_t number = 0) {
  std::uint64_t hash = 14695981039346656037u;
  const auto add = [&hash](std::uint8_t byte) { hash = (hash ^ byte) * 1099511628211u; };
  for (char c : purpose) add(static_cast<std::uint8_t>(c));
  for (int i = 0; i < 8; ++i) add(static_cast<std::uint8_t>(number >> (8 * i)));
  return hash;
}

// In [0, 1), a multiple of 2^-32.
constexpr double uniform_of(std::uint32_t bits) {
  return bits * 0x1p-32;
}

// Returns four independent values of the standard normal distribution by the method of Box & Muller (1958). Words 0 and
// 1 give one pair (cosine, sine), and words 2 and 3 give the other. Each magnitude is below 6.8. The error is a few
// units of 1e-16.
std::array<double, 4> normals_of(const PhiloxBlock& block);

// Reads a stream word by word, for numbers that are drawn one after the other (shuffles, retries, tests). A copy
// continues at the same position. The standard library accepts it as a generator.
class Random {
 public:
  using result_type = std::uint32_t;

  constexpr explicit Random(std::uint64_t seed, std::uint64_t stream = 0) : seed_(seed), stream_(stream) {}

  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return std::numeric_limits<result_type>::max(); }

  constexpr std::uint32_t operator()() {
    if (used_ == 4) {
      block_ = random_block(seed_, stream_, next_block_++);
      used_ = 0;
    }
    return block_[used_++];
  }

  constexpr std::uint64_t bits64() {
    const std::uint64_t low = (*this)();
    return low | std::uint64_t{(*this)()} << 32;
  }

  // In [0, 1), a multiple of 2^-53.
  constexpr double uniform() { return static_cast<double>(bits64() >> 11) * 0x1p-53; }

  // Returns a number from 0 to bound - 1, all with the same probability. `bound` must be at least 1. Draws again if a
  // draw would make small results more probable.
  constexpr std::uint64_t below(std::uint64_t bound) {
    const std::uint64_t unfair = (0 - bound) % bound;  // 2^64 mod bound
    std::uint64_t bits = bits64();
    while (bits < unfair) bits = bits64();
    return bits % bound;
  }

 private:
  std::uint64_t seed_;
  std::uint64_t stream_;
  std::uint64_t next_block_ = 0;
  PhiloxBlock block_{};
  std::uint32_t used_ = 4;
};

}  // namespace disttrain
