#include "tests/sim/ps_node.h"

#include <algorithm>

namespace disttrain::sim {

using std::chrono::milliseconds;

Hello PsNode::make_hello() {
  TaskHello task;
  task.member = self();
  task.address = address_of(jobs_.cluster, self().task);
  task.host = "host";
  task.pid = 1;
  task.shards = 2;
  task.journal = journal();
  if (job_) {
    task.job = job_->order.job;
    task.generation = job_->order.generation;
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
      handle(*job_->shards.at(ShardId(0)), psd::RosterSet{roster->roster});
  } else if (const auto* fence = std::get_if<FenceWorker>(&message)) {
    if (is_open(fence->job, fence->generation))
      for (auto& [id, shard] : job_->shards) handle(*shard, psd::Fence{fence->worker});
  } else if (const auto* close = std::get_if<CloseJob>(&message)) {
    if (job_ && job_->order.job == close->job) {
      tell_chief(make_heartbeat());
      drop_job();
    }
    tell_chief(JobClosed{close->job});
  }
}

void PsNode::create(const CreateShards& order) {
  job_.emplace(OpenJob{order, jobs_.read(order.job_toml), {}, false});
  ++jobs_opened_;
  tell("makes its shards of job " + std::to_string(order.job.value));
  for (std::uint32_t s = 0; s < order.layout.shards; ++s) {
    if (order.owners[s].ps != self()) continue;
    psd::ShardOptions options;
    options.shard = ShardId(s);
    options.train = job_->config.train;
    options.roster = order.roster;
    options.credits = jobs_.cluster.transport.credits;
    options.train_records = order.train_records;
    auto shard = std::make_unique<ShardHere>();
    shard->ps = this;
    shard->id = ShardId(s);
    shard->shard = std::make_unique<psd::Shard>(order.layout, options, 1, [] {});
    job_->shards.emplace(ShardId(s), std::move(shard));
  }
  if (job_->shards.empty()) {
    job_->created = true;
    return tell_chief(ShardsCreated{order.job, order.generation});
  }
  for (auto& [id, shard] : job_->shards)
    if (id.value == 0)
      became_ready(*shard);
    else
      dial_pacer(id);
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
  dial(job_->order.owners[0].address, hello, timeouts().dial,
       [this, shard, opened = jobs_opened_](std::optional<ConnectionId> connection, bool) {
         if (opened != jobs_opened_ || !job_) {
           if (connection) close(*connection);
           return;
         }
         if (connection) {
           uses_[*connection] = Use{shard, {}, ShardId(0), true};
           return;
         }
         after(milliseconds(50), [this, shard, opened] {
           if (opened == jobs_opened_ && job_) dial_pacer(shard);
         });
       });
}

void PsNode::drop_job() {
  if (!job_) return;
  ++jobs_opened_;
  for (const auto& [connection, use] : uses_) close(connection);
  uses_.clear();
  job_.reset();
}

void PsNode::fail(ErrorCode code, const std::string& reason) {
  tell("fails the job: " + reason);
  tell_chief(TaskFailed{job_->order.job, job_->order.generation, code, reason});
}

void PsNode::on_arrival(ConnectionId connection, const Hello& hello) {
  const auto refuse = [this, connection](ErrorCode code, const std::string& reason) {
    send(connection, wire::HelloAnswer(Refused{code, reason}));
    close(connection);
  };
  if (const auto* channel = std::get_if<ChannelHello>(&hello.who)) {
    if (!is_open(channel->job, channel->generation) || job_->shards.count(channel->shard) == 0)
      return refuse(ErrorCode::kTemporary, "not here, or not yet");
    if (channel->token != job_->order.token) return refuse(ErrorCode::kNoPermission, "the token is wrong");
    const psd::ChannelId id(++last_channel_);
    ShardHere& shard = *job_->shards.at(channel->shard);
    uses_[connection] = Use{channel->shard, id, std::nullopt, false};
    shard.channels[id] = connection;
    return handle(shard, psd::ChannelOpened{id, channel->worker});
  }
  if (const auto* peer = std::get_if<ShardPeerHello>(&hello.who)) {
    if (!is_open(peer->job, peer->generation) || job_->shards.count(ShardId(0)) == 0)
      return refuse(ErrorCode::kTemporary, "not here, or not yet");
    ShardHere& pacer = *job_->shards.at(ShardId(0));
    uses_[connection] = Use{ShardId(0), {}, peer->from, false};
    pacer.peers[peer->from] = connection;
    return send(connection, wire::HelloAnswer(Welcome{}));
  }
  close(connection);  // a probe
}

void PsNode::on_message(ConnectionId connection, const Payload& payload) {
  if (is_link(connection)) return on_link_message(payload);
  const auto found = uses_.find(connection);
  if (found == uses_.end() || !job_) return;
  Use& use = found->second;
  ShardHere& shard = *job_->shards.at(use.shard);
  if (use.is_waiting) {
    use.is_waiting = false;
    if (std::holds_alternative<Welcome>(std::get<wire::HelloAnswer>(payload))) {
      shard.peers[*use.peer] = connection;
      return became_ready(shard);
    }
    const ShardId id = use.shard;
    uses_.erase(found);
    close(connection);
    return after(milliseconds(50), [this, id, opened = jobs_opened_] {
      if (opened == jobs_opened_ && job_) dial_pacer(id);
    });
  }
  if (const auto* frame = std::get_if<PushFrame>(&payload)) {
    const std::uint64_t bytes = frame->payload.size() * sizeof(float);
    const auto landing = shard.shard->landing(use.channel, frame->sequence, frame->push, bytes);
    if (!landing) {
      tell("closes a channel: " + landing.error().message);
      const psd::ChannelId channel = use.channel;
      close_channel(shard, channel);
      return handle(shard, psd::ChannelClosed{channel});
    }
    std::copy(frame->payload.begin(), frame->payload.end(), landing->begin());
    psd::PushArrived event{use.channel, frame->sequence, frame->push, bytes, false};
    shard.shard->handle_push(world_.now(), event, shard);
  } else if (const auto* pull = std::get_if<Pull>(&payload)) {
    handle(shard, psd::PullArrived{use.channel, *pull});
  } else if (const auto* staged = std::get_if<Staged>(&payload)) {
    handle(shard, psd::StagedArrived{*staged});
  } else if (const auto* commit = std::get_if<Commit>(&payload)) {
    handle(shard, psd::CommitArrived{*commit});
  } else if (const auto* news = std::get_if<PacerNews>(&payload)) {
    handle(shard, psd::NewsArrived{*news});
  }
}

void PsNode::on_closed(ConnectionId connection) {
  if (is_link(connection)) return on_link_closed();
  const auto found = uses_.extract(connection);
  if (found.empty() || !job_) return;
  const Use use = found.mapped();
  ShardHere& shard = *job_->shards.at(use.shard);
  if (use.peer && use.is_waiting)
    return after(milliseconds(50), [this, id = use.shard, opened = jobs_opened_] {
      if (opened == jobs_opened_ && job_) dial_pacer(id);
    });
  if (use.peer) return lost_peer(shard, *use.peer);
  shard.channels.erase(use.channel);
  handle(shard, psd::ChannelClosed{use.channel});
}

void PsNode::lost_peer(ShardHere& shard, ShardId peer) {
  shard.peers.erase(peer);
  const CreateShards& order = job_->order;
  const std::string reason = "shard " + std::to_string(shard.id.value) + " lost shard " + std::to_string(peer.value);
  tell_chief(Accusation{order.job, order.generation, order.owners.at(peer.value).ps.task, reason});
  after(timeouts().silent, [this, reason, opened = jobs_opened_] {
    if (opened == jobs_opened_ && job_) fail(ErrorCode::kUnavailable, reason);
  });
}

void PsNode::close_channel(ShardHere& shard, psd::ChannelId channel) {
  const auto found = shard.channels.extract(channel);
  if (found.empty()) return;
  uses_.erase(found.mapped());
  close(found.mapped());
}

void PsNode::carry_out(ShardHere& shard, const psd::Admit& action) {
  Welcome welcome;
  welcome.last_sequence = action.last_sequence;
  send(shard.channels.at(action.channel), wire::HelloAnswer(welcome));
}

void PsNode::carry_out(ShardHere& shard, const psd::Refuse& action) {
  send(shard.channels.at(action.channel), wire::HelloAnswer(Refused{action.code, action.reason}));
  close_channel(shard, action.channel);
}

void PsNode::carry_out(ShardHere& shard, const psd::Reply& action) {
  const auto channel = shard.channels.find(action.channel);
  if (channel == shard.channels.end()) return;
  const auto values = shard.shard->parameters(action.message.bucket);
  send(channel->second, ParametersFrame{action.message, std::vector<float>(values.begin(), values.end())});
}

void PsNode::carry_out(ShardHere& shard, const psd::SendAcknowledge& action) {
  const auto channel = shard.channels.find(action.channel);
  if (channel != shard.channels.end()) send(channel->second, action.message);
}

void PsNode::carry_out(ShardHere& shard, const psd::Fenced& action) {
  tell_chief(WorkerFenced{job_->order.job, job_->order.generation, shard.id, action.worker, action.last_sequence,
                          action.last_clock});
}

void PsNode::carry_out(ShardHere&, const psd::RosterTaken& action) {
  tell_chief(RosterApplied{job_->order.job, job_->order.generation, action.version, action.step, action.pacer});
}

void PsNode::send_to_peers(ShardHere& shard, const Payload& payload) {
  for (const auto& [peer, connection] : shard.peers) send(connection, payload);
}

}  // namespace disttrain::sim
