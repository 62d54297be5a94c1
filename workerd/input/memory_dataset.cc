#include "workerd/input/memory_dataset.h"

#include <algorithm>
#include <utility>

#include "common/check.h"
#include "workerd/input/rows.h"

namespace disttrain::input {

MemoryDataset::MemoryDataset(Contents contents, std::uint64_t begin, std::uint64_t end, double scale)
    : contents_(std::move(contents)), begin_(begin), records_(end - begin), scale_(static_cast<float>(scale)) {
  DISTTRAIN_CHECK_LT(begin, end);
  DISTTRAIN_CHECK_LE(end, contents_.records);
  if (contents_.target_elements == 0) {
    DISTTRAIN_CHECK_EQ(contents_.labels.size(), contents_.records);
    const auto first = contents_.labels.begin();
    largest_label_ =
        *std::max_element(first + static_cast<std::ptrdiff_t>(begin), first + static_cast<std::ptrdiff_t>(end));
  }
}

void MemoryDataset::gather(std::span<const std::uint64_t> indices, std::span<float> inputs,
                           std::span<std::int64_t> labels, std::span<float> targets) const {
  DISTTRAIN_CHECK_EQ(inputs.size(), indices.size() * contents_.input_elements);
  for (const std::uint64_t index : indices) DISTTRAIN_CHECK_LT(index, records_);
  gather_inputs(indices, inputs.data());
  if (!labels.empty()) {
    DISTTRAIN_CHECK_EQ(contents_.target_elements, 0u);
    DISTTRAIN_CHECK_EQ(labels.size(), indices.size());
    for (std::size_t i = 0; i < indices.size(); ++i) labels[i] = contents_.labels[begin_ + indices[i]];
  }
  if (!targets.empty()) gather_targets(indices, targets);
}

void MemoryDataset::gather_inputs(std::span<const std::uint64_t> indices, float* out) const {
  const std::uint64_t elements = contents_.input_elements;
  if (contents_.bytes != nullptr) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(contents_.bytes.get());
    gather_rows(bytes + begin_ * elements, elements, indices, scale_, out);
  } else {
    gather_rows(contents_.floats.data() + begin_ * elements, elements, indices, scale_, out);
  }
}

void MemoryDataset::gather_targets(std::span<const std::uint64_t> indices, std::span<float> out) const {
  DISTTRAIN_CHECK_EQ(out.size() % indices.size(), 0u);
  const std::size_t width = out.size() / indices.size();
  if (contents_.target_elements != 0) {
    DISTTRAIN_CHECK_EQ(width, contents_.target_elements);
    gather_rows(contents_.targets.data() + begin_ * width, width, indices, 1.0F, out.data());
    return;
  }
  if (width > 1) std::fill(out.begin(), out.end(), 0.0F);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const std::int64_t label = contents_.labels[begin_ + indices[i]];
    if (width == 1) {
      out[i] = static_cast<float>(label);
    } else {
      DISTTRAIN_CHECK_LT(static_cast<std::uint64_t>(label), width);
      out[i * width + static_cast<std::size_t>(label)] = 1.0F;
    }
  }
}

}  // namespace disttrain::input
