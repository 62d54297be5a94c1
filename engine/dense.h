// The matrix products of a dense layer, y = x W + b, and of its gradients. Each function uses the method that is
// fastest for the shape.
//
// All matrices are row-major and dense: x [rows, inputs], W [inputs, outputs], b [outputs], y [rows, outputs]. The
// functions overwrite their outputs, which must not overlap the inputs. With the same arguments and the same number of
// threads, the results have the same bits.
#pragma once

#include <cstdint>
#include <functional>

#include "engine/kernels.h"

namespace disttrain::workerd {

// y = x W + b. `sparse_x` holds the nonzero values of x; it is nullptr if the dense product is faster (sparse_rows.h).
void dense_forward(const DenseShape& shape, const float* x, const SparseView* sparse_x, const float* weight,
                   const float* bias, float* y);

// Waits until the first `elements` elements of a weight are there, or more. Returns how many are, or a smaller number
// if the rest won't come.
using ElementsThere = std::function<std::uint64_t(std::uint64_t elements)>;

// The same, with the same bits, for a weight that is still arriving. Returns false if it doesn't arrive; then y is
// undefined.
bool dense_forward_arriving(const DenseShape& shape, const float* x, const SparseView* sparse_x, const float* weight,
                            const float* bias, float* y, const ElementsThere& there);

// A callback: the first `elements` elements of the weight's gradient are final. The number grows from call to call; in
// the last call it is the number of all elements.
using ElementsFinal = std::function<void(std::uint64_t elements)>;

// d_weight = x^T d_y. `sparse_x` is as in dense_forward. A large gradient becomes final in several pieces, with one
// call of `elements_final` for each.
void dense_weight_gradient(const DenseShape& shape, const float* x, const SparseView* sparse_x, const float* d_y,
                           float* d_weight, const ElementsFinal& elements_final);

// d_bias = the sum of d_y over its rows
void dense_bias_gradient(const DenseShape& shape, const float* d_y, float* d_bias);

// d_x = d_y W^T
void dense_input_gradient(const DenseShape& shape, const float* d_y, const float* weight, float* d_x);

// Both gradients, as dense_input_gradient() and dense_weight_gradient() without a sparse x compute them, with the same
// bits. A call of `elements_final` also says that these elements of the weight aren't read any more. If it can, the
// function computes both gradients piece by piece, so the first call comes earlier than after the whole of d_x.
void dense_gradients(const DenseShape& shape, const float* x, const float* d_y, const float* weight, float* d_x,
                     float* d_weight, const ElementsFinal& elements_final);

}  // namespace disttrain::workerd
