#include "tests/sim/worker_node.h"

#include <algorithm>
#include <limits>

#include "common/checkpoint/job_folder.h"
#include "workerd/clip.h"

namespace disttrain::sim {

using std::chrono::microseconds;
using std::chrono::milliseconds;

Hello WorkerNode::make_hello() {
  TaskHello task = task_hello();
  task.address = address_of(jobs_.cluster, self().task);
  task.job = held_;
  task.generation = held_generation_;
  Hello hello;
  hello.who = task;
  return hello;
}

Heartbeat WorkerNode::make_heartbeat() {
  Heartbeat beat;
  beat.job = held_;
  beat.generation = held_generation_;
  beat.work = work_;
  if (!core_) return beat;
  const workerd::Progress& progress = core_->progress();
  beat.phase = progress.phase;
  beat.in_phase = now() - progress.since;
  beat.steps = progress.steps;
  beat.examples = progress.examples;
  return beat;
}

void WorkerNode::on_order(const wire::ControlMessage& message) {
  if (const auto* asked = std::get_if<DescribeJob>(&message)) {
    drop_job();
    held_ = asked->job;
    after(world_.between(milliseconds(1), milliseconds(30)), [this, wanted = *asked, run = runs_] {
      if (run == runs_) read_data(wanted, prepared_ == wanted.job ? 0 : jobs_.slow_pieces);
    });
  } else if (const auto* order = std::get_if<OpenJob>(&message)) {
    if (jobs_.lacks(self().task, Lack::kOpening) || jobs_.lacks(self().task, Lack::kLife)) return fail_to_open(*order);
    if (!is_ours(order->job, order->generation)) open(*order);
  } else if (const auto* close = std::get_if<CloseJob>(&message)) {
    if (close->job != held_) return tell_chief(JobClosed{close->job});
    const bool awaits_parameters = computing_ && !is_begun_;
    if (busy_ && !awaits_parameters) return closing_.emplace(*close), void();
    close_job(*close);
  } else if (const auto* marks = std::get_if<MarkChannels>(&message)) {
    if (is_ours(marks->job, marks->generation)) feed(workerd::MarkRequested{marks->attempt});
  } else if (const auto* pause = std::get_if<PauseJob>(&message)) {
    if (is_ours(pause->job, pause->generation)) feed(workerd::Paused{pause->paused});
  } else if (const auto* begin = std::get_if<StartJob>(&message)) {
    if (is_ours(begin->job, begin->generation)) feed(workerd::Start{});
  } else if (const auto* grant = std::get_if<LeaseGrant>(&message)) {
    if (is_ours(grant->job, grant->generation)) feed(workerd::LeaseGranted{*grant});
  } else if (const auto* stop = std::get_if<StopJob>(&message)) {
    if (is_ours(stop->job, stop->generation)) feed(workerd::StopRequested{});
  } else if (const auto* evaluator = std::get_if<SetEvaluator>(&message)) {
    if (is_ours(evaluator->job, evaluator->generation)) feed(workerd::BecomesEvaluator{});
  } else if (const auto* evaluate = std::get_if<Evaluate>(&message)) {
    if (is_ours(evaluate->job, evaluate->generation)) feed(workerd::EvaluateRequested{});
  }
}

void WorkerNode::fail_to_open(const OpenJob& order) {
  drop_job();
  held_ = order.job;
  held_generation_ = Generation();  // as Worker::tell() does
  world_.count(Happening::kWorkerLacks);
  if (jobs_.lacks(self().task, Lack::kLife)) return jobs_.die(self().task);
  tell("can't open the job");
  const bool is_memory = world_.chance(500);
  tell_chief(TaskFailed{order.job, order.generation, is_memory ? ErrorCode::kFailed : ErrorCode::kConfig,
                        "it lacks something"});
}

void WorkerNode::read_data(const DescribeJob& order, std::uint64_t pieces_left) {
  if (pieces_left == 0 && jobs_.lacks(self().task, Lack::kDescription)) {
    tell("can't describe the job");
    world_.count(Happening::kWorkerLacks);
    return tell_chief(TaskFailed{order.job, Generation(), ErrorCode::kNoInput, "it lacks something"});
  }
  if (pieces_left == 0) {
    prepared_ = order.job;
    return describe(order);
  }
  after(jobs_.slow_piece, [this, order, pieces_left, run = runs_] {
    if (run != runs_) return;
    ++work_;
    if (pieces_left == 1 && static_cast<std::int64_t>(jobs_.slow_pieces) * jobs_.slow_piece > timeouts().setup)
      world_.count(Happening::kLongData);
    read_data(order, pieces_left - 1);
  });
}

// Tries to connect to each ps, and reports those that can't be reached. A ps counts as reached if a connection opens,
// whatever it answers.
void WorkerNode::describe(const DescribeJob& order) {
  auto left = std::make_shared<std::size_t>(order.reach.size());
  auto described = std::make_shared<JobDescribed>(JobDescribed{order.job, jobs_.model, jobs_.records, 77, 10, {}});
  if (*left == 0) return tell_chief(*described);
  Hello hello;
  hello.who = ClientHello{to_string(self().task)};
  for (const Owner& ps : order.reach)
    dial(ps.address, hello, timeouts().dial,
         [this, left, described, ps = ps.ps, run = runs_](std::optional<ConnectionId> connection, bool) {
           if (connection)
             close(*connection);
           else
             described->unreachable.push_back(ps);
           if (--*left == 0 && run == runs_) tell_chief(*described);
         });
}

void WorkerNode::close_job(const CloseJob& close) {
  const bool is_removed = close.removed;
  const JobId job = close.job;
  drop_job();
  prepared_ = JobId();
  tell_chief(JobClosed{job});
  if (!is_removed) return;
  rejoin();
}

void WorkerNode::open(const OpenJob& order) {
  drop_job();
  held_ = order.job;
  held_generation_ = order.generation;
  order_ = order;
  config_ = *order.config;
  workerd::JobFacts facts;
  facts.self = self();
  facts.config = config_;
  facts.layout = order.layout;
  facts.roster = order.roster;
  facts.train_records = order.train_records;
  facts.credits = jobs_.cluster.transport.credits;
  facts.evaluates = order.evaluates;
  facts.clock = order.clock;
  facts.batches = order.batches;
  if (config_.data.sharding == Sharding::kNone && config_.train.mode != Mode::kSync)
    laws_.goes_on({order.job, order.generation}, self().task, order.batches);
  blocks_ = config_.train.pipeline == 0 && world_.chance(500);
  facts.begins_early = !blocks_ && world_.chance(500);
  core_ = std::make_unique<workerd::WorkerCore>(std::move(facts), now());
  missing_.clear();
  const std::vector<float> nothing(word_count(order.layout.model), 0.0F);
  parameters_.assign(core_->buffers(), nothing);
  gradients_.assign(core_->buffers(), nothing);
  lent_.assign(core_->buffers(), {});
  records_.assign(core_->buffers(), 0.0);
  versions_.assign(core_->buffers(), {});
  links_.assign(order.layout.shards, Link{});
  for (const Owner& owner : order.owners) ps_[owner.ps.task].heard = now();
  for (std::uint32_t s = 0; s < order.layout.shards; ++s) {
    links_[s].patience = now() + timeouts().silent_ps;
    dial_shard(ShardId(s));
  }
}

void WorkerNode::drop_job() {
  ++runs_;
  if (core_) laws_.leaves(run_id(), self());
  for (const auto& [connection, shard] : shards_) close(connection);
  shards_.clear();
  links_.clear();
  ps_.clear();
  core_.reset();
  deferred_.clear();
  batches_.clear();
  ready_.clear();
  busy_ = false;
  computing_.reset();
  closing_.reset();
  held_ = JobId();
  held_generation_ = Generation();
}

void WorkerNode::feed(const workerd::Event& event) {
  in_turn([this, event] {
    if (core_) feed_now(event);
  });
}

void WorkerNode::in_turn(std::function<void()> work) {
  if (!core_) return;
  if ((busy_ && (blocks_ || closing_)) || !deferred_.empty())
    deferred_.push_back(std::move(work));
  else
    work();
}

void WorkerNode::feed_now(const workerd::Event& event) {
  workerd::Actions actions;
  core_->step(now(), event, actions);
  for (const workerd::Action& action : actions) std::visit([this](const auto& a) { carry_out(a); }, action);
  supply();
}

void WorkerNode::supply() {
  while (core_) {
    const auto wanted = core_->batch_wanted();
    if (!wanted || ready_.count(*wanted) == 0) return;
    ready_.erase(*wanted);
    workerd::Actions actions;
    core_->step(now(), workerd::BatchReady{*wanted}, actions);
    for (const workerd::Action& action : actions) std::visit([this](const auto& a) { carry_out(a); }, action);
  }
}

void WorkerNode::tick() {
  feed(workerd::Tick{});
  after(std::chrono::seconds(1), [this] { tick(); });
}

void WorkerNode::dial_shard(ShardId shard) {
  Link& link = links_[shard.value];
  Hello hello;
  hello.who = ChannelHello{order_.job, order_.generation, shard, self(), order_.token};
  const std::uint64_t attempt = ++link.attempt;
  dial(order_.owners[shard.value].address, hello, timeouts().dial,
       [this, shard, attempt, run = runs_](std::optional<ConnectionId> connection, bool) {
         if (run != runs_ || links_[shard.value].attempt != attempt) {
           if (connection) close(*connection);
           return;
         }
         if (!connection) return lost_shard(shard, false);
         links_[shard.value].connection = *connection;
         shards_[*connection] = shard;
         after(timeouts().dial, [this, shard, attempt, run] {
           if (run == runs_ && links_[shard.value].attempt == attempt && !links_[shard.value].open)
             lost_shard(shard, false);
         });
       });
}

void WorkerNode::reached(ShardId shard) {
  Ps& ps = ps_of(shard);
  ps.heard = now();
  if (std::exchange(ps.has_complained, false)) feed(workerd::PsReached{shard});
}

// Finds shards that have been silent for too long. The real code in ps_exchange.cc does the same, by the frames that
// arrive on its channels.
void WorkerNode::watch() {
  const Duration pause = timeouts().silent / 2;
  const bool was_away = now() - watched_ > 2 * pause;
  watched_ = now();
  for (std::uint32_t s = 0; s < links_.size(); ++s) {
    Link& link = links_[s];
    if (!link.open) continue;
    if (was_away || hears(link.connection))
      link.heard = ps_of(ShardId(s)).heard = now();
    else if (now() - link.heard > timeouts().silent)
      lost_shard(ShardId(s), false);
  }
  after(pause, [this] { watch(); });
}

void WorkerNode::lost_shard(ShardId shard, bool answered) {
  Link& link = links_[shard.value];
  const bool was_open = std::exchange(link.open, false);
  ++link.attempt;
  if (link.connection != 0) {
    shards_.erase(link.connection);
    close(std::exchange(link.connection, 0));
  }
  if (answered && !was_open) reached(shard);
  if (answered && link.patience && now() >= *link.patience)
    return feed(workerd::Broken{Error{ErrorCode::kUnavailable, "can't open a channel"}});
  link.pause = std::clamp(link.pause * 2, timeouts().reconnect_first, timeouts().reconnect_longest);
  after(link.pause, [this, shard, attempt = link.attempt, run = runs_] {
    if (run == runs_ && links_[shard.value].attempt == attempt) dial_shard(shard);
  });
  const Duration lasts = now() - ps_of(shard).heard;
  if (!was_open && (answered || lasts <= timeouts().silent)) return;
  ps_of(shard).has_complained = true;
  if (was_open) return feed(workerd::ChannelLost{shard, "lost", lasts});
  feed(workerd::PsUnreachable{shard, "no answer", lasts});
}

void WorkerNode::on_message(ConnectionId connection, const Payload& payload) {
  if (is_link(connection)) return on_link_message(payload);
  const auto found = shards_.find(connection);
  if (found == shards_.end() || !core_) return;
  const ShardId shard = found->second;
  if (const auto* answer = std::get_if<wire::HelloAnswer>(&payload)) {
    Link& link = links_[shard.value];
    if (const auto* refused = std::get_if<Refused>(answer)) {
      const bool is_other = refused->by.incarnation.value != 0 && refused->by != order_.owners[shard.value].ps;
      if (refused->code == ErrorCode::kTemporary) return lost_shard(shard, !is_other);
      ++link.attempt;
      shards_.erase(connection);
      close(std::exchange(link.connection, 0));
      return feed(workerd::Broken{Error{refused->code, refused->reason}});
    }
    link.open = true;
    link.patience.reset();
    link.pause = Duration();
    link.heard = now();
    reached(shard);
    feed(workerd::ChannelOpened{shard, std::get<Welcome>(*answer).last_sequence});
  } else if (const auto* frame = std::get_if<ParametersFrame>(&payload)) {
    // While the worker computes on its loop's thread, it doesn't read frames, so they wait in the socket.
    in_turn([this, shard, connection, frame = *frame] {
      if (!core_ || shards_.count(connection) == 0) return;
      const Bucket& bucket = order_.layout.buckets[frame.parameters.bucket.value];
      const bool is_expected = missing_.erase(frame.parameters.bucket) > 0;
      if (computing_ && computing_->parameters == core_->landing() && !is_expected &&
          bucket.flat_begin + bucket.words > final_)
        laws_.violated("I10: " + to_string(self().task) + " computes from parameters that change meanwhile");
      std::copy(frame.payload.begin(), frame.payload.end(),
                parameters_[core_->landing()].begin() + static_cast<std::ptrdiff_t>(bucket.flat_begin));
      versions_[core_->landing()][frame.parameters.bucket] = frame.parameters.version;
      feed_now(workerd::ParametersArrived{shard, frame.parameters});
      if (core_) begin_computation();
    });
  } else if (const auto* taken = std::get_if<MarkTaken>(&payload)) {
    feed(workerd::MarkTakenArrived{shard, *taken});
  } else if (const auto* acknowledge = std::get_if<Acknowledge>(&payload)) {
    feed(workerd::AcknowledgeArrived{shard, *acknowledge});
  }
}

void WorkerNode::on_closed(ConnectionId connection) {
  if (is_link(connection)) return on_link_closed();
  const auto found = shards_.find(connection);
  if (found != shards_.end()) lost_shard(found->second, false);
}

void WorkerNode::carry_out(const workerd::RequestLease& action) {
  tell_chief(LeaseRequest{order_.job, order_.generation, action.records_per_second});
}

void WorkerNode::carry_out(const workerd::RequestBatch& action) {
  batches_[action.order.ticket] = action.order;
  after(world_.between(microseconds(10), milliseconds(1)), [this, ticket = action.order.ticket, run = runs_] {
    if (run != runs_) return;
    ready_.insert(ticket);
    if (!busy_ || core_->buffers() > 1) supply();
  });
}

void WorkerNode::carry_out(const workerd::SendPull& action) {
  const Link& link = links_[action.shard.value];
  if (link.open) send(link.connection, action.pull);
}

void WorkerNode::carry_out(const workerd::SendMark& action) {
  const Link& link = links_[action.shard.value];
  tell("marks shard " + std::to_string(action.shard.value) + " for attempt " + std::to_string(action.mark.attempt));
  if (link.open) send(link.connection, action.mark);
}

void WorkerNode::carry_out(const workerd::SendPush& action) {
  const Link& link = links_[action.shard.value];
  if (!link.open) return;
  if (action.push.final) laws_.leaves(run_id(), self());
  PushFrame frame{action.sequence, action.push, {}, nullptr, records_[action.gradients]};
  if (action.payload) {
    const Bucket& bucket = order_.layout.buckets[action.push.bucket.value];
    const auto begin = gradients_[action.gradients].begin() + static_cast<std::ptrdiff_t>(bucket.flat_begin);
    frame.payload.assign(begin, begin + static_cast<std::ptrdiff_t>(bucket.words));
    // Half of the processes share memory with the ps.
    if (self().incarnation.value % 2 == 0) {
      frame.lent = std::make_shared<std::vector<float>>(frame.payload);
      lent_[action.gradients].push_back(frame.lent);
      world_.count(Happening::kLent);
    }
  }
  send(link.connection, std::move(frame));
}

void WorkerNode::carry_out(const workerd::LoadValues& action) {
  for_each_variable(gradients_[action.gradients], []<typename T>(std::uint32_t v, std::uint64_t, std::span<T> values) {
    for (std::size_t e = 0; e < values.size(); ++e) values[e] = brought_value<T>(v, e);
  });
  after(world_.between(microseconds(10), milliseconds(20)), [this, run = runs_] {
    if (run == runs_) feed(workerd::ValuesLoaded{});
  });
}

void WorkerNode::carry_out(const workerd::Compute& action) {
  busy_ = true;
  computing_ = action;
  is_begun_ = false;
  missing_ = {action.awaited.begin(), action.awaited.end()};
  final_ = 0;
  begin_computation();
}

// The parameters of the shard come again. The node reads parameters only when all are there, so nothing was computed.
void WorkerNode::carry_out(const workerd::Recompute& action) {
  world_.count(Happening::kRecomputed);
  for (const BucketId bucket : buckets_of(order_.layout, action.shard)) missing_.insert(bucket);
}

void WorkerNode::carry_out(const workerd::DropCompute&) {
  world_.count(Happening::kComputeDropped);
  busy_ = false;
  computing_.reset();
}

void WorkerNode::begin_computation() {
  if (!computing_ || is_begun_) return;
  if (!missing_.empty()) return world_.count(Happening::kComputeWaited);
  is_begun_ = true;
  const workerd::Compute action = *computing_;
  // The engine overwrites what the worker has lent. So no shard may read it any more.
  for (const auto& lent : lent_[action.gradients]) scribble(*lent);
  lent_[action.gradients].clear();
  world_.whisper("  " + to_string(self_.task) + " computes step " + std::to_string(action.step));
  laws_.computes(run_id(), config_, self(), action.step);
  if (config_.train.mode == Mode::kSync)
    laws_.computed_from(to_string(self().task), versions_[action.parameters], order_.layout.buckets.size());
  const Duration whole = world_.between(microseconds(100), slowest_step_);
  const Duration half = blocks_ ? whole : world_.between(microseconds(50), whole);
  after(half, [this, action, rest = whole - half, run = runs_] {
    if (run != runs_) return;
    const float loss = compute_gradients(action);
    if (action.early) {
      final_ = gradients_[action.gradients].size() / 2;
      feed_now(workerd::RangesReady{final_});
    }
    if (blocks_) return end_computation(loss);
    after(rest, [this, loss, run] {
      if (run == runs_) end_computation(loss);
    });
  });
}

// Calls body(variable, the index of its first word, its values in `flat`).
template <typename Body>
void WorkerNode::for_each_variable(std::vector<float>& flat, const Body& body) {
  const Layout& layout = order_.layout;
  for (std::uint32_t v = 0; v < layout.model.variables.size(); ++v) {
    const VariableSpec& variable = layout.model.variables[v];
    const std::uint64_t begin = layout.variable_begins[v];
    with_type(variable.dtype, [&]<typename T>(T) {
      body(v, begin, values_in<T>(std::span(flat).subspan(begin, word_count(variable))));
    });
  }
}

// Returns the loss.
float WorkerNode::compute_gradients(const workerd::Compute& action) {
  float sum = 0.0F;
  const workerd::BatchOrder batch = batches_.at(action.batch);
  batches_.erase(action.batch);
  for (const Interval& interval : batch.positions)
    for (std::uint64_t record = interval.begin; record < interval.end; ++record) sum += value_of(record);
  std::vector<float>& gradient = gradients_[action.gradients];
  for_each_variable(gradient, [sum]<typename T>(std::uint32_t, std::uint64_t begin, std::span<T> values) {
    constexpr std::uint64_t kWords = sizeof(T) / sizeof(float);
    for (std::size_t e = 0; e < values.size(); ++e)
      values[e] = coefficient<T>(begin + e * kWords) * static_cast<T>(sum);
  });
  records_[action.gradients] = static_cast<double>(sum);
  if (action.clip_norm > 0.0) workerd::clip_to_norm(order_.layout, gradient, action.clip_norm);
  return spoil(gradient, action.step) ? std::numeric_limits<float>::quiet_NaN() : sum;
}

void WorkerNode::end_computation(float loss) {
  busy_ = false;
  computing_.reset();
  if (core_) feed_now(workerd::Computed{loss});
  if (closing_) return close_job(CloseJob(*closing_));
  while (core_ && !deferred_.empty() && (!busy_ || !blocks_)) {
    const std::function<void()> work = std::move(deferred_.front());
    deferred_.pop_front();
    work();
  }
}

// In some steps, makes the loss or one element of the gradient NaN, or the element so large that updates with it
// overflow. Returns true if the loss must be NaN.
bool WorkerNode::spoil(std::vector<float>& gradient, std::uint64_t step) {
  const auto often = jobs_.nonfinite.find(config_.job.name);
  if (often == jobs_.nonfinite.end() || !world_.chance(often->second)) return false;
  const bool is_loss = world_.chance(500);
  // Not drawn, so that the runs of all seeds stay as they are.
  const bool is_huge = !is_loss && step % 3 == 0 && config_.train.clip.kind != ClipKind::kGlobalNorm;
  world_.count(is_loss   ? Happening::kNonfiniteLoss
               : is_huge ? Happening::kHugeGradient
                         : Happening::kNonfiniteGradient);
  if (is_loss) return true;
  // The doubles come first. Each of them has one word more than a float.
  const ModelSpec& model = order_.layout.model;
  const std::uint64_t doubles = word_count(model) - element_count(model);
  const std::uint64_t element = world_.random().below(element_count(model));
  if (element < doubles)
    as_doubles(std::span(gradient).first(2 * doubles))[element] =
        is_huge ? std::numeric_limits<double>::max() : std::numeric_limits<double>::quiet_NaN();
  else
    gradient[doubles + element] = is_huge ? std::numeric_limits<float>::max() : std::numeric_limits<float>::quiet_NaN();
  return false;
}

void WorkerNode::carry_out(const workerd::RunEvaluation& action) {
  if (core_->progress().phase == Phase::kEvaluate && order_.layout.shards > 0)
    laws_.final_parameters(run_id(), config_, order_.layout, parameters_[action.parameters]);
  after(world_.between(milliseconds(1), milliseconds(20)), [this, run = runs_] {
    if (run == runs_) feed(workerd::EvaluationDone{1.0, 10, {{"accuracy", 0.5}}, 1});
  });
}

void WorkerNode::carry_out(const workerd::ReportEvaluated& action) {
  Evaluated evaluated = action.evaluated;
  evaluated.job = order_.job;
  evaluated.generation = order_.generation;
  // After the last step these are also the parameters of a checkpoint of this step.
  const std::string name = checkpoint::checkpoint_name(order_.generation, evaluated.step);
  laws_.evaluated(order_.job, evaluated.final ? "/c/" + config_.job.name + "/" + name : "", evaluated.step);
  tell_chief(evaluated);
}

void WorkerNode::carry_out(const workerd::ReportFinished& action) {
  laws_.leaves(run_id(), self());
  tell_chief(WorkerFinished{order_.job, order_.generation, action.steps});
}

void WorkerNode::carry_out(const workerd::Accuse& action) {
  tell_chief(Accusation{order_.job, order_.generation, order_.owners.at(action.shard.value).ps.task, action.reason,
                        action.lasts, action.withdrawn});
}

void WorkerNode::carry_out(const workerd::Fail& action) {
  tell("fails the job: " + action.error.message);
  tell_chief(TaskFailed{order_.job, order_.generation, action.error.code, action.error.message});
}

}  // namespace disttrain::sim
