// Our own products of small or sparse matrices, where the libraries inside libtorch lose: they pack what is used once.
// One set per instruction set, chosen when the program runs; dense.cc decides which product is worth which method.
//
// Matrices are row-major; a stride is the distance of two rows in elements. All arithmetic is fused multiply-add in a
// fixed order: the same arguments give the same bits on the same machine.
#pragma once

#include <cstdint>

namespace disttrain::workerd {

// What isn't zero of a matrix: values and their positions within a group of columns, by group, then by row. What the
// rows of one group meet of a weight stays in the L1 cache.
inline constexpr std::int64_t kSparseGroup = 112;

struct SparseView {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  const std::uint32_t* positions = nullptr;
  const float* values = nullptr;
  const std::uint32_t* begins = nullptr;  // of row r in group g: [g * rows + r] to [g * rows + r + 1]
  const float* dense = nullptr;           // the matrix itself
};

struct DenseShape {
  std::int64_t rows = 0;  // examples
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
};

// A part of the result, so that threads can share it.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// In all of them x is [rows, inputs], w [inputs, outputs], b [outputs], y [rows, outputs]; rows <= kMaxKernelRows in
// those for few rows.
struct Kernels {
  const char* name;

  // y = x w + b for the range of outputs. Streams w once.
  void (*forward_few_rows)(const DenseShape&, const float* x, const float* w, const float* b, float* y, Range outputs);

  // d_x = d_y w^T for the range of inputs. Streams w once.
  void (*input_gradient_few_rows)(const DenseShape&, const float* d_y, const float* w, float* d_x, Range inputs);

  // d_w = x^T d_y for the range of inputs. Writes each element once.
  void (*weight_gradient_few_rows)(const DenseShape&, const float* x, const float* d_y, float* d_w, Range inputs);

  // y = x w + b for the range of rows and few outputs: keeps a piece of y in registers all the way.
  void (*forward_narrow)(const DenseShape&, const float* x, const float* w, const float* b, float* y, Range rows);

  // Fills the arrays of a SparseView of x, which is [rows, columns], and returns how many values it found. Stops early
  // once these are more than `most`; then the arrays are of no use. positions and values have room for most +
  // kCollectSlack, begins for groups * rows + 1.
  std::int64_t (*sparse_collect)(std::int64_t rows, std::int64_t columns, const float* x, std::int64_t most,
                                 std::uint32_t* positions, float* values, std::uint32_t* begins);

  // y = x w + b for the range of rows.
  void (*sparse_forward)(const SparseView& x, std::int64_t outputs, const float* w, const float* b, float* y,
                         Range rows);

  // d_w = x^T d_y for the range of groups. Needs x.dense alone.
  void (*sparse_weight_gradient)(const SparseView& x, std::int64_t outputs, const float* d_y, float* d_w, Range groups);
};

// A group's worth for a row, and a vector.
inline constexpr std::int64_t kCollectSlack = kSparseGroup + 16;

inline constexpr std::int64_t kMaxKernelRows = 256;

const Kernels& avx2_kernels();
const Kernels& avx512_kernels();

// The best that this machine can run; nullptr when it has none of the instructions.
const Kernels* machine_kernels();

}  // namespace disttrain::workerd
