#include "shards/shard_service.h"

#include <algorithm>
#include <asio/post.hpp>

#include "common/daemon/clock.h"
#include "common/format_duration.h"
#include "shards/shard_origin.h"

namespace disttrain::shards {

namespace {

ShardOptions options_of(const ShardJob& job, ShardId shard) {
  ShardOptions options;
  options.waits_for_lost = job.config.job.on_worker_loss == OnWorkerLoss::kWait;
  options.shard = shard;
  options.train = job.config.train;
  options.roster = job.roster;
  options.credits = job.credits;
  options.warmup_steps = job.warmup_steps;
  options.train_records = job.train_records;
  options.places = job.places;
  options.tells_visits = !job.visited_folder.empty();
  return options;
}

ShardOptions options_of(const ShardJob& job, ShardId shard, const ShardOrigin& origin) {
  ShardOptions options = options_of(job, shard);
  options.restored = origin.report();
  options.own_orders = origin.own_orders(job);
  options.awaits_values = origin.awaits_values(job);
  return options;
}

StoreOptions store_options(const ShardJob& job, const ShardOrigin& origin) {
  StoreOptions options;
  options.train = job.config.train;
  options.average = job.config.evaluate.average;
  options.seed = job.config.job.seed;
  options.places = std::max(job.places, static_cast<std::uint32_t>(job.roster.members.size()));
  options.has_copy = !job.checkpoint_folder.empty();
  options.is_empty = origin.fills() || origin.awaits_values(job);
  return options;
}

// Lets the loop destroy `dead` later, because we may be inside a call from this object.
template <typename T>
void bury(asio::io_context& loop, std::unique_ptr<T> dead) {
  asio::post(loop, [grave = std::move(dead)] {});
}

}  // namespace

Result<std::unique_ptr<ShardService>> ShardService::make(const ShardPlace& place, ShardJobPtr job, ShardId shard,
                                                         ShardSetup& setup) {
  const checkpoint::IsCancelled is_cancelled = [&place, &setup] {
    place.turns.fetch_add(1, std::memory_order_relaxed);
    return setup.note_piece();
  };
  const auto abandoned = [] {
    return fail(ErrorCode::kTemporary, "the shard was abandoned, because a newer order came or the job ended");
  };
  if (setup.is_abandoned()) return abandoned();
  Result<ShardOrigin> origin = ShardOrigin::open(place.files, *job);
  if (!origin) return tl::unexpected(origin.error());
  std::unique_ptr<ShardService> service(new ShardService(place, job, shard, *origin, is_cancelled));
  if (setup.is_abandoned()) return abandoned();
  if (Status filled = origin->fill(place.files, *job, shard, service->shard_.store(), is_cancelled); !filled)
    return tl::unexpected(filled.error());
  if (setup.is_abandoned()) return abandoned();
  if (shard.value == 0 && !job->visited_folder.empty()) {
    Result<VisitedLog> log =
        VisitedLog::begin(job->visited_folder, job->job, job->generation, origin->report().global_step);
    if (!log) return tl::unexpected(log.error());
    service->visited_.emplace(std::move(*log));
  }
  service->init_lock_ = origin->take_init_lock();
  service->connect();
  return service;
}

ShardService::ShardService(const ShardPlace& place, ShardJobPtr job, ShardId shard, const ShardOrigin& origin,
                           const checkpoint::IsCancelled& is_cancelled)
    : place_(place),
      job_(std::move(job)),
      id_(shard),
      late_before_(origin.report().late),
      shard_(job_->layout, options_of(*job_, shard, origin), store_options(*job_, origin), is_cancelled),
      scratch_(std::make_unique<wire::ScratchBuffer>()),
      trace_(shard, job_->config.train),
      life_(place_.loop),
      verdict_(place_.loop) {}

void ShardService::connect() {
  look_after_links();
  tell(ShardMade{id_});
  if (id_.value == 0)
    tell(ShardReady{id_});
  else
    peers_[ShardId(0)] =
        std::make_unique<PeerLink>(static_cast<PeerOwner&>(*this), job_, id_, place_.loop, place_.transport);
}

ShardService::~ShardService() {
  *alive_ = false;
  for (const auto& channel : channels_) channel->close();
  tell_trace(trace_.end());
}

std::string ShardService::name() const {
  return "shard " + std::to_string(id_.value) + " of job " + std::to_string(job_->job.value);
}

void ShardService::handle(const Event& event) {
  place_.turns.fetch_add(1, std::memory_order_relaxed);
  const Instant begin = trace_.begin();
  shard_.handle(daemon::now(), event, *this);
  if (begin != Instant()) {
    if (std::holds_alternative<StagedArrived>(event)) trace_.add(begin, {.kind = TraceKind::kStaged});
    if (const auto* commit = std::get_if<CommitArrived>(&event))
      trace_.add(begin, {.step = commit->commit.step.value, .kind = TraceKind::kCommit});
  }
  follow_trace();
}

void ShardService::follow_trace() {
  if (!trace_.has_profile()) return;
  tell_trace(trace_.reach(shard_.core().version(), shard_.core().is_pacer()));
}

void ShardService::tell_trace(std::optional<TraceTake> take) {
  if (take) tell(ShardTraced{std::make_shared<TraceTake>(std::move(*take))});
}

void ShardService::update_ended() {
  figures_.apply.observe(to_seconds(daemon::now() - update_began_));
  if (trace_.is_on())
    trace_.update_ended(update_began_, job_->config.train.mode == Mode::kSync, shard_.core().version());
}

void ShardService::before_update(BucketId bucket) {
  trace_.enter_bucket(bucket);
  for (const auto& channel : channels_) channel->settle(bucket);
}

// A step over many buckets and workers may take longer than the heartbeat timeout, and report() waits for its end.
// Bytes of the peers lie unread meanwhile, so none of them counts as silent.
void ShardService::goes_on() {
  place_.turns.fetch_add(1, std::memory_order_relaxed);
  const Instant now = daemon::now();
  if (now - showed_life_ < job_->timeouts.heartbeat) return;
  showed_life_ = now;
  for (const auto& channel : channels_) channel->keep_alive();
  for (const auto& [shard, link] : peers_) link->show_life();
}

// --- Channels

void ShardService::adopt_channel(transport::Arrival& arrival, Member worker) {
  const ChannelId id(next_channel_++);
  std::unique_ptr<transport::Connection> connection = arrival.adopt(place_.loop);
  connection->share(shard_.arena());
  channels_.push_back(
      std::make_unique<WorkerChannel>(static_cast<ChannelOwner&>(*this), job_, id_, id, worker, std::move(connection)));
  channels_.back()->start();
  handle(ChannelOpened{id, worker});
}

Result<std::span<float>> ShardService::landing(ChannelId channel, Sequence sequence, const Push& push,
                                               std::uint64_t payload_bytes) {
  Result<std::span<float>> landing = shard_.landing(channel, sequence, push, payload_bytes);
  if (!landing) figures_.push.note(metrics::RpcCode::kError, Duration::zero());
  return landing;
}

Result<std::span<const float>> ShardService::lend(ChannelId channel, Sequence sequence, const Push& push,
                                                  std::span<const float> payload, std::shared_ptr<const void> keeps) {
  Result<std::span<const float>> lent = shard_.lend(channel, sequence, push, payload, std::move(keeps));
  if (!lent) figures_.push.note(metrics::RpcCode::kError, Duration::zero());
  return lent;
}

std::span<const float> ShardService::values(const Parameters& answer) {
  const std::span<const float> values = shard_.values(answer);
  figures_.pull_bytes += values.size_bytes();
  return values;
}

// Runs `work` and counts it as one request with its duration.
template <typename Work>
void ShardService::timed(metrics::RpcFigures& figures, Work work) {
  place_.turns.fetch_add(1, std::memory_order_relaxed);
  const Instant now = daemon::now();
  work(now);
  figures.note(metrics::RpcCode::kOk, daemon::now() - now);
}

void ShardService::on_push(PushArrived& event, std::span<const float> payload) {
  figures_.push_bytes += event.payload_bytes;
  const Instant begin = trace_.begin();
  if (begin != Instant())
    if (const WorkerChannel* channel = find(event.channel))
      trace_.enter_frame(channel->member(), event.sequence, event.push, event.payload_bytes);
  timed(figures_.push, [&](Instant now) { shard_.handle_push(now, event, payload, *this); });
  if (begin != Instant()) trace_.leave_frame(begin);
  follow_trace();
}

void ShardService::on_pull(const PullArrived& event) {
  timed(figures_.pull, [&](Instant now) { shard_.handle(now, event, *this); });
  follow_trace();
}

void ShardService::on_channel_lost(ChannelId channel, const std::string& why) {
  if (const WorkerChannel* lost = find(channel))
    place_.log.debug(name() + ": the channel of " + to_string(lost->worker()) + " ended: " + why);
  remove(channel);
  handle(ChannelClosed{channel});
}

std::vector<std::unique_ptr<WorkerChannel>>::iterator ShardService::position(ChannelId channel) {
  const auto found = std::lower_bound(channels_.begin(), channels_.end(), channel,
                                      [](const auto& open, ChannelId wanted) { return open->id() < wanted; });
  return found != channels_.end() && (*found)->id() == channel ? found : channels_.end();
}

WorkerChannel* ShardService::find(ChannelId channel) {
  const auto found = position(channel);
  return found == channels_.end() ? nullptr : found->get();
}

void ShardService::remove(ChannelId channel) {
  const auto found = position(channel);
  if (found == channels_.end()) return;
  bury(place_.loop, std::move(*found));
  channels_.erase(found);
}

void ShardService::act(const Action& action) {
  std::visit([this](const auto& a) { act_on(a); }, action);
}

void ShardService::act_on(const Admit& action) {
  Welcome welcome;
  welcome.last_sequence = action.last_sequence;
  if (WorkerChannel* channel = find(action.channel)) channel->welcome(welcome);
}

void ShardService::act_on(const Refuse& action) {
  WorkerChannel* channel = find(action.channel);
  if (channel == nullptr) return;
  channel->refuse(Refused{action.code, name() + ": " + action.reason});
  channel->close();
  remove(action.channel);
}

void ShardService::act_on(const CloseChannel& action) {
  WorkerChannel* channel = find(action.channel);
  if (channel == nullptr) return;
  place_.log.warn(name() + " closes the channel of " + to_string(channel->worker()) + ": " + action.reason);
  channel->close();
  remove(action.channel);
}

void ShardService::act_on(const Reply& action) {
  if (WorkerChannel* channel = find(action.channel)) channel->answer(action.message);
}

void ShardService::act_on(const SendAcknowledge& action) {
  if (WorkerChannel* channel = find(action.channel)) channel->acknowledge(action.message);
}

// --- The pacer and the others

void ShardService::adopt_peer(transport::Arrival& arrival, ShardId from) {
  // The old link broke, and the peer noticed this before this shard did. Messages on the old link may be lost.
  if (const auto before = peers_.find(from); before != peers_.end()) {
    if (before->second->has_carried()) on_peer_lost(from, true, Duration::zero(), "it opened another link");
    bury_peer(from);
  }
  peers_[from] = std::make_unique<PeerLink>(static_cast<PeerOwner&>(*this), job_, from, arrival.adopt(place_.loop));
  handle(PeerOpened{from});
}

void ShardService::on_peer_open(ShardId peer) {
  tell(ShardReady{id_});
  handle(PeerOpened{peer});
}

void ShardService::on_peer_frame(ShardId peer, const wire::FrameHeader& header, transport::Bytes control) {
  const auto take = [this, peer](auto message, auto to_event) {
    if (!message) {
      place_.log.warn(name() + ": shard " + std::to_string(peer.value) +
                      " sent a message that can't be read: " + message.error().message);
      return;
    }
    handle(to_event(std::move(*message)));
  };
  switch (header.type) {
    case wire::FrameType::kStaged:
      return take(wire::decode_staged(control), [](Staged m) { return StagedArrived{std::move(m)}; });
    case wire::FrameType::kCommit:
      return take(wire::decode_commit(control), [](Commit m) { return CommitArrived{std::move(m)}; });
    case wire::FrameType::kCut:
      return take(wire::decode_cut(control), [](Cut m) { return CutArrived{m}; });
    case wire::FrameType::kPacerNews:
      return take(wire::decode_pacer_news(control), [](PacerNews m) { return NewsArrived{std::move(m)}; });
    default:
      return;  // a type that only a later version of psd sends
  }
}

void ShardService::bury_peer(ShardId peer) {
  auto link = peers_.extract(peer);
  if (!link.empty()) bury(place_.loop, std::move(link.mapped()));
}

void ShardService::on_peer_unreachable(ShardId peer, Duration lasts, const std::string& why) {
  const TaskId other = job_->owners.at(peer.value).ps.task;
  const std::string reason =
      name() + " can't reach shard " + std::to_string(peer.value) + " at " + to_string(other) + ": " + why;
  // The link dials again and again. It would log the same sentence each time.
  if (std::exchange(complaint_, reason) != reason) place_.log.warn(reason);
  tell(wire::ControlMessage(Accusation{job_->job, job_->generation, other, reason, lasts}));
}

void ShardService::on_peer_reached(ShardId peer) {
  complaint_.clear();
  const TaskId other = job_->owners.at(peer.value).ps.task;
  tell(wire::ControlMessage(Accusation{job_->job, job_->generation, other, "", Duration::zero(), true}));
}

// Accuses the peer's task, and then waits for the chief to act, because the chief can find out which of the two tasks
// is gone. If nothing has happened after Timeouts::silent, the shard fails the job, so that the job doesn't hang. If
// `carried` is false, nothing is lost, and the peer dials again.
void ShardService::on_peer_lost(ShardId peer, bool carried, Duration lasts, const std::string& why) {
  bury_peer(peer);
  const TaskId other = job_->owners.at(peer.value).ps.task;
  const std::string reason =
      name() + " lost shard " + std::to_string(peer.value) + " at " + to_string(other) + ": " + why;
  if (!carried)
    return place_.log.info(reason + "; no message was lost, and shard " + std::to_string(peer.value) + " dials again");
  place_.log.warn(reason);
  tell(wire::ControlMessage(Accusation{job_->job, job_->generation, other, reason, lasts}));
  verdict_.expires_after(job_->timeouts.silent);
  verdict_.async_wait([this, alive = alive_, reason](asio::error_code cancelled) {
    if (!cancelled && *alive) act_on(FailJob{ErrorCode::kUnavailable, reason});
  });
}

void ShardService::send_to_peers(wire::FrameType type, transport::Bytes control) {
  for (const auto& [shard, link] : peers_) link->send(type, control);
}

void ShardService::act_on(const SendStaged& action) {
  send_to_peers(wire::FrameType::kStaged, wire::encode(action.message, *scratch_));
}

void ShardService::act_on(const SendCommit& action) {
  send_to_peers(wire::FrameType::kCommit, wire::encode(action.message, *scratch_));
}

void ShardService::act_on(const SendNews& action) {
  send_to_peers(wire::FrameType::kPacerNews, wire::encode(action.message, *scratch_));
}

// --- The chief

void ShardService::set_roster(const Roster& roster, bool ends) {
  handle(RosterSet{roster, ends});
}

void ShardService::fence(const Member& worker) {
  handle(Fence{worker});
}

void ShardService::report(bool at_once) {
  say(at_once);
}

// The peers measure the silence of this shard by the job's time limits. So it doesn't wait for the heartbeats, whose
// pause may change while the job runs.
void ShardService::look_after_links() {
  life_.expires_after(job_->timeouts.heartbeat);
  life_.async_wait([this, alive = alive_](asio::error_code cancelled) {
    if (cancelled || !*alive) return;
    give_up_marks();
    keep_links();
    look_after_links();
  });
}

// Shows workers and peers that this shard lives and that their connections work. Also ends the links of silent peers.
void ShardService::keep_links() {
  for (const auto& channel : channels_) channel->keep_alive();
  const Instant now = showed_life_ = daemon::now();
  std::vector<PeerLink*> links;  // a copy, because keep_alive() may remove a link from peers_
  for (const auto& [shard, link] : peers_) links.push_back(link.get());
  for (PeerLink* link : links) link->keep_alive(now);
}

void ShardService::say(bool at_once) {
  ShardSays says{id_, shard_.core().version(), nullptr, at_once, figures_};
  says.figures.version = shard_.core().version();
  says.figures.parameters_bytes = shard_.store().parameters().size_bytes();
  says.figures.queue_depth = shard_.core().parked();
  for (const auto& channel : channels_) says.figures.queue_depth += channel->waiting();
  says.figures.lived = daemon::now() - made_;
  says.figures.busy = daemon::thread_time() - thread_time_before_;
  if (shard_.core().is_pacer()) {
    says.pacer = std::make_shared<const PacerReport>(shard_.core().report());
    says.figures.late = says.pacer->late - late_before_;
    says.figures.staleness = shard_.core().gradient_staleness();
  }
  tell(says);
}

void ShardService::give_up_marks() {
  handle(MarksAwaited{longest_park()});
}

// The longest time for which workers that have sent their marks wait for the marks of other workers.
Duration ShardService::longest_park() const {
  return job_->config.job.stall_timeout / 4;
}

void ShardService::act_on(const MarksGivenUp& action) {
  const std::string why = action.lacks_values
                              ? " has no values yet: a worker gives them at the job's start"
                              : " lacks the marks of some workers after " + format_duration(longest_park()) +
                                    " (a quarter of job.stall_timeout): a worker's step takes longer than that; raise "
                                    "job.stall_timeout";
  tell(wire::ControlMessage(
      CheckpointFailed{job_->job, job_->generation, action.attempt, ErrorCode::kTemporary, name() + why}));
}

void ShardService::act_on(const Fenced& action) {
  tell(wire::ControlMessage(
      WorkerFenced{job_->job, job_->generation, id_, action.worker, action.last_sequence, action.last_clock}));
}

void ShardService::act_on(const RosterTaken& action) {
  tell(wire::ControlMessage(
      RosterApplied{job_->job, job_->generation, action.version, action.step, action.pacer, action.batches}));
}

void ShardService::act_on(const ReportNow&) {
  say(true);
}

void ShardService::act_on(const StepCounted& action) {
  if (Status written = visited_->add(action); !written) act_on(FailJob{written.error().code, written.error().message});
}

void ShardService::act_on(const FailJob& action) {
  place_.log.error(name() + ": " + action.reason);
  tell(wire::ControlMessage(TaskFailed{job_->job, job_->generation, action.code, action.reason}));
}

// --- Checkpoints

void ShardService::prepare_cut(std::uint64_t attempt, bool holds) {
  handle(AttemptPrepared{attempt, holds});
  tell(ShardPrepared{attempt, id_});
}

void ShardService::abandon_cut(std::uint64_t attempt) {
  handle(AttemptAbandoned{attempt});
}

void ShardService::order_cut(std::uint64_t attempt, Step at) {
  handle(CutOrdered{attempt, at});
}

void ShardService::on_mark(const MarkArrived& event) {
  timed(figures_.mark, [&](Instant now) { shard_.handle(now, event, *this); });
}

void ShardService::act_on(const SendMarkTaken& action) {
  if (WorkerChannel* channel = find(action.channel)) channel->let_go(action.message);
}

void ShardService::act_on(const SendCut& action) {
  send_to_peers(wire::FrameType::kCut, wire::encode(action.message, *scratch_));
}

void ShardService::act_on(const CopyForCheckpoint& action) {
  auto news = std::make_shared<ShardCopied>(
      ShardCopied{action.attempt, id_, action.entry, action.pacer, nullptr, Duration::zero(), action.parked});
  if (!shard_.store().begin_copy()) return tell(*news);
  copy_on(std::move(news));
}

// Copies one bucket and posts itself for the next one, so that the loop can do other work in between. The store makes
// sure that the whole copy is of one moment.
void ShardService::copy_on(std::shared_ptr<ShardCopied> news) {
  const Instant begin = daemon::now();
  news->copy = shard_.store().copy_bucket();
  news->cut = std::max(news->cut, daemon::now() - begin);
  if (trace_.is_on()) trace_.add(begin, {.step = shard_.core().version().value, .kind = TraceKind::kCut});
  place_.turns.fetch_add(1, std::memory_order_relaxed);
  if (news->copy != nullptr) return tell(*news);
  asio::post(place_.loop, [this, alive = alive_, news = std::move(news)]() mutable {
    if (*alive) copy_on(std::move(news));
  });
}

}  // namespace disttrain::shards
