#include "tests/sim/ps_node.h"

#include <algorithm>

#include "shards/shard_origin.h"

namespace disttrain::sim {

using std::chrono::milliseconds;

Hello PsNode::make_hello() {
  TaskHello task = task_hello();
  task.address = address_of(jobs_.cluster, self().task);
  task.shards = 2;
  if (job_) {
    task.job = job_->order.job;
    task.generation = job_->order.generation;
    task.token = job_->order.token;
  }
  Hello hello;
  hello.who = task;
  return hello;
}

Heartbeat PsNode::make_heartbeat() {
  Heartbeat beat;
  beat.turns = {++turns_};
  if (!job_) return beat;
  beat.job = job_->order.job;
  beat.generation = job_->order.generation;
  beat.phase = Phase::kWait;
  beat.work = job_->work;
  for (const auto& [id, shard] : job_->shards) {
    beat.steps = std::max(beat.steps, shard->shard->core().version().value);
    if (id.value == 0) beat.pacer = shard->shard->core().report();
  }
  return beat;
}

void PsNode::on_order(const wire::ControlMessage& message) {
  if (const auto* order = std::get_if<CreateShards>(&message)) {
    if (!is_open(order->job, order->generation)) {
      drop_job();
      create(*order);
    } else if (job_->created) {
      tell_chief(ShardsCreated{order->job, order->generation});
    }
  } else if (const auto* roster = std::get_if<SetRoster>(&message)) {
    if (is_open(roster->job, roster->generation) && job_->shards.count(ShardId(0)) != 0)
      handle(*job_->shards.at(ShardId(0)), shards::RosterSet{roster->roster, roster->ends});
  } else if (const auto* fence = std::get_if<FenceWorker>(&message)) {
    if (is_open(fence->job, fence->generation))
      for (auto& [id, shard] : job_->shards) handle(*shard, shards::Fence{fence->worker});
  } else if (const auto* prepared = std::get_if<PrepareCheckpoint>(&message)) {
    if (is_open(prepared->job, prepared->generation)) prepare(*prepared);
  } else if (const auto* cut = std::get_if<TakeCut>(&message)) {
    if (is_open(cut->job, cut->generation) && job_->shards.count(ShardId(0)) != 0)
      handle(*job_->shards.at(ShardId(0)), shards::CutOrdered{cut->attempt, cut->at});
  } else if (const auto* abandoned = std::get_if<AbandonCheckpoint>(&message)) {
    if (is_open(abandoned->job, abandoned->generation)) {
      if (abandoned->attempt >= job_->attempt) {
        job_->attempt = abandoned->attempt;
        job_->is_attempt_over = true;
        job_->said.clear();
        job_->writers.clear();
      }
      for (auto& [id, shard] : job_->shards) handle(*shard, shards::AttemptAbandoned{abandoned->attempt});
    }
  } else if (const auto* close = std::get_if<CloseJob>(&message)) {
    if (job_ && job_->order.job == close->job) {
      tell_chief(make_heartbeat());
      drop_job();
    }
    tell_chief(JobClosed{close->job});
  }
}

void PsNode::create(const CreateShards& order) {
  job_.emplace();
  job_->order = order;
  job_->config = *order.config;
  ++jobs_opened_;
  tell("makes its shards of job " + std::to_string(order.job.value) + ", generation " +
       std::to_string(order.generation.value) +
       (order.restore_path.empty() ? std::string() : " from " + order.restore_path));
  auto facts = std::make_shared<shards::ShardJob>();
  facts->job = order.job;
  facts->generation = order.generation;
  facts->token = order.token;
  facts->config = job_->config;
  facts->layout = order.layout;
  facts->checkpoint_folder = order.checkpoint_folder;
  facts->checkpoint_mark = order.checkpoint_mark;
  facts->restore_path = order.restore_path;
  facts->init_path = order.init_path;
  facts->train_records = order.train_records;
  job_->facts = facts;
  restore(order.restore_path.empty() ? 0 : jobs_.slow_pieces);
}

void PsNode::restore(std::uint64_t pieces_left) {
  if (pieces_left == 0) return make_shards();
  after(jobs_.slow_piece, [this, pieces_left, opened = jobs_opened_] {
    if (opened != jobs_opened_ || !job_) return;
    ++job_->work;
    if (pieces_left == 1 && is_longer_than_setup()) world_.count(Happening::kLongRestore);
    restore(pieces_left - 1);
  });
}

bool PsNode::is_longer_than_setup() const {
  return static_cast<std::int64_t>(jobs_.slow_pieces) * jobs_.slow_piece > timeouts().setup;
}

void PsNode::make_shards() {
  const CreateShards order = job_->order;
  const auto& facts = job_->facts;
  const Result<shards::ShardOrigin> origin = shards::ShardOrigin::open(jobs_.disk->files(), *facts);
  if (!origin) return fail(origin.error().code, origin.error().message);
  for (std::uint32_t s = 0; s < order.layout.shards; ++s) {
    if (order.owners[s].ps != self()) continue;
    shards::ShardOptions options;
    options.shard = ShardId(s);
    options.train = job_->config.train;
    options.roster = order.roster;
    options.places = order.places;
    options.credits = jobs_.cluster.transport.credits;
    options.train_records = order.train_records;
    options.restored = origin->report();
    options.own_orders = origin->own_orders(*facts);
    options.awaits_values = origin->awaits_values(*facts);
    options.waits_for_lost = job_->config.job.on_worker_loss == OnWorkerLoss::kWait;
    shards::StoreOptions memory;
    memory.train = options.train;
    memory.places = std::max<std::uint32_t>(order.places, static_cast<std::uint32_t>(order.roster.members.size()));
    memory.has_copy = !order.checkpoint_folder.empty();
    memory.average = order.config->evaluate.average;
    memory.is_empty = options.awaits_values;
    auto shard = std::make_unique<ShardHere>();
    shard->ps = this;
    shard->id = ShardId(s);
    shard->shard = std::make_unique<shards::Shard>(order.layout, options, memory, nullptr);
    if (Status filled = origin->fill(jobs_.disk->files(), *facts, ShardId(s), shard->shard->store(), {}); !filled)
      return fail(filled.error().code, filled.error().message);
    const bool has_orders = job_->config.data.sharding == Sharding::kNone && job_->config.train.mode != Mode::kSync;
    if (s == 0 && has_orders) laws_.orders_begin({order.job, order.generation}, order.restore_path);
    shard->twin = std::make_unique<ShardTwin>(laws_, *facts, *shard->shard, ShardId(s), self(), order.roster,
                                              origin->report(), options.awaits_values);
    job_->shards.emplace(ShardId(s), std::move(shard));
  }
  if (job_->shards.empty()) {
    job_->created = true;
    return tell_chief(ShardsCreated{order.job, order.generation});
  }
  for (auto& [id, shard] : job_->shards)
    if (id.value == 0) {
      became_ready(*shard);
    } else {
      shard->answered_at = now();
      dial_pacer(id);
    }
}

// --- Checkpoints

void PsNode::say(wire::ControlMessage report) {
  tell_chief(report);
  job_->said.push_back(std::move(report));
}

void PsNode::fail_checkpoint(std::uint64_t attempt, const Error& error) {
  tell("checkpoint attempt " + std::to_string(attempt) + " failed: " + error.message);
  say(CheckpointFailed{job_->order.job, job_->order.generation, attempt, error.code, error.message});
}

void PsNode::prepare(const PrepareCheckpoint& order) {
  if (order.attempt <= job_->attempt) return;
  job_->attempt = order.attempt;
  job_->is_attempt_over = false;
  job_->said.clear();
  job_->writers.clear();
  job_->folder = order.folder;
  after(jobs_.disk->delay(), [this, order, opened = jobs_opened_] {
    if (opened != jobs_opened_ || !job_ || order.attempt != job_->attempt || job_->is_attempt_over) return;
    for (auto& [id, shard] : job_->shards) {
      auto writer = checkpoint::ShardWriter::reserve(jobs_.disk->files(), order.folder, job_->order.layout, id,
                                                     static_cast<std::uint32_t>(shard->shard->store().slots()), {});
      if (!writer) return fail_checkpoint(order.attempt, writer.error());
      job_->writers.emplace(id, std::move(*writer));
    }
    for (auto& [id, shard] : job_->shards) handle(*shard, shards::AttemptPrepared{order.attempt, order.holds});
    say(CheckpointPrepared{order.job, order.generation, order.attempt});
  });
}

void PsNode::carry_out(ShardHere& shard, const shards::SendMarkTaken& action) {
  const auto channel = shard.channels.find(action.channel);
  if (channel != shard.channels.end()) send(channel->second, action.message);
}

void PsNode::carry_out(ShardHere& shard, const shards::CopyForCheckpoint& action) {
  std::shared_ptr<const shards::ShardCopy> copy = shard.shard->store().copy();
  if (copy == nullptr)
    return fail_checkpoint(action.attempt,
                           Error{ErrorCode::kTemporary, "the copy of the previous checkpoint is still in use"});
  after(jobs_.disk->delay(), [this, id = shard.id, action, copy = std::move(copy), opened = jobs_opened_]() mutable {
    if (opened == jobs_opened_ && job_) write(id, action, copy);
    copy.reset();
  });
}

void PsNode::write(ShardId shard, const shards::CopyForCheckpoint& cut,
                   const std::shared_ptr<const shards::ShardCopy>& copy) {
  const auto writer = job_->writers.find(shard);
  if (job_->attempt != cut.attempt || writer == job_->writers.end()) return;
  checkpoint::ShardContent content;
  content.parameters = copy->array(0);
  for (std::size_t i = 1; i < copy->arrays(); ++i) content.slots.push_back(copy->array(i));
  const Result<FileEntry> file = writer->second.write(content);
  job_->writers.erase(writer);
  if (!file) return fail_checkpoint(cut.attempt, file.error());
  if (Status synced = jobs_.disk->files().sync_directory(job_->folder); !synced)
    return fail_checkpoint(cut.attempt, synced.error());
  ShardWritten written;
  written.job = job_->order.job;
  written.generation = job_->order.generation;
  written.attempt = cut.attempt;
  written.shard = shard;
  written.entry = cut.entry;
  written.file = *file;
  written.pacer = cut.pacer;
  after(jobs_.disk->delay(), [this, written, opened = jobs_opened_] {
    if (opened == jobs_opened_ && job_ && written.attempt == job_->attempt && !job_->is_attempt_over) say(written);
  });
}

void PsNode::give_up_marks() {
  if (!job_) return;
  for (auto& [id, shard] : job_->shards) handle(*shard, shards::MarksAwaited{job_->config.job.stall_timeout / 4});
}

void PsNode::carry_out(ShardHere&, const shards::MarksGivenUp& action) {
  if (action.attempt == job_->attempt && !job_->is_attempt_over)
    fail_checkpoint(action.attempt, Error{ErrorCode::kTemporary, "some marks didn't arrive in time"});
}

void PsNode::became_ready(ShardHere& shard) {
  shard.ready = true;
  const bool all = std::all_of(job_->shards.begin(), job_->shards.end(), [](const auto& s) { return s.second->ready; });
  if (!all || std::exchange(job_->created, true)) return;
  tell_chief(ShardsCreated{job_->order.job, job_->order.generation});
}

void PsNode::dial_pacer(ShardId shard) {
  Hello hello;
  hello.who = ShardPeerHello{job_->order.job, job_->order.generation, shard, self(), job_->order.token};
  dial(job_->order.owners[0].address, hello, timeouts().silent,
       [this, shard, opened = jobs_opened_](std::optional<ConnectionId> connection, bool) {
         if (opened != jobs_opened_ || !job_) {
           if (connection) close(*connection);
           return;
         }
         if (!connection) return dial_pacer_again(shard, false);
         uses_[*connection] = Use{shard, {}, ShardId(0), true};
         after(timeouts().silent, [this, shard, opened, end = *connection] {
           const auto use = uses_.find(end);
           if (opened != jobs_opened_ || !job_ || use == uses_.end() || !use->second.is_waiting) return;
           uses_.erase(use);
           close(end);
           dial_pacer_again(shard, false);
         });
       });
}

void PsNode::dial_pacer_again(ShardId id, bool answered) {
  ShardHere& shard = *job_->shards.at(id);
  const CreateShards& order = job_->order;
  const Accusation accusation{order.job, order.generation, order.owners[0].ps.task, "", Duration(), true};
  const Duration lasts = now() - shard.answered_at;
  if (answered) {
    shard.answered_at = now();
    if (std::exchange(shard.has_complained, false)) tell_chief(accusation);
  } else if (lasts > timeouts().silent) {
    shard.has_complained = true;
    tell_chief(Accusation{order.job, order.generation, accusation.accused, "no answer", lasts});
  }
  after(milliseconds(50), [this, id, opened = jobs_opened_] {
    if (opened == jobs_opened_ && job_) dial_pacer(id);
  });
}

// Ends the link to another shard, because its connection was closed or was silent for too long. If the link has carried
// no message, none can be lost, so the shard just dials the pacer again.
void PsNode::end_peer_link(ConnectionId connection, Use use, Duration lasts) {
  ShardHere& shard = *job_->shards.at(use.shard);
  const auto peer = shard.peers.find(*use.peer);
  if (peer != shard.peers.end() && peer->second == connection) shard.peers.erase(peer);
  if (use.has_carried) return lost_peer(shard, *use.peer, lasts);
  if (use.shard == ShardId(0)) return;
  shard.answered_at = now() - lasts;
  dial_pacer_again(use.shard, false);
}

void PsNode::watch_peers() {
  if (!job_) return;
  std::vector<ConnectionId> silent;
  for (auto& [connection, use] : uses_) {
    if (!use.peer || use.is_waiting) continue;
    if (hears(connection))
      use.heard = now();
    else if (now() - use.heard > timeouts().silent)
      silent.push_back(connection);
  }
  for (const ConnectionId connection : silent) {
    const Use use = uses_.extract(connection).mapped();
    close(connection);
    end_peer_link(connection, use, now() - use.heard);
  }
}

void PsNode::drop_job() {
  if (!job_) return;
  if (job_->work > 0 && job_->work < jobs_.slow_pieces) world_.count(Happening::kRestoreLeft);
  ++jobs_opened_;
  for (const auto& [connection, use] : uses_) close(connection);
  uses_.clear();
  job_.reset();
}

void PsNode::fail(ErrorCode code, const std::string& reason) {
  tell("fails the job: " + reason);
  const TaskFailed failed{job_->order.job, job_->order.generation, code, reason};
  if (!job_->failed) job_->failed = failed;
  tell_chief(failed);
}

void PsNode::on_arrival(ConnectionId connection, const Hello& hello) {
  const auto refuse = [this, connection](ErrorCode code, const std::string& reason) {
    send(connection, wire::HelloAnswer(Refused{code, reason, false, self()}));
    close(connection);
  };
  if (const auto* channel = std::get_if<ChannelHello>(&hello.who)) {
    if (!is_open(channel->job, channel->generation) || job_->shards.count(channel->shard) == 0)
      return refuse(ErrorCode::kTemporary, "this ps doesn't have the shard, or doesn't have it yet");
    if (channel->token != job_->order.token) return refuse(ErrorCode::kNoPermission, "the token is wrong");
    const shards::ChannelId id(++last_channel_);
    ShardHere& shard = *job_->shards.at(channel->shard);
    uses_[connection] = Use{channel->shard, id, std::nullopt, false};
    shard.channels[id] = connection;
    return handle(shard, shards::ChannelOpened{id, channel->worker});
  }
  if (const auto* peer = std::get_if<ShardPeerHello>(&hello.who)) {
    if (!is_open(peer->job, peer->generation) || job_->shards.count(ShardId(0)) == 0)
      return refuse(ErrorCode::kTemporary, "this ps doesn't have the shard, or doesn't have it yet");
    ShardHere& pacer = *job_->shards.at(ShardId(0));
    // Messages on the former link may be lost, so the former link ends before the new one opens.
    if (const auto before = pacer.peers.find(peer->from); before != pacer.peers.end()) {
      const ConnectionId old = before->second;
      const Use use = uses_.extract(old).mapped();
      close(old);
      end_peer_link(old, use, Duration::zero());
    }
    uses_[connection] = Use{ShardId(0), {}, peer->from, false, false, now()};
    pacer.peers[peer->from] = connection;
    send(connection, wire::HelloAnswer(Welcome{}));
    return handle(pacer, shards::PeerOpened{peer->from});
  }
  answer_probe(connection);
}

void PsNode::on_message(ConnectionId connection, const Payload& payload) {
  if (is_link(connection)) return on_link_message(payload);
  const auto found = uses_.find(connection);
  if (found == uses_.end() || !job_) return;
  Use& use = found->second;
  ShardHere& shard = *job_->shards.at(use.shard);
  if (use.is_waiting) {
    use.is_waiting = false;
    const auto& answer = std::get<wire::HelloAnswer>(payload);
    if (std::holds_alternative<Welcome>(answer)) {
      shard.peers[*use.peer] = connection;
      shard.answered_at = use.heard = now();
      if (std::exchange(shard.has_complained, false))
        tell_chief(
            Accusation{job_->order.job, job_->order.generation, job_->order.owners[0].ps.task, "", Duration(), true});
      became_ready(shard);
      return handle(shard, shards::PeerOpened{ShardId(0)});
    }
    const ShardId id = use.shard;
    uses_.erase(found);
    close(connection);
    const Member& by = std::get<Refused>(answer).by;
    return dial_pacer_again(id, by.incarnation.value == 0 || by == job_->order.owners[0].ps);
  }
  if (use.peer && !std::holds_alternative<PacerNews>(payload)) use.has_carried = true;
  if (const auto* frame = std::get_if<PushFrame>(&payload)) {
    handle_push(shard, use.channel, *frame);
  } else if (const auto* pull = std::get_if<Pull>(&payload)) {
    handle(shard, shards::PullArrived{use.channel, *pull});
  } else if (const auto* mark = std::get_if<Mark>(&payload)) {
    handle(shard, shards::MarkArrived{use.channel, *mark});
  } else if (const auto* cut = std::get_if<Cut>(&payload)) {
    handle(shard, shards::CutArrived{*cut});
  } else if (const auto* staged = std::get_if<Staged>(&payload)) {
    handle(shard, shards::StagedArrived{*staged});
  } else if (const auto* commit = std::get_if<Commit>(&payload)) {
    handle(shard, shards::CommitArrived{*commit});
  } else if (const auto* news = std::get_if<PacerNews>(&payload)) {
    handle(shard, shards::NewsArrived{*news});
  }
}

void PsNode::handle(ShardHere& shard, const shards::Event& event) {
  shard.twin->before(event);
  shard.shard->handle(now(), event, shard);
  shard.twin->after();
}

Status PsNode::take_payload(ShardHere& shard, shards::ChannelId channel, const PushFrame& frame) {
  if (frame.lent != nullptr && !frame.lent->empty()) {
    shard.lent[channel].push_back(frame.lent);
    const auto read = shard.shard->lend(channel, frame.sequence, frame.push, *frame.lent, frame.lent);
    return read ? Status() : tl::unexpected(read.error());
  }
  const std::uint64_t bytes = frame.payload.size() * sizeof(float);
  const auto landing = shard.shard->landing(channel, frame.sequence, frame.push, bytes);
  if (!landing) return tl::unexpected(landing.error());
  std::copy(frame.payload.begin(), frame.payload.end(), landing->begin());
  return {};
}

// The channel is closed, so its worker may do anything with the memory that it has lent.
void PsNode::scribble_over(ShardHere& shard, shards::ChannelId channel) {
  const auto lent = shard.lent.extract(channel);
  if (lent.empty()) return;
  for (const auto& memory : lent.mapped()) scribble(*memory);
}

void PsNode::handle_push(ShardHere& shard, shards::ChannelId channel, const PushFrame& frame) {
  shard.twin->arrives(channel, frame.sequence);
  const std::uint64_t bytes = frame.payload.size() * sizeof(float);
  if (Status taken = take_payload(shard, channel, frame); !taken) {
    tell("closes a channel: " + taken.error().message);
    close_channel(shard, channel);
    handle(shard, shards::ChannelClosed{channel});
    return scribble_over(shard, channel);
  }
  shards::PushArrived event{channel, frame.sequence, frame.push, bytes, false};
  shard.twin->before_push(event, frame.payload, frame.records);
  shard.shard->handle_push(now(), event, frame.payload, shard);
  shard.twin->after(shard.channels.count(channel) != 0);
}

void PsNode::on_closed(ConnectionId connection) {
  if (is_link(connection)) return on_link_closed();
  const auto found = uses_.extract(connection);
  if (found.empty() || !job_) return;
  const Use use = found.mapped();
  ShardHere& shard = *job_->shards.at(use.shard);
  if (use.peer && use.is_waiting) return dial_pacer_again(use.shard, false);
  if (use.peer) return end_peer_link(connection, use, Duration::zero());
  shard.channels.erase(use.channel);
  handle(shard, shards::ChannelClosed{use.channel});
  scribble_over(shard, use.channel);
}

void PsNode::lost_peer(ShardHere& shard, ShardId peer, Duration lasts) {
  const CreateShards& order = job_->order;
  const std::string reason = "shard " + std::to_string(shard.id.value) + " lost shard " + std::to_string(peer.value);
  tell_chief(Accusation{order.job, order.generation, order.owners.at(peer.value).ps.task, reason, lasts});
  after(timeouts().silent, [this, reason, opened = jobs_opened_] {
    if (opened == jobs_opened_ && job_) fail(ErrorCode::kUnavailable, reason);
  });
}

void PsNode::close_channel(ShardHere& shard, shards::ChannelId channel) {
  const auto found = shard.channels.extract(channel);
  if (found.empty()) return;
  uses_.erase(found.mapped());
  close(found.mapped());
}

void PsNode::carry_out(ShardHere& shard, const shards::Admit& action) {
  Welcome welcome;
  welcome.last_sequence = action.last_sequence;
  send(shard.channels.at(action.channel), wire::HelloAnswer(welcome));
}

void PsNode::carry_out(ShardHere& shard, const shards::Refuse& action) {
  send(shard.channels.at(action.channel), wire::HelloAnswer(Refused{action.code, action.reason}));
  close_channel(shard, action.channel);
}

void PsNode::carry_out(ShardHere& shard, const shards::Reply& action) {
  const auto channel = shard.channels.find(action.channel);
  if (channel == shard.channels.end()) return;
  const auto values = shard.shard->values(action.message);
  send(channel->second, ParametersFrame{action.message, std::vector<float>(values.begin(), values.end())});
}

void PsNode::carry_out(ShardHere& shard, const shards::SendAcknowledge& action) {
  if (action.message.wants_values)
    world_.count(std::exchange(shard.has_asked_for_values, true) ? Happening::kValuesAskedAgain
                                                                 : Happening::kValuesAsked);
  const auto channel = shard.channels.find(action.channel);
  if (channel != shard.channels.end()) send(channel->second, action.message);
}

void PsNode::carry_out(ShardHere& shard, const shards::Fenced& action) {
  tell_chief(WorkerFenced{job_->order.job, job_->order.generation, shard.id, action.worker, action.last_sequence,
                          action.last_clock});
}

void PsNode::carry_out(ShardHere&, const shards::RosterTaken& action) {
  tell_chief(RosterApplied{job_->order.job, job_->order.generation, action.version, action.step, action.pacer,
                           action.batches});
}

void PsNode::send_to_peers(ShardHere& shard, const Payload& payload) {
  for (const auto& [peer, connection] : shard.peers) {
    if (!std::holds_alternative<PacerNews>(payload)) uses_.at(connection).has_carried = true;
    send(connection, payload);
  }
}

}  // namespace disttrain::sim
