// The three products of a dense layer, y = x W + b, each by the method that is fastest for its shape.
//
// All matrices are row-major and dense: x [rows, inputs], W [inputs, outputs], b [outputs], y [rows, outputs]. Outputs
// are overwritten; they don't overlap inputs. Same arguments, same bits, as long as the number of threads is the same.
#pragma once

#include <cstdint>
#include <functional>

#include "workerd/compute/kernels.h"

namespace disttrain::workerd {

// y = x W + b. sparse_x: the nonzero values of x if using them pays (sparse_rows.h), else nullptr.
void dense_forward(const DenseShape& shape, const float* x, const SparseView* sparse_x, const float* weight,
                   const float* bias, float* y);

// Called with the number of leading elements of the weight's gradient that are final; the number grows until it is all.
using ElementsFinal = std::function<void(std::uint64_t elements)>;

// d_weight = x^T d_y. sparse_x as in dense_forward. Large gradients become final piece by piece.
void dense_weight_gradient(const DenseShape& shape, const float* x, const SparseView* sparse_x, const float* d_y,
                           float* d_weight, const ElementsFinal& elements_final);

// d_bias = the sum of d_y over its rows
void dense_bias_gradient(const DenseShape& shape, const float* d_y, float* d_bias);

// d_x = d_y W^T
void dense_input_gradient(const DenseShape& shape, const float* d_y, const float* weight, float* d_x);

}  // namespace disttrain::workerd
