// A script that left its loop by `break` ends with exit code 0. Under torchrun and Horovod such a script has done its
// work. Here it can't end the job in this way: the workers leave their loops in different steps, and the records of the
// epoch would be left. So the first such end fails the job, and the error names the keys that end a job. To count such
// ends and to fail at the second one was considered, but the next trainer may train for hours before it comes to the
// same place. A SIGTERM, after which some scripts end with exit code 0, comes to a trainer only if somebody sends it to
// this process: the units of the workers have KillMode=mixed.
#include "engine/trainer/trainer_engine.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/check.h"
#include "common/daemon/clock.h"
#include "common/timeouts.h"
#include "engine/sink_call.h"
#include "engine/trainer/trainer_model.h"

namespace disttrain::workerd {

namespace {

constexpr std::uint32_t kMaxCheckpoints = 16;  // that a trainer may ask for in one step
constexpr int kMostStarts = 3;                 // of a trainer that is killed before it has described its model

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

std::string activity_of(const EngineInput& input) {
  switch (input.program) {
    case Program::kEvaluate:
      return "while it evaluated";
    case Program::kPredict:
      return "while it predicted";
    case Program::kStep:
      break;
  }
  return "in this worker's step " + std::to_string(input.seed.step);
}

std::string name_of(const TrainerMessage& message) {
  if (std::holds_alternative<TrainerFinished>(message)) return "the end of a computation";
  if (std::holds_alternative<TrainerReady>(message)) return "gradients";
  return "a message";
}

}  // namespace

Result<std::unique_ptr<TrainerEngine>> TrainerEngine::make(TrainerOptions options, TrainerWorld world) {
  DISTTRAIN_CHECK(world.arena.kind() == ArenaKind::kShared);
  std::unique_ptr<TrainerEngine> engine(new TrainerEngine(std::move(options), std::move(world)));
  if (Status ok = engine->start_trainer(); !ok) return tl::unexpected(ok.error());
  return engine;
}

TrainerEngine::TrainerEngine(TrainerOptions options, TrainerWorld world)
    : options_(std::move(options)),
      world_(std::move(world)),
      columns_(world_.arena),
      clock_(world_.loop),
      alive_(std::make_shared<bool>(true)) {}

TrainerEngine::~TrainerEngine() {
  DISTTRAIN_CHECK(!is_calling_sink_);
  *alive_ = false;
  // Each call of is_cancelled() counts as progress (see ReleaseDeadline).
  if (trainer_) trainer_->end(options_.end_timeout, [this] { (void)world_.is_cancelled(); });
}

// ---- the life of a trainer ----

// A trainer that was killed before it has described its model is started again, because it didn't choose to end: for
// example, the kernel has killed it for memory, which others have freed since.
Status TrainerEngine::start_trainer() {
  for (int tries = 1;; ++tries) {
    const Status started = start_once();
    if (started || tries == kMostStarts || !was_killed_ || world_.is_cancelled()) return started;
    if (world_.on_line) world_.on_line("(it is started again: " + first_line(started.error().message) + ")");
  }
}

Status TrainerEngine::start_once() {
  was_killed_ = false;
  Result<std::unique_ptr<RunningTrainer>> trainer =
      RunningTrainer::start(options_.command, world_.on_line, options_.start_timeout, world_.is_cancelled);
  if (!trainer) return tl::unexpected(trainer.error());
  trainer_ = std::move(*trainer);
  known_blocks_.clear();
  Result<TrainerModel> model = handshake();
  if (model && is_described_ && !(*model == model_))
    model =
        tl::unexpected(trainer_->refuse("describes another model than the trainer before it; expected the same "
                                        "variables and metrics at each start"));
  if (!model) return tl::unexpected(drop_trainer(model.error()));
  if (!is_described_) {
    model_ = std::move(*model);
    spec_ = spec_of(model_, options_.columns);
    is_described_ = true;
  }
  trainer_->watch(world_.loop, [this] { on_event(); });
  return {};
}

Result<TrainerModel> TrainerEngine::handshake() {
  const Instant since = daemon::now();
  Result<TrainerMessage> hello = trainer_->wait(since, options_.start_timeout, world_.is_cancelled);
  if (!hello) return tl::unexpected(hello.error());
  if (!std::holds_alternative<TrainerHello>(*hello))
    return tl::unexpected(trainer_->refuse("didn't begin with the message \"hello\""));
  if (Status ok = trainer_->send(welcome_message(options_.columns, options_.batch_size, options_.seed), {}); !ok)
    return tl::unexpected(ok.error());
  trainer_->set_activity("before job.batches() began");
  Result<TrainerMessage> described = trainer_->wait(since, options_.start_timeout, world_.is_cancelled);
  if (!described) return tl::unexpected(described.error());
  auto* const model = std::get_if<TrainerModel>(&*described);
  if (model == nullptr) return tl::unexpected(trainer_->refuse("didn't describe its model"));
  if (Status ok = check_data(*model, options_.columns); !ok)
    return tl::unexpected(trainer_->refuse(ok.error().message));
  trainer_->set_activity("between two computations");
  return std::move(*model);
}

Error TrainerEngine::drop_trainer(const Error& why) {
  Error error = why;
  const auto& end = trainer_->how_it_ended();
  const bool ended_by_itself = end && end->signal == 0;
  was_killed_ = end && end->signal != 0;
  // A program that ends by itself before it has described a model would do so again. A function of job.on_evaluate()
  // that raises may do so again, too, because the next evaluation has the same records. A script that ends with exit
  // code 0 before the job does would also end there again: its error is kConfig already.
  if (ended_by_itself && !is_described_)
    error.code = ErrorCode::kConfig;
  else if (ended_by_itself && !end->is_success() && sink_ != nullptr && program_ == Program::kEvaluate)
    error.code = ErrorCode::kFailed;
  trainer_.reset();
  return error;
}

Status TrainerEngine::ensure_running() {
  if (unreported_) return tl::unexpected(*std::exchange(unreported_, std::nullopt));
  if (trainer_) return {};
  if (Status ok = start_trainer(); !ok) return ok;
  return is_open_ ? tell_layout() : Status();
}

Status TrainerEngine::tell_layout() {
  return send(open_message(layout_), {});
}

Status TrainerEngine::send(nlohmann::json message, std::span<const Arena::Place> places) {
  std::vector<int> files;
  for (const Arena::Place& place : places)
    if (known_blocks_.insert(place.block).second) {
      message["blocks"].push_back({place.block, place.block_bytes});
      files.push_back(place.fd);
    }
  if (!files.empty())
    for (auto block = known_blocks_.begin(); block != known_blocks_.end();) {
      const bool is_gone = !world_.arena.has(*block);
      if (is_gone) message["drop"].push_back(*block);
      block = is_gone ? known_blocks_.erase(block) : std::next(block);
    }
  const Status sent = trainer_->send(message, files);
  if (!sent) return tl::unexpected(drop_trainer(sent.error()));
  return {};
}

// ---- the engine's calls ----

Status TrainerEngine::open(const Layout& layout, std::span<float> parameters, std::span<float> gradients) {
  DISTTRAIN_CHECK(sink_ == nullptr && !is_calling_sink_);
  DISTTRAIN_CHECK(world_.arena.find(std::as_bytes(parameters)).has_value());
  DISTTRAIN_CHECK(world_.arena.find(std::as_bytes(gradients)).has_value());
  if (Status ok = ensure_running(); !ok) return ok;
  parameters_ = parameters;
  gradients_ = gradients;
  if (is_open_ && layout == layout_) return {};
  layout_ = layout;
  is_open_ = true;
  return tell_layout();
}

Result<std::vector<float>> TrainerEngine::initial_values() {
  DISTTRAIN_CHECK(sink_ == nullptr && is_open_);
  if (Status ok = ensure_running(); !ok) return tl::unexpected(ok.error());
  const Arena::Place into = *world_.arena.find(std::as_bytes(gradients_));
  if (Status ok = send(values_message(into), std::span(&into, 1)); !ok) return tl::unexpected(ok.error());
  trainer_->set_activity("while it gave its initial values");
  const Result<TrainerMessage> answer = trainer_->wait(daemon::now(), options_.answer_timeout, world_.is_cancelled);
  if (!answer) return tl::unexpected(drop_trainer(answer.error()));
  if (!std::holds_alternative<TrainerValues>(*answer))
    return tl::unexpected(drop_trainer(trainer_->refuse("didn't answer with its initial values")));
  if (const std::string problem = problem_with_values(layout_, gradients_); !problem.empty())
    return tl::unexpected(drop_trainer(trainer_->refuse(problem)));
  trainer_->set_activity("between two computations");
  return std::vector<float>(gradients_.begin(), gradients_.end());
}

void TrainerEngine::start(const EngineInput& input, EngineSink& sink) {
  DISTTRAIN_CHECK(sink_ == nullptr && is_open_ && !is_calling_sink_);
  sink_ = &sink;
  program_ = input.program;
  examples_ = input.batch.examples;
  ready_ = 0;
  checkpoints_ = 0;
  if (examples_ == 0) return finish_empty(input);
  if (Status ok = ensure_running(); !ok) return fail_computation(ok.error());
  if ((program_ == Program::kEvaluate && !spec_.programs.evaluates) ||
      (program_ == Program::kPredict && !spec_.programs.predicts))
    return fail_computation(Error{ErrorCode::kConfig,
                                  "the trainer can't evaluate or predict: it must call "
                                  "job.on_evaluate() or job.on_predict() before its loop"});
  if (Status ok = send_start(input); !ok) return fail_computation(ok.error());
  trainer_->set_activity(activity_of(input));
  watch_the_clock();
}

Duration TrainerEngine::limit() const {
  return options_.answer_timeout * (program_ == Program::kEvaluate ? kEvaluationPatience : 1);
}

Status TrainerEngine::send_start(const EngineInput& input) {
  TrainerStart start;
  start.number = ++number_;
  start.program = input.program;
  start.seed = input.seed;
  start.workers = world_.worker_count();
  start.examples = input.batch.examples;
  start.parameters = *world_.arena.find(std::as_bytes(parameters_));
  start.gradients = *world_.arena.find(std::as_bytes(gradients_));
  std::vector<Arena::Place> places = {start.parameters, start.gradients};
  if (!input.spare_gradients.empty()) {
    start.spare_gradients = world_.arena.find(std::as_bytes(input.spare_gradients));
    places.push_back(*start.spare_gradients);
  }
  std::vector<ColumnValues> columns(input.batch.columns.begin(), input.batch.columns.end());
  const bool has_next = options_.columns.empty() && input.next && input.next->examples > 0;
  if (has_next) columns.push_back(input.next->columns.front());
  try {
    start.columns = columns_.share(columns);
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::kUnavailable, "not enough memory to share a batch with the trainer");
  }
  for (const SharedColumn& column : start.columns) {
    places.push_back(column.values);
    if (column.row_end_bytes > 0) places.push_back(column.row_ends);
  }
  if (has_next) {
    start.next = start.columns.back();
    start.columns.pop_back();
  }
  return send(start_message(start), places);
}

