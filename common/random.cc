#include "common/random.h"

#include <bit>
#include <cmath>

namespace disttrain {
namespace {

// The coefficients of a series, with that of the highest power first. They are computed at compile time, because
// divisions are slow.
template <std::size_t kTerms, typename Denominator>
constexpr std::array<double, kTerms> reciprocals(Denominator denominator) {
  std::array<double, kTerms> values{};
  for (std::size_t term = 0; term < kTerms; ++term) values[kTerms - 1 - term] = 1.0 / denominator(term);
  return values;
}
constexpr auto kLogarithm = reciprocals<11>([](std::size_t k) { return 2.0 * k + 1.0; });                  // 1/21 .. 1
constexpr auto kSine = reciprocals<8>([](std::size_t k) { return (2.0 * k + 2.0) * (2.0 * k + 3.0); });    // .. 1/6
constexpr auto kCosine = reciprocals<8>([](std::size_t k) { return (2.0 * k + 1.0) * (2.0 * k + 2.0); });  // .. 1/2

// Returns ln(x) for a normal number x > 0. It writes x as m * 2^e with m in [sqrt(1/2), sqrt(2)), and uses ln m = 2
// artanh((m - 1) / (m + 1)). The argument s of artanh is at most 0.172, so the first term that the series leaves out,
// s^23 / 23, is below 1e-18.
double natural_logarithm(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  auto exponent = static_cast<double>(static_cast<std::int64_t>(bits >> 52) - 1023);
  double mantissa = std::bit_cast<double>((bits & 0x000F'FFFF'FFFF'FFFF) | 0x3FF0'0000'0000'0000);
  if (mantissa >= 1.4142135623730951) {
    mantissa *= 0.5;
    exponent += 1.0;
  }
  const double s = (mantissa - 1.0) / (mantissa + 1.0);
  const double z = s * s;
  double series = 0.0;
  for (double coefficient : kLogarithm) series = series * z + coefficient;
  return exponent * 0.6931471805599453 + 2.0 * s * series;
}

struct SineCosine {
  double sine;
  double cosine;
};

// Returns the sine and cosine of 2 pi u, for 0 <= u < 1. It uses Taylor series for angles of up to an eighth of a turn,
// and then rotates the result by quarter turns.
SineCosine sine_cosine_of_turn(double u) {
  const int quarters = static_cast<int>(4.0 * u + 0.5);  // nearest; 4 is a whole turn
  const double x = 6.283185307179586 * (u - 0.25 * quarters);
  const double z = x * x;
  double sine = 1.0;
  double cosine = 1.0;
  for (std::size_t term = 0; term < kSine.size(); ++term) {
    sine = 1.0 - sine * (z * kSine[term]);
    cosine = 1.0 - cosine * (z * kCosine[term]);
  }
  sine *= x;
  switch (quarters % 4) {
    case 0:
      return {sine, cosine};
    case 1:
      return {cosine, -sine};
    case 2:
      return {-sine, -cosine};
    default:
      return {-cosine, sine};
  }
}

}  // namespace

std::array<double, 4> normals_of(const PhiloxBlock& block) {
  std::array<double, 4> normals;
  for (std::size_t pair = 0; pair < 4; pair += 2) {
    const double u = (block[pair] + 0.5) * 0x1p-32;  // never 0
    const double radius = std::sqrt(-2.0 * natural_logarithm(u));
    const SineCosine angle = sine_cosine_of_turn(uniform_of(block[pair + 1]));
    normals[pair] = radius * angle.cosine;
    normals[pair + 1] = radius * angle.sine;
  }
  return normals;
}

}  // namespace disttrain
