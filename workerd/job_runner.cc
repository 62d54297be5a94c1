#include "workerd/job_runner.h"

#include <algorithm>
#include <asio/post.hpp>
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <new>
#include <thread>
#include <utility>

#include "common/daemon/clock.h"
#include "common/memory_plan.h"
#include "input/data_figures.h"
#include "workerd/clip.h"
#include "workerd/exchange/ps_exchange.h"
#include "workerd/parameters_hash.h"

namespace disttrain::workerd {

namespace {

constexpr Duration kTick = std::chrono::seconds(1);
// The counts for metrics are published at most this often, because publishing them copies all histograms.
constexpr Duration kShowEvery = std::chrono::milliseconds(100);

Rank rank_of(const Roster& roster, Member self) {
  for (std::uint32_t rank = 0; rank < roster.members.size(); ++rank)
    if (roster.members[rank] == self) return Rank(rank);
  return Rank(0);
}

std::uint32_t ahead_of(const OpenJob& job, const JobConfig& config) {
  return batches_ahead(config.data, config.train.step_records() * record_bytes(job.layout.model));
}

// Whether a step begins before all of its parameters are there. With few buckets hardly anything could be computed
// meanwhile. With train.accumulate the first part of a step would have to keep all parameters as they were.
bool begins_early(const OpenJob& job, const PreparedJob& prepared) {
  constexpr std::size_t kFewBuckets = 4;
  return prepared.engine->begins_early() && prepared.config.train.accumulate == 1 &&
         job.layout.buckets.size() > kFewBuckets * job.layout.shards;
}

JobFacts facts_of(const OpenJob& job, const JobConfig& config, const RunnerWorld& world, bool begins_early) {
  JobFacts facts;
  facts.self = world.self;
  facts.config = config;
  facts.config.data.prefetch = ahead_of(job, config);
  facts.layout = job.layout;
  facts.roster = job.roster;
  for (std::size_t shard = 0; shard < job.owners.size(); ++shard)
    facts.shard_names.push_back("shard " + std::to_string(shard) + " (" + to_string(job.owners[shard].ps.task) +
                                " at " + job.owners[shard].address + ")");
  facts.train_records = job.train_records;
  facts.credits = world.cluster.transport.credits;
  facts.evaluates = job.evaluates;
  facts.clock = job.clock;
  facts.batches = job.batches;
  facts.begins_early = begins_early;
  return facts;
}

// An engine knows the values of a bad record, but not the files that it came from.
Error with_files(Error error, const JobConfig& config, bool evaluates) {
  const input::Source source =
      evaluates ? input::evaluation_source(config.data, config.evaluate) : input::training_source(config.data);
  if (error.code == ErrorCode::kData && !source.files.empty())
    error.message = (std::filesystem::path(source.path) / source.files).string() + ": " + error.message;
  return error;
}

// Batches of a step, and the parts of a step, begin at multiples of train.batch_size.
input::BucketOptions buckets_of(const JobConfig& config, const input::Dataset& training) {
  if (config.data.bucket_by.empty()) return {};
  return {.batch = config.train.batch_size, .batches = config.data.bucket_window, .lengths = training.lengths()};
}

// The seed of the worker's own order. In sync the order belongs to the rank: whoever has the rank does its next batch.
// In async and ssp it belongs to the task, because ranks change when workers come and go, and the task goes on after
// the batches that it has done.
std::uint64_t own_seed(const OpenJob& job, const JobConfig& config, Member self) {
  const Rank rank = config.train.mode == Mode::kSync ? rank_of(job.roster, self) : Rank(self.task.index);
  return input::own_order_seed(config.job.seed, rank);
}

input::OrderOptions order_of(const OpenJob& job, const PreparedJob& prepared, Member self) {
  const JobConfig& config = prepared.config;
  const bool own = config.data.sharding == Sharding::kNone;
  return {.records = job.train_records,
          .shuffle = config.data.shuffle,
          .buffer = config.data.shuffle_buffer,
          .window = config.data.shuffle_window,
          .seed = own ? own_seed(job, config, self) : config.job.seed,
          .blocks = prepared.training->blocks(),
          .buckets = buckets_of(config, *prepared.training)};
}

// One thread copies records from memory fast enough. Reading and decoding files takes more.
std::uint32_t input_threads(const PreparedJob& prepared) {
  constexpr std::uint32_t kMost = 4;
  if (prepared.config.data.threads != 0) return prepared.config.data.threads;
  if (prepared.training->figures() == nullptr) return 1;
  return std::clamp(std::thread::hardware_concurrency(), 1u, kMost);
}

const Arena* shared_arena(const Arena& arena) {
  return arena.kind() == ArenaKind::kShared ? &arena : nullptr;
}

}  // namespace

JobRunner::JobRunner(RunnerWorld world, PreparedJob& prepared, OpenJob job)
    : world_(std::move(world)),
      prepared_(prepared),
      job_(std::move(job)),
      core_(facts_of(job_, prepared.config, world_, begins_early(job_, prepared)), daemon::now()),
      arrivals_(job_.layout),
      counted_(core_.progress()),
      before_(world_.figures),
      alive_(std::make_shared<bool>(true)),
      ticker_(world_.loop),
      trace_(prepared.config.train) {
  step_metrics_.metrics = job_.layout.model.metrics;
  read_before_ = prepared_.training->bytes_read();
  const std::uint64_t bytes = word_count(job_.layout.model) * sizeof(float);
  for (std::uint32_t i = 0; i < core_.buffers(); ++i) {
    parameters_.push_back(std::make_unique<Memory>(prepared.arena, bytes, Paging::kTouched));
    gradients_.push_back(std::make_unique<Memory>(prepared.arena, bytes, Paging::kTouched));
  }
  // With a second array of gradients, a trainer sets the next step's array to 0 while the worker sends this step's
  // array. It takes 4 more bytes for each parameter. Only the core knows when a push is acknowledged, so compute()
  // swaps the arrays when a step begins, and tells the trainer which one is free. With train.pipeline = 1 both arrays
  // are in use, and with train.accumulate the sum has an array of its own, so there the trainer clears the array at the
  // begin of the step. NumPy and JAX scripts overwrite gradients, so they need no zeros.
  if (core_.buffers() == 1 && prepared_.config.train.accumulate == 1 && prepared_.engine->clears_gradients_ahead())
    spare_gradients_ = std::make_unique<Memory>(prepared.arena, bytes, Paging::kTouched);
  if (prepared_.config.train.accumulate > 1) parts_.emplace(job_.layout, prepared_.config.train.batch_size);
  input_ =
      std::make_unique<input::Prefetcher>(*prepared_.training, order_of(job_, prepared_, world_.self),
                                          input::PrefetchOptions{.batch_size = prepared_.config.train.step_records(),
                                                                 .prefetch = ahead_of(job_, prepared_.config),
                                                                 .threads = input_threads(prepared_),
                                                                 .seed = prepared_.config.job.seed,
                                                                 .columns = prepared_.engine->describe().columns});
  exchange_ = std::make_unique<PsExchange>(world_.loop, world_.transport, job_.layout,
                                           PsExchangeOptions{.cluster = world_.cluster.name,
                                                             .cluster_hash = world_.cluster.hash,
                                                             .job = job_.job,
                                                             .generation = job_.generation,
                                                             .token = job_.token,
                                                             .self = world_.self,
                                                             .owners = job_.owners,
                                                             .timeouts = world_.timeouts,
                                                             .arena = shared_arena(prepared.arena),
                                                             .trace = trace_.recorder()},
                                           *this);
  // Opens the engine now, so that it allocates its memory before the first step.
  if (Status ok = use_buffers(0, 0); !ok) broken_ = ok.error();
  exchange_->open(job_.roster);
  tick();
  show_figures();
}

JobRunner::~JobRunner() {
  *alive_ = false;
  end_computation();  // the engine uses the memory of this object
  show_figures();
  world_.figures.batches_ready = 0;
  world_.figures_board.write(world_.figures);
  world_.metrics_board.write(StepMetrics());
  tell_trace(trace_.end());
  input_.reset();  // destroyed first, because its callback uses the runner's other members
}

void JobRunner::feed(const Event& event) {
  feed_one(event);
  while (broken_ || has_values_) {
    if (broken_)
      feed_one(Broken{*std::exchange(broken_, std::nullopt)});
    else if (std::exchange(has_values_, false))
      feed_one(ValuesLoaded{});
  }
  supply_batches();
  follow_trace();
  count_step();
  post_progress();
}

void JobRunner::feed_one(const Event& event) {
  actions_.clear();
  now_ = daemon::now();
  core_.step(now_, event, actions_);
  trace_.follow(core_.progress());
  for (const Action& action : actions_) std::visit([this](const auto& a) { carry_out(a); }, action);
}

// Gives the core the batch that it waits for, if that batch is ready. The runner takes a batch only when the core waits
// for it, so that the input thread isn't woken too early (see Prefetcher).
void JobRunner::supply_batches() {
  while (const std::optional<BatchTicket> wanted = core_.batch_wanted()) {
    std::unique_ptr<input::ReadyBatch> batch = input_->try_pop();
    if (!batch) {
      if (awaiting_batch_) return;
      // The input thread calls this callback. That thread ends before the runner's members are destroyed. The callback
      // captures only one pointer, so that std::function allocates no memory.
      awaiting_batch_ = input_->notify_when_ready([this] {
        asio::post(world_.loop, [this, alive = alive_] {
          if (!*alive) return;
          awaiting_batch_ = false;
          supply_batches();
          post_progress();
        });
      });
      if (awaiting_batch_) return;
      continue;
    }
    if (batch->order.ticket != *wanted) {
      input_->recycle(std::move(batch));
      continue;
    }
    if (!batch->made) {
      prepared_.on_data_error(batch->made.error().code);
      feed_one(Broken{batch->made.error()});
      return input_->recycle(std::move(batch));
    }
    batch_ = std::move(batch);
    feed_one(BatchReady{*wanted});
  }
}

void JobRunner::on_parameters(ShardId shard, const Parameters& parameters) {
  if (shard == ShardId(0)) global_ = parameters.version;
  is_step_skipped_ = is_step_skipped_ || parameters.outcome == PushOutcome::kSkipped;
  arrivals_.arrived(parameters.bucket);
  feed(ParametersArrived{shard, parameters});
}

void JobRunner::on_acknowledge(ShardId shard, const Acknowledge& acknowledge) {
  is_step_skipped_ = is_step_skipped_ || acknowledge.outcome == PushOutcome::kSkipped;
  feed(AcknowledgeArrived{shard, acknowledge});
}

// With train.pipeline the worker always waits for some answer, so the end of a step counts too.
void JobRunner::follow_trace() {
  if (trace_.recorder() == nullptr) return;
  if (core_.awaits_answers() && core_.progress().steps == counted_.steps) return;
  tell_trace(trace_.reach(global_));
}

void JobRunner::tell_trace(std::optional<TraceTake> take) {
  if (!take) return;
  if (take->dropped > 0) world_.warn_of_trace(take->dropped);
  for (TraceEvents& piece : pieces_of(job_.job, job_.generation, std::move(*take))) world_.tell(std::move(piece));
}

void JobRunner::count_step() {
  const Progress& progress = core_.progress();
  if (progress.steps == counted_.steps) return;
  WorkerFigures& figures = world_.figures;
  figures.steps += progress.steps - counted_.steps;
  figures.examples += progress.examples - counted_.examples;
  figures.nonfinite += std::exchange(is_step_skipped_, false) ? 1 : 0;
  for (std::size_t i = 0; i < kStepPhases; ++i) {
    const auto phase = static_cast<std::size_t>(step_phase(i));
    figures.phases[i].observe(to_seconds(progress.times[phase] - counted_.times[phase]));
  }
  figures.loss = progress.loss;
  counted_ = progress;
  if (now_ - shown_ >= kShowEvery) show_figures();
}

void JobRunner::show_figures() {
  const input::PrefetchStats input = input_->stats();
  WorkerFigures& figures = world_.figures;
  figures.records = before_.records + input.examples;
  figures.stalled = before_.stalled + input.stalled;
  figures.bytes_read = before_.bytes_read + prepared_.training->bytes_read() - read_before_;
  figures.batches_ready = input.ready;
  figures.stages.clear();
  if (const input::DataFigures* data = prepared_.training->figures())
    for (const auto* count : {&data->read_ns, &data->decode_ns, &data->transform_ns, &data->batch_ns})
      figures.stages.emplace_back(static_cast<std::int64_t>(count->load(std::memory_order_relaxed)));
  world_.figures_board.write(figures);
  shown_ = now_;
  // Until another step has ended, the last one's metrics stay the newest ones.
  if (step_metrics_.accumulators.empty()) return;
  world_.metrics_board.write(step_metrics_);
  step_metrics_.accumulators.clear();
}

void JobRunner::post_progress() {
  world_.board.write(BoardEntry{job_.job, job_.generation, core_.progress(), wires_});
}

void JobRunner::tick() {
  ticker_.expires_after(kTick);
  ticker_.async_wait([this, alive = alive_](asio::error_code cancelled) {
    if (cancelled || !*alive) return;
    feed(Tick{});
    show_figures();
    tick();
  });
}

// ---- work ----

// A computation may begin before all parameters are there, but an empty batch has nothing to wait with.
bool JobRunner::can_compute() const {
  if (!compute_ || !core_.begins_early()) return compute_.has_value();
  return arrivals_.all_here() || batch_->buffer.batch().examples > 0;
}

// Afterwards the engine uses no memory of this object. The batch stays.
void JobRunner::end_computation() {
  arrivals_.close();
  prepared_.engine->abort();
  computing_ = false;
}

void JobRunner::work() {
  if (compute_) {
    compute();
    prepare_next();
  } else if (evaluation_) {
    evaluate();
  }
}

// While the worker waits for the shards, the engine can begin with what needs no parameters.
void JobRunner::prepare_next() {
  if (computing_ || compute_ || parts_ || !core_.awaits_answers()) return;
  const input::ReadyBatch* const next = input_->peek();
  if (next == nullptr || !next->made) return;
  prepared_.engine->prepare(next->buffer.batch());
  prepared_batch_ = next->order.ticket;
}

Status JobRunner::use_buffers(std::uint32_t parameters, std::uint32_t gradients) {
  const std::pair wanted{parameters, gradients};
  if (buffers_ == wanted) return {};
  buffers_ = wanted;
  return prepared_.engine->open(job_.layout, parameters_[parameters]->floats(), gradients_[gradients]->floats());
}

void JobRunner::start(const EngineInput& input) {
  computing_ = true;
  is_inside_start_ = true;
  if (input.program == Program::kStep) trace_.part_begins();
  prepared_.engine->start(input, *this);
  is_inside_start_ = false;
}

void JobRunner::compute() {
  post_progress();
  if (spare_gradients_) {
    // The core has all acknowledgements of the last step's frames, so from now on nobody reads those gradients.
    std::swap(gradients_[compute_->gradients], spare_gradients_);
    buffers_.reset();
  }
  if (Status ok = use_buffers(compute_->parameters, compute_->gradients); !ok) {
    compute_.reset();
    return feed(Broken{ok.error()});
  }
  if (!std::exchange(is_step_begun_, true)) {
    step_ = {};
    if (parts_) parts_->begin(batch_->buffer.batch(), parameters_[compute_->parameters]->floats());
  }
  const Batch batch =
      parts_ ? parts_->next(parameters_[compute_->parameters]->floats(), gradients_[compute_->gradients]->floats())
             : batch_->buffer.batch();
  // Each part draws its own random numbers.
  const std::uint64_t number = compute_->step * prepared_.config.train.accumulate + (parts_ ? parts_->index() : 0);
  part_end_ = 0;
  arrivals_.open();
  ParametersGate* const gate = core_.begins_early() && !arrivals_.all_here() ? &arrivals_ : nullptr;
  // With train.accumulate the next computation is another part of this batch, in most cases.
  const input::ReadyBatch* const next = parts_ ? nullptr : input_->peek();
  start(EngineInput{.program = Program::kStep,
                    .batch = batch,
                    .seed = {prepared_.config.job.seed, number, compute_->rank.value},
                    .next = next == nullptr ? std::nullopt : std::optional(next->buffer.batch()),
                    .is_prepared = !parts_ && batch_->order.ticket == prepared_batch_,
                    .spare_gradients = spare_gradients_ ? spare_gradients_->floats() : std::span<float>(),
                    .gate = gate});
}

// If the engine computes on this thread, the loop runs here, so that the shards' answers are received meanwhile.
void JobRunner::ready(std::uint64_t begin, std::uint64_t end) {
  if (compute_) add_part(begin, end);
  if (compute_) trace_.ready(end * sizeof(float));
  // If the loss of an earlier part isn't finite, the core will skip the step.
  const bool is_sendable = is_last_part() && std::isfinite(static_cast<float>(step_.loss_sum));
  if (compute_ && compute_->early && is_sendable) feed(RangesReady{end});
  if (is_inside_start_ && core_.awaits_answers()) world_.loop.poll();
}

void JobRunner::add_part(std::uint64_t begin, std::uint64_t end) {
  part_end_ = end;
  if (parts_)
    parts_->add(parameters_[compute_->parameters]->floats(), gradients_[compute_->gradients]->floats(), begin, end);
}

void JobRunner::finished(const Result<EngineOutput>& output) {
  computing_ = false;
  trace_.part_ended(parts_ ? parts_->index() : 0);
  const bool is_wanted = compute_.has_value() || evaluation_.has_value();
  if (!output || !is_wanted) {
    const bool evaluates = evaluation_.has_value();
    compute_.reset();
    evaluation_.reset();
    run_.reset();
    if (is_wanted) feed(Broken{with_files(output.error(), prepared_.config, evaluates)});
    return;
  }
  if (compute_)
    computed(*output);
  else
    run_->add(*output);
}

// After a part of the step that isn't the last one, the step thread calls work(), which starts the next part.
void JobRunner::computed(const EngineOutput& output) {
  // The engine hasn't announced the gradients of an infinite loss.
  if (const std::uint64_t end = word_count(job_.layout.model); part_end_ < end) add_part(part_end_, end);
  step_.loss_sum += output.loss_sum;
  step_.examples += output.examples;
  if (!output.metrics.empty()) {
    step_metrics_.accumulators.resize(output.metrics.size());  // zeros, if they were published
    std::transform(output.metrics.begin(), output.metrics.end(), step_metrics_.accumulators.begin(),
                   step_metrics_.accumulators.begin(), std::plus<>());
  }
  if (!is_last_part()) return;
  const Compute done = *std::exchange(compute_, std::nullopt);
  if (done.clip_norm > 0.0) clip_to_norm(job_.layout, gradients_[done.gradients]->floats(), done.clip_norm);
  input_->recycle(std::move(batch_));
  const double examples = static_cast<double>(step_.examples);
  feed(Computed{
      step_.examples > 0 ? static_cast<float>(step_.loss_sum / examples) : std::numeric_limits<float>::quiet_NaN(),
      arrivals_.waited()});
}

// Begins the evaluation that is due, or goes on with its next batch. After each batch the step thread lets the loop run
// and calls this again.
void JobRunner::evaluate() {
  if (!run_) {
    post_progress();
    const std::uint32_t gradients = buffers_ ? buffers_->second : 0;
    Status ok = use_buffers(evaluation_->parameters, gradients);
    if (ok) ok = load_evaluation(prepared_);
    if (!ok) {
      evaluation_.reset();
      return feed(Broken{ok.error()});
    }
    const std::uint64_t batch_records = evaluation_batch_records(prepared_.config);
    try {
      run_.emplace(prepared_.evaluation.get(), prepared_.engine->describe(), batch_records,
                   hash_of_parameters(job_.layout, parameters_[evaluation_->parameters]->floats()));
    } catch (const std::bad_alloc&) {
      evaluation_.reset();
      return feed(Broken{Error{ErrorCode::kConfig, "not enough memory to evaluate " + std::to_string(batch_records) +
                                                       " records at a time: set evaluate.batch_size to fewer"}});
    }
  }
  if (world_.must_leave()) {
    evaluation_.reset();
    return run_.reset();
  }
  const Result<std::optional<Batch>> batch = run_->next();
  if (!batch.has_value()) {
    run_.reset();
    evaluation_.reset();
    return feed(Broken{batch.error()});
  }
  if (batch->has_value()) return start(EngineInput{.program = Program::kEvaluate, .batch = **batch, .seed = {}});
  EvaluationDone done = run_->done();
  done.notice = prepared_.notice_of_unknown();
  world_.warn(prepared_.take_notice_of_unknown());
  run_.reset();
  evaluation_.reset();
  feed(done);
}

// ---- actions ----

void JobRunner::carry_out(const ReportOpened&) {
  world_.tell(JobOpened{job_.job, job_.generation, exchange_->wires()});
}

void JobRunner::carry_out(const RequestLease& action) {
  world_.tell(LeaseRequest{job_.job, job_.generation, action.records_per_second});
}

void JobRunner::carry_out(const RequestBatch& action) {
  if (Status ok = input_->request(action.order); !ok) broken_ = ok.error();
}

void JobRunner::carry_out(const DropBatch& action) {
  input_->drop(action.ticket);
}

void JobRunner::carry_out(const SendPull& action) {
  exchange_->pull(action);
}

void JobRunner::carry_out(const SendPush& action) {
  exchange_->push(action, gradients_[action.gradients]->floats());
}

void JobRunner::carry_out(const SendMark& action) {
  exchange_->mark(action);
}

void JobRunner::carry_out(const LoadValues& action) {
  const std::span<float> into = gradients_[action.gradients]->floats();
  const Result<std::vector<float>> values = prepared_.engine->initial_values();
  if (!values) {
    broken_ = values.error();
  } else if (values->size() != into.size()) {
    broken_ = Error{ErrorCode::kSoftware, "the model has " + std::to_string(values->size()) +
                                              " initial values, but the job's layout has " +
                                              std::to_string(into.size()) + ": do all tasks have the same version?"};
  } else {
    std::copy(values->begin(), values->end(), into.begin());
    has_values_ = true;
  }
}

void JobRunner::carry_out(const Compute& action) {
  compute_ = action;
  for (const BucketId bucket : action.awaited) arrivals_.expect(bucket);
  is_step_begun_ = false;
}

void JobRunner::carry_out(const Recompute& action) {
  end_computation();
  arrivals_.expect_all(action.shard);
}

void JobRunner::carry_out(const DropCompute&) {
  end_computation();
  compute_.reset();
  input_->recycle(std::move(batch_));
}

void JobRunner::carry_out(const RunEvaluation& action) {
  evaluation_ = action;
}

void JobRunner::carry_out(const ReportEvaluated& action) {
  Evaluated evaluated = action.evaluated;
  evaluated.job = job_.job;
  evaluated.generation = job_.generation;
  world_.tell(evaluated);
}

void JobRunner::carry_out(const ReportFinished& action) {
  tell_trace(trace_.end());
  world_.tell(WorkerFinished{job_.job, job_.generation, action.steps});
}

void JobRunner::carry_out(const Accuse& action) {
  world_.tell(Accusation{job_.job, job_.generation, job_.owners.at(action.shard.value).ps.task, action.reason,
                         action.lasts, action.withdrawn});
}

// A computation under way still uses batch_ or run_, so they stay until it has finished.
void JobRunner::carry_out(const Fail& action) {
  arrivals_.close();
  compute_.reset();
  evaluation_.reset();
  world_.tell(TaskFailed{job_.job, job_.generation, action.error.code, action.error.message});
}

}  // namespace disttrain::workerd
