// The rules about a job's evaluations: which checkpoints are evaluated already, which are the best, and when the job
// finishes early (evaluate.metric, stop_after and keep_best). Pure: job/flow/evaluations.cc feeds it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "chiefd/core/events.h"
#include "chiefd/core/journal_state.h"
#include "common/config/job_config.h"
#include "common/model_metric.h"
#include "common/result.h"

namespace disttrain::chiefd {

struct EvaluationRules {
  std::string metric;
  bool is_higher_better = false;
  std::uint32_t stop_after = 0;
  std::uint32_t keep_best = 0;
};

// Fails with kConfig if the model doesn't have the metric, or if it isn't known which of its values are better.
Result<EvaluationRules> evaluation_rules(const EvaluateSection& config, const std::vector<MetricSpec>& metrics);

class EvaluationBook {
 public:
  // The book as the journal keeps it. `job` isn't set.
  const EvaluationsRecord& record() const { return record_; }
  void take_up(EvaluationsRecord record) { record_ = std::move(record); }

  // Takes over what evaluations of an earlier job in the same folder found, if their values can be compared with those
  // of this job. Returns false if they can't. If the earlier job has finished early, this one does too, unless it has a
  // larger stop_after.
  bool resume(const KeptEvaluations& kept, const EvaluationRules& rules);
  // What the job's folder keeps.
  KeptEvaluations kept(const EvaluationRules& rules) const;

  // True if the checkpoint needs no evaluation any more: it was evaluated, or skip() was called.
  bool has_evaluated(const KeptCheckpoint& checkpoint) const;
  // Notes an evaluation. `checkpoint` is the one that was evaluated, and null if no checkpoint has these parameters.
  // Changes nothing if the checkpoint was evaluated before. Each step counts once for stop_after, even if the job comes
  // to it again after a rollback. A value that is NaN is no progress, and never among the best.
  void note(const EvaluationStatus& evaluation, const KeptCheckpoint* checkpoint, const EvaluationRules& rules);
  // The checkpoint has the parameters of an evaluation that note() got earlier, without the checkpoint.
  void rank(const KeptCheckpoint& checkpoint, const EvaluationStatus& evaluation, const EvaluationRules& rules);
  // Gives up the evaluation of the checkpoint.
  void skip(const KeptCheckpoint& checkpoint);
  // The folder holds these checkpoints, ascending. Forgets all others. Returns true if one of the best was among them.
  bool keep_only(const std::vector<KeptCheckpoint>& kept);

  void show(const EvaluationStatus& evaluation) { record_.newest = evaluation; }
  void set_exported(std::string path) { record_.exported = std::move(path); }

 private:
  void count(double value, Step step, const EvaluationRules& rules);
  void check_early_end(const EvaluationRules& rules);

  EvaluationsRecord record_;
};

}  // namespace disttrain::chiefd
