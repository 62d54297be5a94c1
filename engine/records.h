// The records of a batch as the models with kernels of our own take them: float32 inputs, and labels or targets.
#pragma once

#include <cstdint>
#include <span>

#include "common/batch.h"
#include "common/model.h"

namespace disttrain::workerd {

// Views of a batch's columns; valid as long as they.
struct Records {
  std::uint64_t examples = 0;
  std::span<const float> inputs;         // examples rows
  std::span<const std::int64_t> labels;  // one for each example, or empty
  std::span<const float> targets;        // one row for each example, or empty
  std::span<const float> weights = {};   // one for each example, or empty: all are 1
};

// `batch` has the columns that a builtin model describes (common/builtin/builtin.h): inputs, perhaps weights, and
// labels or targets.
inline Records records_of(const Batch& batch, const ModelSpec& model) {
  Records records{batch.examples, batch.columns.front().as<float>(), {}, {}};
  if (model.columns.back().dtype == DType::kInt64)
    records.labels = batch.columns.back().as<std::int64_t>();
  else
    records.targets = batch.columns.back().as<float>();
  if (model.columns.size() > 2) records.weights = batch.columns[1].as<float>();
  return records;
}

}  // namespace disttrain::workerd
