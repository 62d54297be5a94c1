#include "workerd/input/batch_buffer.h"

#include "common/check.h"

namespace disttrain::input {

void BatchBuffer::fill(const Dataset& dataset, std::span<const std::uint64_t> indices) {
  DISTTRAIN_CHECK_LE(indices.size(), most_examples_);
  DISTTRAIN_CHECK_EQ(dataset.input_elements(), input_elements_);
  examples_ = indices.size();
  if (examples_ == 0) return;
  dataset.gather(indices, {inputs_.get(), examples_ * input_elements_},
                 {labels_.data(), target_width_ == 0 ? examples_ : 0}, {targets_.get(), examples_ * target_width_});
}

}  // namespace disttrain::input
