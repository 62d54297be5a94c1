// EvaluationRun: one evaluation, batch by batch. It knows which records come next, and adds up the results.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/model.h"
#include "common/result.h"
#include "engine/engine.h"
#include "input/evaluation_batches.h"
#include "workerd/core/events.h"

namespace disttrain::workerd {

// All calls come from one thread. The data set and the model must outlive this object.
class EvaluationRun {
 public:
  // `dataset` may be null: the evaluation then has no records. `batch_records` is the most records of a batch, at least
  // 1. The result has `parameters_hash`. Takes memory for one batch, and throws std::bad_alloc.
  EvaluationRun(const input::Dataset* dataset, const ModelSpec& model, std::uint64_t batch_records,
                std::uint64_t parameters_hash);

  // The next batch, or none after the last one. Valid until the next call. Errors: those of Dataset::gather().
  Result<std::optional<Batch>> next();
  // Adds the engine's output for that batch.
  void add(const EngineOutput& output);
  // The result. Called once, after the last batch.
  EvaluationDone done();

 private:
  const ModelSpec& model_;
  std::optional<input::EvaluationBatches> batches_;
  std::vector<double> metrics_;  // accumulators
  EvaluationDone done_;
};

}  // namespace disttrain::workerd