// The engine doesn't ask the trainer about a batch without records.
void TrainerEngine::finish_empty(const EngineInput& input) {
  EngineOutput output;
  if (input.program != Program::kPredict) {
    metrics_.assign(accumulator_size(spec_.metrics), 0.0);
    output.metrics = metrics_;
  }
  if (input.program == Program::kStep) {
    std::fill(gradients_.begin(), gradients_.end(), 0.0F);
    for (std::size_t v = 0; v < spec_.variables.size(); ++v) {
      if (spec_.variables[v].kind != VariableKind::kState) continue;
      const std::uint64_t words = word_count(spec_.variables[v]);
      std::ranges::copy(parameters_.subspan(layout_.variable_begins[v], words),
                        gradients_.subspan(layout_.variable_begins[v]).begin());
    }
    if (!announce(gradients_.size())) return;  // the trainer has died meanwhile
  }
  call_finished(output);
}

void TrainerEngine::abort() {
  DISTTRAIN_CHECK(!is_calling_sink_);
  if (std::exchange(sink_, nullptr) == nullptr || !trainer_) return;
  clock_.cancel();
  // The trainer goes on computing. Its answer must come before the arrays may be used for something else.
  const Instant since = daemon::now();
  for (;;) {
    const Result<TrainerMessage> message = trainer_->wait(since, limit(), world_.is_cancelled);
    const auto* const finished = message ? std::get_if<TrainerFinished>(&*message) : nullptr;
    if (finished != nullptr && finished->number == number_) break;
    if (message && may_precede_the_end(*message)) continue;
    const Error why = drop_trainer(message ? refuse_unasked(*message) : message.error());
    if (why.code != ErrorCode::kTemporary) unreported_ = why;
    return;
  }
  trainer_->set_activity("between two computations");
}

