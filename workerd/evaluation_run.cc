// The sum over the batches of an evaluation doesn't depend on their size, except for rounding. A batch can't be padded:
// a program returns one mean loss, in which the records that fill up the batch would count. Instead a worker asks its
// engine, before the job trains, whether it takes the batches that will occur, also the smaller last one
// (prepared_job.cc). Earlier, each evaluation took 1000 records at a time; the logits of such a batch of a GPT-2 with
// 50,257 tokens have 200 GB.
#include "workerd/evaluation_run.h"

#include <algorithm>
#include <functional>

#include "common/check.h"

namespace disttrain::workerd {

EvaluationRun::EvaluationRun(const input::Dataset* dataset, const ModelSpec& model, std::uint64_t batch_records,
                             std::uint64_t parameters_hash)
    : model_(model), metrics_(accumulator_size(model.metrics)) {
  if (dataset != nullptr) batches_.emplace(*dataset, std::min(batch_records, dataset->records()), model.columns);
  done_.parameters_hash = parameters_hash;
}

Result<std::optional<Batch>> EvaluationRun::next() {
  if (!batches_) return std::optional<Batch>();
  const Result<const input::BatchBuffer*> records = batches_->next();
  if (!records) return tl::unexpected(records.error());
  return *records == nullptr ? std::optional<Batch>() : std::optional((*records)->batch());
}

void EvaluationRun::add(const EngineOutput& output) {
  done_.loss_sum += output.loss_sum;
  done_.examples += output.examples;
  DISTTRAIN_CHECK_EQ(output.metrics.size(), metrics_.size());
  std::transform(metrics_.begin(), metrics_.end(), output.metrics.begin(), metrics_.begin(), std::plus<>());
}

EvaluationDone EvaluationRun::done() {
  if (done_.examples > 0) done_.metrics = metric_values(model_.metrics, metrics_);
  return done_;
}

}  // namespace disttrain::workerd
