// Finds the nonzero inputs of a batch. In images of handwritten digits four of five pixels are 0, and most one-hot
// inputs are 0 too. A product that skips the zeros takes a fraction of the time of a dense product.
//
// Its result differs from the dense product's in one case: 0 * inf and 0 * NaN count as 0.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/kernels.h"

namespace disttrain::workerd {

class SparseRows {
 public:
  // Returns the nonzero values of `values`. Returns nullptr if a dense product is faster or must be used: with few
  // rows, with few zeros, or on a machine that can't run our kernels (kernels.h). The result is valid until the next
  // call, and only as long as `values` doesn't change.
  const SparseView* find(std::span<const float> values, const DenseShape& shape);

 private:
  std::vector<std::uint32_t> positions_;
  std::vector<float> values_;
  std::vector<std::uint32_t> begins_;
  SparseView view_;
};

}  // namespace disttrain::workerd