// Each of them is bounded, so a trainer can't keep abort() waiting by sending them without end.
bool TrainerEngine::may_precede_the_end(const TrainerMessage& message) {
  const auto* const ready = std::get_if<TrainerReady>(&message);
  if (ready == nullptr) return std::holds_alternative<TrainerCheckpoint>(message) && ++checkpoints_ <= kMaxCheckpoints;
  return ready->number == number_ && ready->end > std::exchange(ready_, ready->end) && ready_ <= gradients_.size();
}

Error TrainerEngine::refuse_unasked(const TrainerMessage& message) {
  return trainer_->refuse("sent " + name_of(message) + " without being asked, or twice");
}

// ---- what the trainer says ----

namespace {

bool has_doubles(const ModelSpec& model) {
  return std::any_of(model.variables.begin(), model.variables.end(),
                     [](const VariableSpec& variable) { return variable.dtype == DType::kFloat64; });
}

}  // namespace

void TrainerEngine::on_event() {
  if (is_handling_) return;  // the outer call reads all messages
  is_handling_ = true;
  while (trainer_) {
    Result<std::optional<TrainerMessage>> message = trainer_->next();
    if (!message.has_value()) {
      fail_computation(drop_trainer(message.error()));
      break;
    }
    if (!message->has_value()) break;
    handle(**message);
  }
  is_handling_ = false;
}

