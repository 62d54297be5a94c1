#include "engine/pooling.h"

namespace disttrain::workerd {

void max_pool(std::span<const float> in, std::int64_t side, std::span<float> out, std::span<std::uint8_t> which) {
  const std::int64_t half = side / 2;
  const float* upper = in.data();
  for (std::size_t row = 0; row * static_cast<std::size_t>(half) < out.size(); ++row, upper += 2 * side) {
    const float* lower = upper + side;
    float* largest = out.data() + static_cast<std::int64_t>(row) * half;
    std::uint8_t* position = which.data() + static_cast<std::int64_t>(row) * half;
    for (std::int64_t x = 0; x < half; ++x) {
      // A comparison with NaN is false. So `!(others[i] <= most)` is true if others[i] is NaN, and `most == most` is
      // false if `most` is NaN. Together they choose the first NaN of the block.
      float most = upper[2 * x];
      std::uint8_t at = 0;
      const float others[3] = {upper[2 * x + 1], lower[2 * x], lower[2 * x + 1]};
      for (std::uint8_t i = 0; i < 3; ++i) {
        const bool more = !(others[i] <= most) && most == most;
        most = more ? others[i] : most;
        at = more ? static_cast<std::uint8_t>(i + 1) : at;
      }
      largest[x] = most;
      position[x] = at;
    }
  }
}

void max_pool_gradient(std::span<const float> gradient_out, std::span<const std::uint8_t> which, std::int64_t side,
                       std::span<float> gradient_in) {
  const std::int64_t half = side / 2;
  float* upper = gradient_in.data();
  for (std::size_t row = 0; row * static_cast<std::size_t>(half) < gradient_out.size(); ++row, upper += 2 * side) {
    float* lower = upper + side;
    const float* gradient = gradient_out.data() + static_cast<std::int64_t>(row) * half;
    const std::uint8_t* position = which.data() + static_cast<std::int64_t>(row) * half;
    for (std::int64_t x = 0; x < half; ++x) {
      upper[2 * x] = position[x] == 0 ? gradient[x] : 0.0F;
      upper[2 * x + 1] = position[x] == 1 ? gradient[x] : 0.0F;
      lower[2 * x] = position[x] == 2 ? gradient[x] : 0.0F;
      lower[2 * x + 1] = position[x] == 3 ? gradient[x] : 0.0F;
    }
  }
}

}  // namespace disttrain::workerd
