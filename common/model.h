// ModelSpec describes a model to everything but the engine that computes it: its variables, the columns of data that it
// takes, the metrics that it returns, and the programs that it has.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "common/config/job_config.h"
#include "common/dtype.h"
#include "common/model_metric.h"

namespace disttrain {

// A trainable variable has a gradient and optimizer slots. A state variable (a batch-norm statistic) has neither:
// workers push its value, and the ps averages the values.
enum class VariableKind : std::uint8_t { kTrainable, kState };

// The smallest and the largest value that an element may have: job.wrap(constraint=...) of a trainer. By default there
// is no limit. low <= high, and neither is NaN.
struct Bounds {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();

  bool operator==(const Bounds&) const = default;
};

// A named array of parameters. The product of `shape` is the number of elements; it is at least 1, and elements are
// stored row by row. The initializers "glorot" and "he" need fan_in and fan_out, the numbers of inputs and outputs
// of a unit.
struct VariableSpec {
  std::string name;
  std::vector<std::uint64_t> shape;
  VariableKind kind = VariableKind::kTrainable;
  Initializer initializer;
  std::uint64_t fan_in = 1;
  std::uint64_t fan_out = 1;
  DType dtype = DType::kFloat32;  // kFloat32 or kFloat64
  // Of a trainable variable: after each update a shard replaces each value outside them by the nearer bound. A value of
  // the variable's dtype represents each bound exactly.
  Bounds bounds = {};

  bool operator==(const VariableSpec&) const = default;
};

std::uint64_t element_count(const VariableSpec& variable);

// The number of words of 4 bytes that the variable takes in memory, in a frame and in a checkpoint. See
// common/layout.h.
std::uint64_t word_count(const VariableSpec& variable);

// A piece of an array that has a name of its own, as each of [data.columns] is a piece of "inputs", "categories" or
// "labels".
struct ColumnPart {
  std::string name;
  std::uint64_t first = 0;           // index of its first value among the values of a record
  std::vector<std::uint64_t> shape;  // of one record; {} = a single value
  std::uint64_t limit = 0;           // whole numbers are 0 .. limit - 1; 0: they aren't limited, or aren't whole

  bool operator==(const ColumnPart&) const = default;
};

// The product of the shape: the number of values of one record.
std::uint64_t element_count(const ColumnPart& part);

// One array of a batch: the values of one feature of all its records, or their labels. The batch's dimension comes
// first and isn't in `shape`.
struct ColumnSpec {
  std::string name;
  DType dtype = DType::kFloat32;
  std::vector<std::uint64_t> shape;  // of one record; {} = a single value
  // The first dimension of `shape` is the largest length of a record; records may be shorter. A batch of records that
  // all have this length may come without row_ends.
  bool ragged = false;
  std::uint64_t limit = 0;  // integers are 0 .. limit - 1; 0: no limit
  // With a limit: labels may have this value, too, which the model's loss leaves out (ignore_index of PyTorch)
  std::optional<std::int64_t> ignored = std::nullopt;
  // A ragged column for a trainer: the value that the Python package sets behind shorter records.
  std::int64_t pad = 0;
  // The columns that a trainer may use by names of their own. A model's spec has none.
  std::vector<ColumnPart> parts = {};

  bool operator==(const ColumnSpec&) const = default;
};

// The product of the shape: the number of values of one record. 1 if the shape is {}.
std::uint64_t element_count(const ColumnSpec& column);

// What a model can compute. Every model has a step.
struct Programs {
  bool evaluates = true;
  bool predicts = false;

  bool operator==(const Programs&) const = default;
};

// The variables are in the order of a forward pass. A backward pass produces the gradients in reverse order.
struct ModelSpec {
  std::vector<VariableSpec> variables;
  std::vector<ColumnSpec> columns;
  std::vector<MetricSpec> metrics;
  Programs programs;
  // The model brings its initial values (Engine::initial_values), and the workers send them to the ps tasks. Otherwise
  // the ps tasks draw them by each variable's initializer.
  bool brings_values = false;

  bool operator==(const ModelSpec&) const = default;
};

std::uint64_t element_count(const ModelSpec& model);
std::uint64_t word_count(const ModelSpec& model);

// The number of bytes that one record takes in a batch.
std::uint64_t record_bytes(const ModelSpec& model);

}  // namespace disttrain
