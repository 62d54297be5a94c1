#include "engine/dense.h"

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mm.h>

#include <algorithm>

#include "common/layout.h"

namespace disttrain::workerd {
namespace {

at::Tensor matrix(const float* values, std::int64_t rows, std::int64_t columns) {
  // from_blob needs a mutable pointer. The cast is safe because ATen writes only to matrices that are results.
  return at::from_blob(const_cast<float*>(values), {rows, columns}, at::kFloat);
}

// The limits in the functions below come from these times, measured on Zen 3 with one thread and AVX2. Each pair is
// the time of our kernel, then the time of MKL, in microseconds; a shape is rows x inputs x outputs.
//   forward    10 x 4096 x 4096:  8900, 14200    16 x 4096 x 4096: 20000, 17000    100 x 100 x 10:  4, 17
//   d_weight   10 x 4096 x 4096:  8700, 29500    64 x 4096 x 4096: 49000, 63000    100 x 100 x 10: 11, 17
//   d_x        10 x 4096 x 4096:  7200, 12300    16 x 4096 x 4096: 10400, 13800    32 x 4096 x 4096: 24000, 21500
// With few rows MKL is slower because it first packs the whole weight. MKL's d_weight is also slow if its result
// doesn't begin on a cache line, and gradients in the flat array often don't. oneDNN (mkldnn::_linear_pointwise) was no
// faster than MKL here.
//
// With these kernels, a step took half of the time of libtorch's autograd for the net 784-100-10, and a third for
// 784-4096-4096-10 (tools/bench/step_bench). MKL stays for all other layers.
//
// If an input is mostly zeros (in MNIST's images four fifths of the pixels are 0), the gradient of the weight is
// computed column by column: each column of the input gives one row of the gradient. The kernel compares 8 or 16
// columns at once with 0 to find the rows in which a column isn't 0, and the sum over these rows stays in registers.
// Row by row, it would load and store a row of the gradient for each value that isn't 0. The forward product works row
// by row.
//
// Streaming stores for the gradients of weights were tried. A step of the engine took 0.94 of the time, but then the
// shard read the gradients from memory instead of from the cache: 1.05 times as many steps over TCP, 0.97 times over
// shared memory.
bool few_rows_forward(const DenseShape& shape) {
  return shape.rows <= 12;
}

// With AVX2, 16 outputs are two vectors. The sums of 5 rows (ten vectors), two vectors of the weight and one factor
// then fit into the 16 registers.
bool narrow_forward(const DenseShape& shape) {
  return shape.outputs <= 16;
}

bool few_rows_weight_gradient(const DenseShape& shape) {
  return shape.rows <= 32 || (shape.rows <= kMaxKernelRows && shape.outputs <= 32);
}

bool few_rows_input_gradient(const DenseShape& shape) {
  return shape.rows <= 16 && shape.outputs >= 64;
}

// A weight's gradient is computed in pieces of about one large bucket. So each bucket can be sent while it is still in
// the CPU's cache. With sparse inputs smaller pieces cost nothing, so they are about as large as the smallest buckets.
constexpr std::int64_t kPieceElements = static_cast<std::int64_t>(kMaxBucketWords);
constexpr std::int64_t kSparsePieceElements = 16 * 1024;

// A product with a weight that is still arriving takes at least this many rows of the weight at a time. With fewer, the
// sums would be read and written too often.
constexpr std::int64_t kForwardPiece = 64;

// With fewer multiplications than this, waking a second thread costs more time than it saves.
constexpr std::int64_t kThreadGrain = 100'000;

template <typename Body>
void in_parallel(Range range, std::int64_t multiplications_each, const Body& body) {
  const std::int64_t grain = std::max<std::int64_t>(1, kThreadGrain / std::max<std::int64_t>(1, multiplications_each));
  at::parallel_for(range.begin, range.end, grain, [&body](std::int64_t begin, std::int64_t end) {
    body(Range{begin, end});
  });
}

bool ours_for_weight_gradient(const Kernels* kernels, const DenseShape& shape, const SparseView* sparse_x) {
  return kernels != nullptr && (sparse_x != nullptr || few_rows_weight_gradient(shape));
}

// Calls body(range, unit) for each piece of a weight's gradient. A unit of work is one input, or `unit` inputs if they
// are sparse.
template <typename Body>
void for_each_piece(const DenseShape& shape, std::int64_t unit, const ElementsFinal& elements_final, const Body& body) {
  const std::int64_t units = (shape.inputs + unit - 1) / unit;
  const std::int64_t elements = unit > 1 ? kSparsePieceElements : kPieceElements;
  const std::int64_t piece = std::max<std::int64_t>(1, elements / (unit * shape.outputs));
  for (std::int64_t begin = 0; begin < units; begin += piece) {
    const Range range{begin, std::min(units, begin + piece)};
    body(range, unit);
    elements_final(static_cast<std::uint64_t>(std::min(shape.inputs, range.end * unit) * shape.outputs));
  }
}

}  // namespace

void dense_forward(const DenseShape& shape, const float* x, const SparseView* sparse_x, const float* weight,
                   const float* bias, float* y) {
  const Kernels* kernels = machine_kernels();
  if (kernels != nullptr && sparse_x != nullptr) {
    in_parallel({0, shape.rows}, shape.inputs * shape.outputs / 4,
                [&](Range rows) { kernels->sparse_forward(*sparse_x, shape.outputs, weight, bias, y, rows); });
  } else if (kernels != nullptr && narrow_forward(shape)) {
    in_parallel({0, shape.rows}, shape.inputs * shape.outputs,
                [&](Range rows) { kernels->forward_narrow(shape, x, weight, bias, y, rows); });
  } else if (kernels != nullptr && few_rows_forward(shape)) {
    in_parallel({0, shape.outputs}, shape.rows * shape.inputs, [&](Range outputs) {
      kernels->forward_few_rows(shape, x, weight, bias, y, outputs, {0, shape.inputs});
    });
  } else {
    at::Tensor result = matrix(y, shape.rows, shape.outputs);
    at::addmm_out(result, matrix(bias, 1, shape.outputs), matrix(x, shape.rows, shape.inputs),
                  matrix(weight, shape.inputs, shape.outputs));
  }
}

bool dense_forward_arriving(const DenseShape& shape, const float* x, const SparseView* sparse_x, const float* weight,
                            const float* bias, float* y, const ElementsThere& there) {
  const Kernels* kernels = machine_kernels();
  const auto rows_of = [&shape](std::uint64_t elements) { return static_cast<std::int64_t>(elements) / shape.outputs; };
  const auto elements_of = [&shape](std::int64_t rows) { return static_cast<std::uint64_t>(rows * shape.outputs); };
  const bool in_pieces = kernels != nullptr && sparse_x == nullptr && !narrow_forward(shape) && few_rows_forward(shape);
  if (!in_pieces) {
    const std::uint64_t all = elements_of(shape.inputs);
    if (there(all) < all) return false;
    dense_forward(shape, x, sparse_x, weight, bias, y);
    return true;
  }
  for (std::int64_t done = 0; done < shape.inputs;) {
    const std::int64_t wanted = std::min(shape.inputs, done + kForwardPiece);
    const std::int64_t arrived = rows_of(there(elements_of(wanted)));
    if (arrived < wanted) return false;
    const Range inputs{done, arrived < shape.inputs ? arrived / kForwardPiece * kForwardPiece : shape.inputs};
    in_parallel({0, shape.outputs}, shape.rows * (inputs.end - inputs.begin),
                [&](Range outputs) { kernels->forward_few_rows(shape, x, weight, bias, y, outputs, inputs); });
    done = inputs.end;
  }
  return true;
}

void dense_weight_gradient(const DenseShape& shape, const float* x, const SparseView* sparse_x, const float* d_y,
                           float* d_weight, const ElementsFinal& elements_final) {
  const Kernels* kernels = machine_kernels();
  if (!ours_for_weight_gradient(kernels, shape, sparse_x)) {
    at::Tensor result = matrix(d_weight, shape.inputs, shape.outputs);
    at::mm_out(result, matrix(x, shape.rows, shape.inputs).t(), matrix(d_y, shape.rows, shape.outputs));
    elements_final(static_cast<std::uint64_t>(shape.inputs * shape.outputs));
    return;
  }
  for_each_piece(shape, sparse_x != nullptr ? kSparseGroup : 1, elements_final, [&](Range range, std::int64_t unit) {
    in_parallel(range, unit * shape.rows * shape.outputs, [&](Range part) {
      if (sparse_x != nullptr)
        kernels->sparse_weight_gradient(*sparse_x, shape.outputs, d_y, d_weight, part);
      else
        kernels->weight_gradient_few_rows(shape, x, d_y, d_weight, part);
    });
  });
}

void dense_gradients(const DenseShape& shape, const float* x, const float* d_y, const float* weight, float* d_x,
                     float* d_weight, const ElementsFinal& elements_final) {
  const Kernels* kernels = machine_kernels();
  if (!ours_for_weight_gradient(kernels, shape, nullptr) || !few_rows_input_gradient(shape)) {
    dense_input_gradient(shape, d_y, weight, d_x);
    return dense_weight_gradient(shape, x, nullptr, d_y, d_weight, elements_final);
  }
  for_each_piece(shape, 1, elements_final, [&](Range range, std::int64_t) {
    in_parallel(range, shape.rows * shape.outputs, [&](Range part) {
      kernels->input_gradient_few_rows(shape, d_y, weight, d_x, part);
      kernels->weight_gradient_few_rows(shape, x, d_y, d_weight, part);
    });
  });
}

void dense_bias_gradient(const DenseShape& shape, const float* d_y, float* d_bias) {
  const Kernels* kernels = machine_kernels();
  if (kernels != nullptr) return kernels->bias_gradient(shape, d_y, d_bias);
  std::copy_n(d_y, shape.outputs, d_bias);
  for (std::int64_t row = 1; row < shape.rows; ++row)
    for (std::int64_t o = 0; o < shape.outputs; ++o) d_bias[o] += d_y[row * shape.outputs + o];
}

void dense_input_gradient(const DenseShape& shape, const float* d_y, const float* weight, float* d_x) {
  const Kernels* kernels = machine_kernels();
  if (kernels == nullptr || !few_rows_input_gradient(shape)) {
    at::Tensor result = matrix(d_x, shape.rows, shape.inputs);
    at::mm_out(result, matrix(d_y, shape.rows, shape.outputs), matrix(weight, shape.inputs, shape.outputs).t());
    return;
  }
  in_parallel({0, shape.inputs}, shape.rows * shape.outputs,
              [&](Range inputs) { kernels->input_gradient_few_rows(shape, d_y, weight, d_x, inputs); });
}

}  // namespace disttrain::workerd
