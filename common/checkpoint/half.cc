#include "common/checkpoint/half.h"

#include <bit>
#include <cmath>

namespace disttrain::checkpoint {
namespace {

constexpr std::uint32_t kInfinity = 0x7f800000;
constexpr std::uint32_t kLeastNormal = 0x38800000;  // 2^-14, of F16
constexpr std::uint32_t kTooLarge = 0x47800000;     // 2^16
constexpr std::uint32_t kBias = std::uint32_t{127 - 15} << 23;

// Drops this many low bits of `bits`, and rounds to nearest, ties to even.
std::uint32_t rounded(std::uint32_t bits, int dropped) {
  const std::uint32_t half = (std::uint32_t{1} << (dropped - 1)) - 1;
  return (bits + half + ((bits >> dropped) & 1)) >> dropped;
}

}  // namespace

float from_f16(std::uint16_t bits) {
  const std::uint32_t sign = std::uint32_t{bits & 0x8000u} << 16;
  const std::uint32_t exponent = (bits >> 10) & 31u;
  const std::uint32_t mantissa = bits & 1023u;
  std::uint32_t magnitude = ((exponent << 23) + kBias) | (mantissa << 13);
  if (exponent == 0) magnitude = std::bit_cast<std::uint32_t>(std::ldexp(static_cast<float>(mantissa), -24));
  if (exponent == 31) magnitude = kInfinity | (mantissa << 13);
  return std::bit_cast<float>(sign | magnitude);
}

float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

std::uint16_t to_f16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7fffffff;
  std::uint32_t half = 0;
  if (magnitude > kInfinity)
    half = 0x7e00 | ((magnitude >> 13) & 1023u);
  else if (magnitude >= kTooLarge)
    half = 0x7c00;
  else if (magnitude >= kLeastNormal)
    half = rounded(magnitude - kBias, 13);
  else
    half = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(std::bit_cast<float>(magnitude), 24)));
  return static_cast<std::uint16_t>(((bits >> 16) & 0x8000u) | half);
}

std::uint16_t to_bf16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffff) > kInfinity) return static_cast<std::uint16_t>((bits >> 16) | 0x40);
  return static_cast<std::uint16_t>(rounded(bits, 16));
}

}  // namespace disttrain::checkpoint
