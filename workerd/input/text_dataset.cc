#include "workerd/input/text_dataset.h"

#include <algorithm>
#include <utility>

#include "common/check.h"
#include "workerd/input/rows.h"
#include "workerd/input/typed_values.h"

namespace disttrain::input {

TextDataset::TextDataset(Text text, std::uint64_t begin, std::uint64_t end, double scale)
    : text_(std::move(text)), begin_(begin), records_(end - begin), scale_(scale) {
  DISTTRAIN_CHECK_LT(begin, end);
  DISTTRAIN_CHECK_LE(end, text_.records);
  const std::byte largest = *std::max_element(text_.bytes.begin(), text_.bytes.end());
  columns_.push_back({.name = "inputs",
                      .dtype = DType::kUint8,
                      .elements = text_.window,
                      .largest = std::to_integer<std::int64_t>(largest)});
}

std::uint64_t TextDataset::first_byte(std::uint64_t record) const {
  const auto after = std::upper_bound(text_.files.begin(), text_.files.end(), record,
                                      [](std::uint64_t r, const Text::File& file) { return r < file.first_record; });
  const Text::File& file = *(after - 1);
  return file.begin + (record - file.first_record) * text_.stride;
}

void TextDataset::gather(std::span<const std::uint64_t> indices, std::size_t column, const ColumnSpec& as,
                         std::span<std::byte> out) const {
  DISTTRAIN_CHECK_EQ(column, 0U);
  DISTTRAIN_CHECK_EQ(element_count(as), text_.window);
  DISTTRAIN_CHECK_EQ(out.size(), indices.size() * text_.window * size_of(as.dtype));
  with_type(as.dtype, out, [&](auto values) {
    constexpr std::uint64_t kFirst[] = {0};
    for (std::size_t i = 0; i < indices.size(); ++i) {
      DISTTRAIN_CHECK_LT(indices[i], records_);
      const auto* window = reinterpret_cast<const std::uint8_t*>(text_.bytes.data()) + first_byte(begin_ + indices[i]);
      gather_rows(window, text_.window, kFirst, scale_, values.data() + i * text_.window);
    }
  });
}

}  // namespace disttrain::input