void TrainerEngine::handle(TrainerMessage& message) {
  if (std::holds_alternative<TrainerCheckpoint>(message)) {
    if (++checkpoints_ <= kMaxCheckpoints) return world_.on_checkpoint();
    return fail_computation(drop_trainer(
        trainer_->refuse("asked for more than " + std::to_string(kMaxCheckpoints) + " checkpoints in one step")));
  }
  auto* const ready = std::get_if<TrainerReady>(&message);
  auto* const finished = std::get_if<TrainerFinished>(&message);
  if (sink_ != nullptr && ready != nullptr && ready->number == number_) return handle_ready(*ready);
  if (sink_ != nullptr && finished != nullptr && finished->number == number_) return handle_finished(*finished);
  fail_computation(drop_trainer(refuse_unasked(message)));
}

void TrainerEngine::handle_ready(const TrainerReady& ready) {
  const std::uint64_t end = ready.end;
  // An odd end of a model with doubles could lie within a double.
  const bool is_within_double = end % 2 != 0 && end < gradients_.size() && has_doubles(spec_);
  if (program_ != Program::kStep || end <= ready_ || end > gradients_.size() || is_within_double)
    return fail_computation(drop_trainer(trainer_->refuse(
        "announced the gradients of the words " + std::to_string(ready_) + " to " + std::to_string(end) + " of " +
        std::to_string(gradients_.size()) + "; expected ascending ranges of a step's gradients")));
  announce(end);
}

void TrainerEngine::handle_finished(TrainerFinished& finished) {
  const bool predicts = program_ == Program::kPredict;
  const std::size_t expected = predicts ? 0 : accumulator_size(spec_.metrics);
  if (finished.metrics.size() != expected)
    return fail_computation(drop_trainer(
        trainer_->refuse("returned metrics of " + std::to_string(finished.metrics.size()) + " numbers, expected " +
                         std::to_string(expected) + " for the metrics that it described")));
  if (finished.outputs.empty() == predicts || finished.outputs.size() % examples_ != 0)
    return fail_computation(drop_trainer(trainer_->refuse(
        "returned " + std::to_string(finished.outputs.size()) + " outputs for " + std::to_string(examples_) +
        (predicts ? " records; expected equally many for each record" : " records; expected none"))));
  clock_.cancel();
  trainer_->set_activity("between two computations");
  metrics_ = std::move(finished.metrics);
  outputs_ = std::move(finished.outputs);
  // The gradients of such a step are skipped, so they must not leave before the loss is known.
  const bool is_finite = std::isfinite(static_cast<float>(finished.loss_sum / static_cast<double>(examples_)));
  if (program_ == Program::kStep && is_finite && ready_ < gradients_.size() && !announce(gradients_.size())) return;
  call_finished(EngineOutput{finished.loss_sum, examples_, metrics_, outputs_});
}

bool TrainerEngine::announce(std::uint64_t end) {
  const SinkCall call(is_calling_sink_);
  sink_->ready(std::exchange(ready_, end), end);
  return sink_ != nullptr;
}

void TrainerEngine::call_finished(const Result<EngineOutput>& output) {
  const SinkCall call(is_calling_sink_);
  std::exchange(sink_, nullptr)->finished(output);
}

void TrainerEngine::fail_computation(const Error& why) {
  clock_.cancel();
  if (sink_ == nullptr)
    unreported_ = why;
  else
    call_finished(tl::unexpected(why));
}

void TrainerEngine::watch_the_clock() {
  clock_.expires_after(limit());
  clock_.async_wait([this, alive = alive_](asio::error_code cancelled) {
    if (cancelled || !*alive || sink_ == nullptr || !trainer_) return;
    // The answer may have arrived while the loop was busy with something else.
    on_event();
    if (sink_ == nullptr || !trainer_ || clock_.expiry() > asio::steady_timer::clock_type::now()) return;
    fail_computation(drop_trainer(trainer_->give_up_on(limit())));
  });
}

}  // namespace disttrain::workerd
