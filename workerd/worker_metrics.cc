#include "workerd/worker_metrics.h"

#include "common/metrics/families.h"

namespace disttrain::workerd {

void collect(const WorkerFigures& figures, const std::string& task, metrics::Page& page) {
  const std::string& job = figures.job;
  if (job.empty()) return;
  const auto count = [](std::uint64_t number) { return static_cast<double>(number); };
  page.set(metrics::kWorkerSteps, {task, job}, count(figures.steps));
  page.set(metrics::kWorkerExamples, {task, job}, count(figures.examples));
  for (std::size_t i = 0; i < kStepPhases; ++i)
    page.set(metrics::kWorkerStepSeconds, {task, job, to_string(step_phase(i))}, figures.phases[i]);
  if (figures.steps > 0) page.set(metrics::kWorkerLoss, {task, job}, figures.loss);
  page.set(metrics::kWorkerNonfinite, {task, job}, count(figures.nonfinite));
  page.set(metrics::kDataRecords, {task, job}, count(figures.records));
  page.set(metrics::kDataReadBytes, {task, job}, count(figures.bytes_read));
  constexpr std::array<const char*, kDataProblems> kReasons = {"missing", "permission", "corrupt", "unfit"};
  for (std::size_t i = 0; i < kDataProblems; ++i)
    page.set(metrics::kDataErrors, {task, job, kReasons[i]}, count(figures.data_errors[i]));
  page.set(metrics::kDataPrefetchDepth, {task, job}, count(figures.batches_ready));
  page.set(metrics::kDataStall, {task, job}, to_seconds(figures.stalled));
  for (std::size_t i = 0; i < kDataStages.size(); ++i)
    page.set(metrics::kDataStage, {task, job, kDataStages[i]},
             to_seconds(i < figures.stages.size() ? figures.stages[i] : Duration::zero()));
}

}  // namespace disttrain::workerd
