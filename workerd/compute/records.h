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
};

// `batch` has the two columns that a builtin model describes (common/builtin/builtin.h): inputs, and labels or targets.
inline Records records_of(const Batch& batch, const ModelSpec& model) {
  Records records{batch.examples, batch.columns[0].as<float>(), {}, {}};
  if (model.columns[1].dtype == DType::kInt64)
    records.labels = batch.columns[1].as<std::int64_t>();
  else
    records.targets = batch.columns[1].as<float>();
  return records;
}

}  // namespace disttrain::workerd
