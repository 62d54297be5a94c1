#include "input/text_dataset.h"

#include <xxhash.h>

#include <algorithm>
#include <utility>

#include "common/check.h"
#include "input/rows.h"
#include "input/typed_values.h"

namespace disttrain::input {

TextDataset::TextDataset(Text text, std::uint64_t begin, std::uint64_t end, double scale)
    : text_(std::move(text)), begin_(begin), records_(end - begin), scale_(scale) {
  DISTTRAIN_CHECK_LT(begin, end);
  DISTTRAIN_CHECK_LE(end, text_.records);
  hash_ = XXH3_64bits(text_.bytes.data(), text_.bytes.size());
  const bool is_bytes = text_.dtype == DType::kUint8;
  const std::int64_t largest =
      is_bytes ? std::to_integer<std::int64_t>(*std::max_element(text_.bytes.begin(), text_.bytes.end()))
               : text_.largest;
  columns_.push_back({.name = "inputs", .dtype = text_.dtype, .elements = text_.window, .largest = largest});
}

std::uint64_t TextDataset::first_token(std::uint64_t record) const {
  const auto after = std::upper_bound(text_.files.begin(), text_.files.end(), record,
                                      [](std::uint64_t r, const Text::File& file) { return r < file.first_record; });
  const Text::File& file = *(after - 1);
  return file.begin + (record - file.first_record) * text_.stride;
}

Status TextDataset::gather(std::span<const std::uint64_t> indices, std::span<const ColumnOut> columns,
                           const Draw&) const {
  if (columns.empty()) return {};
  DISTTRAIN_CHECK_EQ(columns.size(), 1U);
  const ColumnOut& to = columns[0];
  DISTTRAIN_CHECK_EQ(element_count(to.as), text_.window);
  DISTTRAIN_CHECK_EQ(to.out.size(), indices.size() * text_.window * size_of(to.as.dtype));
  with_type(to.as.dtype, to.out, [&](auto values) {
    with_type(text_.dtype, std::span(const_cast<std::byte*>(text_.bytes.data()), text_.bytes.size()), [&](auto tokens) {
      constexpr std::uint64_t kFirst[] = {0};
      for (std::size_t i = 0; i < indices.size(); ++i) {
        DISTTRAIN_CHECK_LT(indices[i], records_);
        const auto* const window = tokens.data() + first_token(begin_ + indices[i]);
        gather_rows(window, {text_.window, text_.window}, kFirst, scale_, values.data() + i * text_.window);
      }
    });
  });
  return {};
}

}  // namespace disttrain::input
