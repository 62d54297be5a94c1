#include "common/initialize.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "common/check.h"
#include "common/doubles.h"
#include "common/random.h"

namespace disttrain {
namespace {

// Sets out[j] for element i = first + j. `values` turns a block of random bits into four elements, and element i is
// number i % 4 of block i / 4.
template <typename T, typename Values>
void fill_from_blocks(std::uint64_t seed, std::uint64_t stream, std::uint64_t first, std::span<T> out,
                      const Values& values) {
  std::size_t written = 0;
  while (written < out.size()) {
    const std::uint64_t element = first + written;
    const std::array<double, 4> four = values(random_block(seed, stream, element / 4));
    for (std::size_t lane = element % 4; lane < 4 && written < out.size(); ++lane)
      out[written++] = static_cast<T>(four[lane]);
  }
}

template <typename T>
void initialize_elements(const VariableSpec& variable, std::uint64_t job_seed, std::uint64_t first_element,
                         std::span<T> out) {
  const std::uint64_t stream = stream_of("initial value of " + variable.name);
  const auto normal = [&](double deviation) {
    fill_from_blocks(job_seed, stream, first_element, out, [deviation](const PhiloxBlock& block) {
      std::array<double, 4> four = normals_of(block);
      for (double& value : four) value *= deviation;
      return four;
    });
  };
  const auto uniform = [&](double limit) {
    fill_from_blocks(job_seed, stream, first_element, out, [limit](const PhiloxBlock& block) {
      std::array<double, 4> four;
      // adding 0.5 makes the values symmetric around 0, and no value reaches the limit
      for (std::size_t lane = 0; lane < 4; ++lane) four[lane] = limit * (2.0 * ((block[lane] + 0.5) * 0x1p-32) - 1.0);
      return four;
    });
  };
  switch (variable.initializer.kind) {
    case InitializerKind::kZeros:
      std::fill(out.begin(), out.end(), T{0});
      return;
    case InitializerKind::kOnes:
      std::fill(out.begin(), out.end(), T{1});
      return;
    case InitializerKind::kUniform:
      return uniform(variable.initializer.scale);
    case InitializerKind::kNormal:
      return normal(variable.initializer.scale);
    case InitializerKind::kHe:
      return normal(std::sqrt(2.0 / static_cast<double>(variable.fan_in)));
    case InitializerKind::kGlorot:
      return uniform(std::sqrt(6.0 / (static_cast<double>(variable.fan_in) + static_cast<double>(variable.fan_out))));
  }
}

}  // namespace

void initialize(const VariableSpec& variable, std::uint64_t job_seed, std::uint64_t first_word, std::span<float> out) {
  DISTTRAIN_CHECK_LE(first_word, word_count(variable));
  DISTTRAIN_CHECK_LE(out.size(), word_count(variable) - first_word);
  if (variable.dtype == DType::kFloat64)
    initialize_elements(variable, job_seed, first_word / 2, as_doubles(out));
  else
    initialize_elements(variable, job_seed, first_word, out);
}

}  // namespace disttrain
