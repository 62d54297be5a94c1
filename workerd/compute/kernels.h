// Our own products of small or sparse matrices. The libraries inside libtorch are slower for them, because they pack
// matrices that are used once. One set per instruction set, chosen at run time; dense.cc chooses the method of each
// product.
//
// Matrices are row-major; a stride is the distance between two rows in elements. All arithmetic is fused multiply-add
// in a fixed order: the same arguments give the same bits on the same machine.
#pragma once

#include <cstdint>

namespace disttrain::workerd {

// The nonzero values of a matrix and their positions within a group of columns, by group, then by row. The part of a
// weight that belongs to one group stays in the L1 cache.
inline constexpr std::int64_t kSparseGroup = 112;

struct SparseView {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  const std::uint32_t* positions = nullptr;
  const float* values = nullptr;
  const std::uint32_t* begins = nullptr;  // entries of row r in group g: [g * rows + r] to [g * rows + r + 1]
  const float* dense = nullptr;           // the matrix itself
};

struct DenseShape {
  std::int64_t rows = 0;  // examples
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
};

// A part of the result, so that threads can share the work.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// In all kernels x is [rows, inputs], w [inputs, outputs], b [outputs], y [rows, outputs]; those for few rows need rows
// <= kMaxKernelRows.
struct Kernels {
  const char* name;

  // y = x w + b for the range of outputs. Reads w once.
  void (*forward_few_rows)(const DenseShape&, const float* x, const float* w, const float* b, float* y, Range outputs);

  // d_x = d_y w^T for the range of inputs. Reads w once.
  void (*input_gradient_few_rows)(const DenseShape&, const float* d_y, const float* w, float* d_x, Range inputs);

  // d_w = x^T d_y for the range of inputs. Writes each element once.
  void (*weight_gradient_few_rows)(const DenseShape&, const float* x, const float* d_y, float* d_w, Range inputs);

  // y = x w + b for the range of rows and few outputs: keeps a piece of y in registers throughout.
  void (*forward_narrow)(const DenseShape&, const float* x, const float* w, const float* b, float* y, Range rows);

  // Fills the arrays of a SparseView of x, which is [rows, columns], and returns how many values it found. Stops early
  // once there are more than `most`; then the arrays are useless. positions and values need room for most +
  // kCollectSlack, begins for groups * rows + 1.
  std::int64_t (*sparse_collect)(std::int64_t rows, std::int64_t columns, const float* x, std::int64_t most,
                                 std::uint32_t* positions, float* values, std::uint32_t* begins);

  // y = x w + b for the range of rows.
  void (*sparse_forward)(const SparseView& x, std::int64_t outputs, const float* w, const float* b, float* y,
                         Range rows);

  // d_w = x^T d_y for the range of groups. Needs x.dense alone.
  void (*sparse_weight_gradient)(const SparseView& x, std::int64_t outputs, const float* d_y, float* d_w, Range groups);
};

// One group of one row, plus one vector.
inline constexpr std::int64_t kCollectSlack = kSparseGroup + 16;

inline constexpr std::int64_t kMaxKernelRows = 256;

const Kernels& avx2_kernels();
const Kernels& avx512_kernels();

// The best kernels for this machine; nullptr if it lacks the instructions.
const Kernels* machine_kernels();

}  // namespace disttrain::workerd
