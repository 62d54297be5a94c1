#include "engine/dropout.h"

namespace disttrain::workerd {
namespace {

// splitmix64 (Steele, Lea, Flood 2014) mixes 64 bits well. So mix(seed + i) serves as the i-th random number.
std::uint64_t mix(std::uint64_t value) {
  value += 0x9E3779B97F4A7C15U;
  value = (value ^ (value >> 30U)) * 0xBF58476D1CE4E5B9U;
  value = (value ^ (value >> 27U)) * 0x94D049BB133111EBU;
  return value ^ (value >> 31U);
}

}  // namespace

void dropout_mask(const StepSeed& seed, double rate, std::span<float> mask, std::uint64_t first) {
  const std::uint64_t stream = mix(mix(mix(seed.job_seed) ^ seed.step) ^ seed.rank) + first;
  const auto dropped = static_cast<std::uint64_t>(rate * 0x1p32);
  const float kept = static_cast<float>(1.0 / (1.0 - rate));
  for (std::size_t i = 0; i < mask.size(); ++i) mask[i] = (mix(stream + i) >> 32U) < dropped ? 0.0F : kept;
}

}  // namespace disttrain::workerd
