// Finds the nonzero inputs of a batch. Four of five pixels of a handwritten digit are 0, and so are most one-hot
// inputs: products over the rest cost a fraction of the dense ones.
//
// A product that skips zeros differs from the dense one in one case: 0 * inf and 0 * NaN count as 0.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "workerd/compute/kernels.h"

namespace disttrain::workerd {

class SparseRows {
 public:
  // nullptr when the dense products are faster: few rows, few zeros, a machine without kernels. Otherwise valid until
  // the next call, while `values` don't change. Reuses its memory.
  const SparseView* find(std::span<const float> values, const DenseShape& shape);

 private:
  std::vector<std::uint32_t> positions_;
  std::vector<float> values_;
  std::vector<std::uint32_t> begins_;
  SparseView view_;
};

}  // namespace disttrain::workerd
