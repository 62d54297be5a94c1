#include "input/image_resize.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/check.h"

namespace disttrain::input {

namespace {

constexpr int kBits = 11;  // of a weight; a value of 8 bits takes 8 + 2 * 11 = 30 bits with two weights
constexpr std::int32_t kOne = 1 << kBits;

// The two pixels of a line that a pixel of the result lies between, and the weight of the second one.
struct Neighbours {
  std::uint32_t first = 0;
  std::uint32_t second = 0;
  std::int32_t weight = 0;  // from 0 to kOne
};

std::vector<Neighbours> neighbours_of(std::uint32_t from, std::uint32_t to) {
  std::vector<Neighbours> all(to);
  const double scale = static_cast<double>(from) / to;
  for (std::uint32_t i = 0; i < to; ++i) {
    const double centre = std::clamp((i + 0.5) * scale - 0.5, 0.0, static_cast<double>(from - 1));
    const auto first = static_cast<std::uint32_t>(centre);
    all[i] = {first, std::min(first + 1, from - 1), static_cast<std::int32_t>(std::lround((centre - first) * kOne))};
  }
  return all;
}

template <std::uint32_t kChannels>
void resize_line(const std::uint8_t* in, const std::vector<Neighbours>& columns, std::int32_t* out) {
  for (const Neighbours& column : columns) {
    const std::uint8_t* const first = in + std::size_t{column.first} * kChannels;
    const std::uint8_t* const second = in + std::size_t{column.second} * kChannels;
    for (std::uint32_t c = 0; c < kChannels; ++c)
      *out++ = first[c] * (kOne - column.weight) + second[c] * column.weight;
  }
}

}  // namespace

void resize_image(const ImageShape& from, std::span<const std::uint8_t> in, const ImageShape& to,
                  std::span<std::uint8_t> out) {
  DISTTRAIN_CHECK(from.channels == to.channels && (from.channels == 1 || from.channels == 3));
  DISTTRAIN_CHECK_EQ(in.size(), from.bytes());
  DISTTRAIN_CHECK_EQ(out.size(), to.bytes());
  const std::vector<Neighbours> rows = neighbours_of(from.height, to.height);
  const std::vector<Neighbours> columns = neighbours_of(from.width, to.width);
  const std::size_t line_in = std::size_t{from.width} * from.channels;
  const std::size_t line_out = std::size_t{to.width} * to.channels;
  // The last two lines of `in` that were resized, and their numbers. Most lines of `out` share one with the line
  // before.
  std::vector<std::int32_t> lines[2] = {std::vector<std::int32_t>(line_out), std::vector<std::int32_t>(line_out)};
  std::int64_t numbers[2] = {-1, -1};
  const auto line = [&](std::uint32_t row) -> const std::int32_t* {
    const std::size_t slot = row % 2;
    if (numbers[slot] != row) {
      const std::uint8_t* const begin = in.data() + row * line_in;
      if (from.channels == 1)
        resize_line<1>(begin, columns, lines[slot].data());
      else
        resize_line<3>(begin, columns, lines[slot].data());
      numbers[slot] = row;
    }
    return lines[slot].data();
  };
  for (std::uint32_t y = 0; y < to.height; ++y) {
    const Neighbours& row = rows[y];
    const std::int32_t* const first = line(row.first);
    const std::int32_t* const second = line(row.second);
    std::uint8_t* const result = out.data() + y * line_out;
    constexpr std::int32_t kHalf = 1 << (2 * kBits - 1);
    for (std::size_t x = 0; x < line_out; ++x)
      result[x] =
          static_cast<std::uint8_t>((first[x] * (kOne - row.weight) + second[x] * row.weight + kHalf) >> (2 * kBits));
  }
}

}  // namespace disttrain::input
