// Evaluates one checkpoint after the other, with the engine and the evaluation data of one job.
#pragma once

#include <asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "common/checkpoint/disk_files.h"
#include "common/layout.h"
#include "common/messages/control.h"
#include "common/os/arena.h"
#include "common/result.h"
#include "workerd/prepared_job.h"

namespace disttrain::workerd {

// All calls come from one thread.
class CheckpointEvaluation {
 public:
  // Builds the model and reads the data once, as a worker does. `path` is the folder of a checkpoint of the job. The
  // vocabularies and means of columns are those that it keeps; if it keeps none, the training set is read too, and its
  // memory is freed. Csv files of the training set with other labels or columns than it keeps are an error, kConfig:
  // this host has other files than the workers. The other arguments are those of prepare_job(), and `world` outlives
  // the object. If world.is_cancelled() returns true, reading ends with kTemporary. Errors: those of prepare_job() and
  // load_evaluation(), and of reading the checkpoint (kNoInput if it is gone).
  static Result<std::unique_ptr<CheckpointEvaluation>> make(JobId job, const JobConfig& config, const std::string& path,
                                                            const EngineFactory& make_engine, const EngineWorld& world);

  // Evaluates the checkpoint in this folder. It is locked only while its parameters are read. `is_cancelled` is called
  // while they are read and before each batch, and `is_released` during each batch; if one returns true, the evaluation
  // ends with kTemporary. A trainer ends if its batch is cut short, so is_released() is true only if the job isn't
  // needed any more. The result lacks job, generation and path. Its `examples` are 0 if the job has no evaluation data.
  // Errors: those of reading the checkpoint (kNoInput if it is gone) and of the engine; kConfig if there isn't enough
  // memory.
  Result<Evaluated> run(const std::string& path, const std::function<bool()>& is_cancelled,
                        const std::function<bool()>& is_released);

  JobId job() const { return prepared_->job; }
  // PreparedJob::take_notice_of_unknown(). Call it after an evaluation that hasn't failed.
  std::string take_notice_of_unknown() { return prepared_->take_notice_of_unknown(); }
  std::uint64_t records() const { return prepared_->evaluation ? prepared_->evaluation->records() : 0; }

 private:
  CheckpointEvaluation(std::unique_ptr<PreparedJob> prepared, Layout layout, asio::io_context& loop)
      : prepared_(std::move(prepared)), layout_(std::move(layout)), loop_(loop) {}

  Result<Step> read(const std::string& path, const std::function<bool()>& is_cancelled);
  Result<Evaluated> evaluate(Step step, const std::function<bool()>& is_cancelled,
                             const std::function<bool()>& is_released);

  const std::unique_ptr<PreparedJob> prepared_;
  const Layout layout_;
  asio::io_context& loop_;
  checkpoint::DiskFiles files_;
  std::unique_ptr<Memory> parameters_;
  std::unique_ptr<Memory> gradients_;  // the engine needs them at open(), but an evaluation doesn't touch them
};

}  // namespace disttrain::workerd
