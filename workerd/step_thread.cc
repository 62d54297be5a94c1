#include "workerd/step_thread.h"

#include <asio/post.hpp>
#include <new>
#include <system_error>
#include <utility>

#include "common/bounds.h"
#include "common/config/reader/reader.h"
#include "common/counted.h"
#include "common/daemon/clock.h"
#include "common/daemon/threads.h"
#include "input/fits.h"
#include "input/keep_fitted.h"
#include "transport/spin.h"

namespace disttrain::workerd {
namespace {

constexpr std::uint64_t kEveryJob = ~std::uint64_t{0};

}  // namespace

StepThread::StepThread(StepThreadOptions options, transport::Transport& transport, daemon::Log& log,
                       std::function<void(wire::ControlMessage)> tell)
    : options_(std::move(options)),
      transport_(transport),
      log_(log),
      tell_(std::move(tell)),
      work_(asio::make_work_guard(loop_)),
      thread_([this] { run(); }) {}

StepThread::~StepThread() {
  stopping_ = true;
  hurry_ = kEveryJob;
  asio::post(loop_, [] {});  // wakes the thread
  thread_.join();
}

void StepThread::run() {
  daemon::name_thread("step");
  const std::uint32_t index = options_.self.index;
  if (index < options_.cluster.workers.size()) {
    if (Status ok = daemon::pin_thread(options_.cluster.workers[index].cores); !ok) log_.warn(ok.error().message);
  }
  transport::Spinner spinner;
  while (!stopping_) {
    ++turns_;
    if (runner_ && runner_->has_work()) {
      working_ = true;
      runner_->work();
      working_ = false;
      // If the next computation is due at once, the thread never waits in run_one(). So it polls the loop here.
      if (runner_->has_work()) loop_.poll();
      run_deferred();
    } else {
      spinner.run_one(loop_);
    }
  }
  release();
}

void StepThread::post(std::function<void()> command) {
  asio::post(loop_, [this, command = std::move(command)] {
    if (working_)
      deferred_.push_back(command);
    else
      command();
  });
}

void StepThread::run_deferred() {
  for (const auto& command : std::exchange(deferred_, {})) command();
}

bool StepThread::must_leave(JobId job) const {
  // Long work calls this function regularly. So each call counts as progress.
  ++turns_;
  ++pieces_;
  return job.value <= hurry_;
}

void StepThread::describe(DescribeJob message) {
  ordered_ = message.job;
  post([this, message = std::move(message)] { do_describe(message); });
}

void StepThread::open(OpenJob message, Member self, Timeouts timeouts) {
  ordered_ = message.job;
  post([this, message = std::move(message), self, timeouts] { do_open(message, self, timeouts); });
}

void StepThread::feed(JobId job, Generation generation, Event event) {
  post([this, job, generation, event = std::move(event)] {
    if (runner_ && runner_->job() == job && runner_->generation() == generation) runner_->feed(event);
  });
}

// Interrupts the current work only if it is for the job that is being closed, or for an older one that hasn't noticed
// its own end yet. The chief may also close an older job while the worker works for a newer one.
void StepThread::close(CloseJob message) {
  if (message.job == ordered_) hurry_ = message.job.value;
  post([this, message = std::move(message)] { do_close(message); });
}

void StepThread::drop_job() {
  hurry_ = kEveryJob;
  post([this] {
    release();
    figured_ = warned_ = JobId();  // a new journal may give the same number to another job
    if (!stopping_) hurry_ = 0;
  });
}

void StepThread::chief_went_away() {
  post([this] {
    if (runner_) runner_->feed(ChiefAway{});
  });
}

void StepThread::chief_returned() {
  post([this] {
    if (runner_) runner_->feed(ChiefReturned{});
  });
}

// ---- on the step thread ----

void StepThread::do_describe(const DescribeJob& message) {
  // The chief may ask several times about the same job, for example before a new generation. The data is read only
  // once.
  const bool is_prepared = prepared_ && prepared_->job == message.job;
  runner_.reset();
  if (!is_prepared) release();
  show_loading(message.job, Generation());
  Status ok = is_prepared ? Status() : prepare(message.job, *message.config);
  if (ok) ok = load_evaluation(*prepared_);
  if (!ok) {
    release();
    if (must_leave(message.job)) return;  // the job is being closed
    return tell_(TaskFailed{message.job, Generation(), ok.error().code, ok.error().message});
  }
  log_.info("job " + std::to_string(message.job.value) + ": " +
            counted(prepared_->training->records(), "training record") + ", " +
            counted(element_count(prepared_->engine->describe()), "parameter"));
  JobDescribed described;
  described.job = message.job;
  described.model = prepared_->engine->describe();
  described.train_records = prepared_->training->records();
  described.train_hash = prepared_->training->hash();
  described.evaluation_records = prepared_->evaluation ? prepared_->evaluation->records() : 0;
  std::vector<std::string> notices = {prepared_->notice_of_unknown()};
  warn(prepared_->take_notice_of_unknown());
  if (const auto fitted = prepared_->training->fitted_columns()) {
    const std::string notice = input::notice_of_min_count(*fitted, prepared_->config.data.columns);
    if (!is_prepared) warn(notice);
    notices.push_back(notice);
    described.columns = input::encode_fitted(prepared_->config.data.columns, *fitted);
    if (described.columns.empty())
      log_.warn("the vocabularies of data.columns take more than " + std::to_string(kMaxKeptColumnsBytes >> 20) +
                " MiB, so checkpoints don't keep them: `disttrain predict` will need the training files");
  } else if (const DataSection& data = prepared_->config.data; data.format == DataFormat::kCsv && !data.files.empty()) {
    described.columns = input::encode_csv_names(*prepared_->training);
    if (described.columns.empty())
      log_.warn("the labels and the header of the csv files take more than " +
                std::to_string(kMaxKeptColumnsBytes >> 20) +
                " MiB, so checkpoints don't keep them: the chief won't notice if a job goes on with other ones");
  }
  notices.push_back(prepared_->training->notice());
  for (const std::string& notice : notices)
    described.notice += (described.notice.empty() || notice.empty() ? "" : "; ") + notice;
  tell_(described);
}

void StepThread::do_open(const OpenJob& message, Member self, const Timeouts& timeouts) {
  // If the job is open already, nothing is to be done: the core reports JobOpened as soon as all channels are open,
  // and again when the chief is back.
  if (runner_ && runner_->job() == message.job && runner_->generation() == message.generation) return;
  runner_.reset();
  const auto refuse = [this, &message](ErrorCode code, const std::string& reason) {
    release();
    if (!must_leave(message.job)) tell_(TaskFailed{message.job, message.generation, code, reason});
  };
  show_loading(message.job, message.generation);
  if (!prepared_ || prepared_->job != message.job)
    if (Status ok = prepare(message.job, *message.config); !ok) return refuse(ok.error().code, ok.error().message);
  if (Status sane = config::check_ranges(*message.config); !sane)
    return refuse(sane.error().code, sane.error().message);
  // The settings may differ from those in DescribeJob: the chief may have computed the number of steps from
  // JobDescribed.
  prepared_->config = *message.config;
  if (Status ok = validate(message.layout); !ok) return refuse(ok.error().code, ok.error().message);
  if (!(message.layout.model == prepared_->engine->describe()))
    return refuse(ErrorCode::kConfig,
                  "the model in the chief's order differs from the model that this worker builds: do all "
                  "tasks have the same version?");
  if (message.owners.size() != message.layout.shards)
    return refuse(ErrorCode::kSoftware, "the chief sent " + std::to_string(message.owners.size()) + " owners for " +
                                            std::to_string(message.layout.shards) +
                                            " shards, expected one for each shard");
  if (message.train_records != prepared_->training->records())
    return refuse(ErrorCode::kData, "this worker finds " + std::to_string(prepared_->training->records()) +
                                        " training records in " + prepared_->config.data.path +
                                        ", but another worker found " + std::to_string(message.train_records) +
                                        "; expected the same files on every host");
  if (message.train_hash != 0 && message.train_hash != prepared_->training->hash())
    return refuse(ErrorCode::kData,
                  "this worker's " + std::to_string(message.train_records) + " training records in " +
                      prepared_->config.data.path +
                      " have other names, lengths or values than those of another worker; expected the "
                      "same files on every host");
  try {
    runner_ = std::make_unique<JobRunner>(
        RunnerWorld{loop_, transport_, options_.cluster, timeouts, self, board_, figures_, figures_board_,
                    metrics_board_, [this, job = message.job] { return must_leave(job); }, tell_,
                    [this](std::uint64_t dropped) {
                      log_.warn("the trace lacks " + std::to_string(dropped) +
                                " events of this worker, because a worker keeps at most " +
                                std::to_string(kMaxTraceEvents) + "; set train.profile_steps to fewer steps");
                    },
                    [this](const std::string& notice) { warn(notice); }},
        *prepared_, message);
  } catch (const std::bad_alloc&) {
    refuse(ErrorCode::kFailed, "not enough memory for the parameters and gradients of the job");
  } catch (const std::system_error&) {
    refuse(ErrorCode::kFailed,
           "can't start the job's threads: raise `ulimit -u` and `ulimit -v`, or TasksMax of the unit");
  }
}

void StepThread::do_close(const CloseJob& message) {
  // If the chief removes only this worker from the job, the worker may join the job again. So it keeps the data and the
  // model.
  if (prepared_ && prepared_->job == message.job) {
    runner_.reset();
    board_.write(BoardEntry{});
    if (!message.removed) release();
  }
  std::uint64_t closed = message.job.value;
  hurry_.compare_exchange_strong(closed, 0);
  tell_(JobClosed{message.job});
}

Status StepThread::prepare(JobId job, const JobConfig& config) {
  const std::uint32_t index = options_.self.index;
  const std::uint32_t threads = index < options_.cluster.workers.size() ? options_.cluster.workers[index].threads : 1;
  begin_figures(job, config.job.name);
  const EngineWorld world{
      .loop = loop_,
      .threads = threads,
      .arena = &transport_.for_steps() == &transport_ ? ArenaKind::kPrivate : ArenaKind::kShared,
      .is_cancelled = [this, job] { return must_leave(job); },
      .on_line = [this](const std::string& line) { log_.info("trainer: " + line); },
      .on_checkpoint = [this] { ask_for_checkpoint(); },
      .worker_count = [this] { return runner_ ? runner_->workers() : 1; },
  };
  Result<std::unique_ptr<PreparedJob>> prepared =
      prepare_job(job, config, options_.make_engine, world, [this](ErrorCode code) { note_data_error(code); });
  if (!prepared) return tl::unexpected(prepared.error());
  prepared_ = std::move(*prepared);
  warn(prepared_->training->notice());
  figures_.bytes_read += prepared_->training->bytes_read();
  figures_board_.write(figures_);
  return {};
}

void StepThread::warn(const std::string& notice) {
  if (!notice.empty()) log_.warn(notice);
}

void StepThread::ask_for_checkpoint() {
  if (!runner_) return;
  if (!prepared_->config.checkpoint.directory.empty())
    return tell_(CheckpointRequest{runner_->job(), runner_->generation()});
  if (std::exchange(warned_, runner_->job()) == runner_->job()) return;
  log_.warn("the trainer asks for a checkpoint, but the job takes none: set checkpoint.directory in job.toml");
}

void StepThread::begin_figures(JobId job, const std::string& name) {
  if (figured_ == job) return;
  figured_ = job;
  figures_ = WorkerFigures();
  figures_.job = name;
  figures_board_.write(figures_);
}

void StepThread::note_data_error(ErrorCode code) {
  // Reading was cancelled, or there is a bug: the data isn't the cause.
  if (code == ErrorCode::kTemporary || code == ErrorCode::kSoftware) return;
  const DataProblem problem = code == ErrorCode::kNoInput        ? DataProblem::kMissing
                              : code == ErrorCode::kNoPermission ? DataProblem::kPermission
                              : code == ErrorCode::kData         ? DataProblem::kCorrupt
                                                                 : DataProblem::kUnfit;
  ++figures_.data_errors[static_cast<std::size_t>(problem)];
  figures_board_.write(figures_);
}

void StepThread::release() {
  runner_.reset();
  prepared_.reset();
  board_.write(BoardEntry{});
}

// Loading data may take long. Heartbeats then show that the worker is in Phase::kInput for this job.
void StepThread::show_loading(JobId job, Generation generation) {
  BoardEntry entry;
  entry.job = job;
  entry.generation = generation;
  entry.progress.phase = Phase::kInput;
  entry.progress.since = daemon::now();
  board_.write(entry);
}

}  // namespace disttrain::workerd
