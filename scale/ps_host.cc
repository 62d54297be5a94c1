#include "scale/ps_host.h"

#include <algorithm>
#include <utility>

#include "scale/worker_host.h"

namespace disttrain::scale {

TaskHello PsHost::make_hello() const {
  TaskHello hello;
  hello.member = self_;
  hello.address = address_of(around_.cluster, self_.task);
  hello.host = hello.address;
  hello.pid = 1;
  hello.shards = threads_;
  hello.memory_bytes = std::uint64_t{1} << 50;  // memory is no limit here; `disttrain plan` computes how much is needed
  return hello;
}

Heartbeat PsHost::make_heartbeat() {
  Heartbeat beat;
  beat.turns.assign(threads_, ++turns_);
  beat.clock = now();
  if (shards_.empty()) return beat;
  beat.job = job_;
  beat.generation = generation_;
  beat.phase = Phase::kWait;
  for (const auto& shard : shards_) {
    beat.steps = std::max(beat.steps, shard->core->version().value);
    beat.shards.push_back(ShardLoad{shard->id, now().time_since_epoch(), {}, {}});
    if (shard->core->is_pacer()) beat.pacer = shard->core->report();
  }
  return beat;
}

void PsHost::on_order(const wire::ControlMessage& message) {
  if (const auto* order = std::get_if<CreateShards>(&message)) {
    create(*order);
  } else if (const auto* roster = std::get_if<SetRoster>(&message)) {
    if (Shard* pacer = find(ShardId(0))) handle(*pacer, shards::RosterSet{roster->roster, roster->ends});
  } else if (const auto* fence = std::get_if<FenceWorker>(&message)) {
    for (const auto& shard : shards_) handle(*shard, shards::Fence{fence->worker});
  } else if (const auto* close = std::get_if<CloseJob>(&message)) {
    tell_chief(make_heartbeat());
    shards_.clear();
    tell_chief(JobClosed{close->job});
  }
}

void PsHost::create(const CreateShards& order) {
  if (!shards_.empty()) return around_.fail("the job begins a second time");
  job_ = order.job;
  generation_ = order.generation;
  owners_ = order.owners;
  for (const Bucket& bucket : order.layout.buckets) bucket_bytes_.push_back(bucket.words * sizeof(float));
  for (std::uint32_t s = 0; s < order.layout.shards; ++s) {
    if (order.owners[s].ps != self_) continue;
    shards::ShardOptions options;
    options.shard = ShardId(s);
    options.train = order.config->train;
    options.roster = order.roster;
    options.places = order.places;
    options.credits = around_.cluster.transport.credits;
    options.train_records = order.train_records;
    auto shard = std::make_unique<Shard>();
    shard->id = ShardId(s);
    shard->core = std::make_unique<shards::ShardCore>(order.layout, options);
    shards_.push_back(std::move(shard));
  }
  if (shards_.empty()) return tell_chief(ShardsCreated{job_, generation_});
  for (const auto& shard : shards_) {
    if (shard->core->is_pacer())
      became_ready(*shard);
    else
      dial_pacer(shard->id);
  }
}

void PsHost::dial_pacer(ShardId shard) {
  PsHost& pacer = *around_.ps.at(owners_[0].ps.task.index);
  around_.network.connect(host_, pacer.host(), [this, &pacer, shard] {
    Hello hello;
    hello.cluster = around_.cluster.name;
    hello.who = ShardPeerHello{job_, generation_, shard, self_, 1};
    around_.network.send(host_, pacer.host(), Traffic::kPeer, frame_bytes(hello),
                         [this, &pacer, shard] { pacer.on_peer_hello(*this, shard); });
  });
}

void PsHost::on_peer_hello(PsHost& from, ShardId peer) {
  Shard* pacer = find(ShardId(0));
  if (pacer == nullptr) {  // it is created a moment later, so the shard dials again
    around_.network.send(
        host_, from.host(), Traffic::kPeer,
        frame_bytes(wire::HelloAnswer(Refused{ErrorCode::kTemporary, "there is no such shard yet"})), [&from, peer] {
          from.around_.queue.after(std::chrono::milliseconds(50), [&from, peer] { from.dial_pacer(peer); });
        });
    return;
  }
  peers_.push_back(Peer{peer, &from});
  around_.network.send(host_, from.host(), Traffic::kPeer, frame_bytes(wire::HelloAnswer(Welcome{})),
                       [&from, peer] { from.on_peer_welcome(peer); });
  handle(*pacer, shards::PeerOpened{peer});
}

void PsHost::on_peer_welcome(ShardId shard) {
  Shard* own = find(shard);
  if (own == nullptr) return;
  became_ready(*own);
  handle(*own, shards::PeerOpened{ShardId(0)});
}

void PsHost::became_ready(Shard& shard) {
  shard.is_ready = true;
  const bool all = std::all_of(shards_.begin(), shards_.end(), [](const auto& s) { return s->is_ready; });
  if (!all || std::exchange(is_created_, true)) return;
  tell_chief(ShardsCreated{job_, generation_});
}

PsHost::Shard* PsHost::find(ShardId shard) {
  for (const auto& own : shards_)
    if (own->id == shard) return own.get();
  return nullptr;
}

void PsHost::on_channel_hello(WorkerHost& worker, const ChannelHello& hello) {
  Shard* shard = find(hello.shard);
  if (shard == nullptr) return around_.fail("a worker came to a shard that doesn't exist");
  channels_.push_back(&worker);
  handle(*shard, shards::ChannelOpened{shards::ChannelId(channels_.size()), hello.worker});
}

void PsHost::on_pull(ShardId shard, shards::ChannelId channel, const Pull& pull) {
  if (Shard* own = find(shard)) handle(*own, shards::PullArrived{channel, pull});
}

void PsHost::on_push(ShardId shard, const shards::PushArrived& event) {
  Shard* own = find(shard);
  if (own == nullptr) return;
  channels_.at(event.channel.value - 1)->note_delivery();
  shards::Actions actions;
  if (!spare_.empty()) actions = std::move(spare_.back()), spare_.pop_back();
  std::optional<std::string> problem;
  around_.ps_cores.run([&] {
    const auto landing = own->core->landing(event.channel, event.sequence, event.push, event.payload_bytes);
    if (!landing)
      problem = landing.error().message;
    else
      own->core->step(now(), event, actions);
  });
  if (problem) return around_.fail(*problem);
  carry_out(*own, actions);
}

void PsHost::on_staged(const Staged& staged) {
  if (Shard* pacer = find(ShardId(0))) handle(*pacer, shards::StagedArrived{staged});
}

void PsHost::handle(Shard& shard, const shards::Event& event) {
  shards::Actions actions;
  if (!spare_.empty()) actions = std::move(spare_.back()), spare_.pop_back();
  around_.ps_cores.run([&] { shard.core->step(now(), event, actions); });
  carry_out(shard, actions);
}

void PsHost::carry_out(Shard& shard, shards::Actions& actions) {
  for (const shards::Action& action : actions) std::visit([this, &shard](const auto& a) { act(shard, a); }, action);
  if (shard.core->is_pacer()) around_.global_step = std::max(around_.global_step, shard.core->version().value);
  actions.clear();
  spare_.push_back(std::move(actions));
}

template <typename Event, typename Message>
void PsHost::send_to_peers(const Message& message) {
  for (const Peer& peer : peers_)
    around_.network.send(host_, peer.ps->host(), Traffic::kPeer, around_.sizes.of(message),
                         [peer, message] { peer.ps->on_pacer(peer.shard, Event{message}); });
}

void PsHost::act(Shard& shard, const shards::Admit& action) {
  WorkerHost* worker = channels_.at(action.channel.value - 1);
  Welcome welcome;
  welcome.last_sequence = action.last_sequence;
  around_.network.send(
      host_, worker->host(), Traffic::kData, frame_bytes(wire::HelloAnswer(welcome)),
      [worker, shard = shard.id, channel = action.channel, welcome] { worker->on_channel(shard, channel, welcome); });
}

void PsHost::act(Shard& shard, const shards::Refuse& action) {
  channels_.at(action.channel.value - 1)->on_refused(shard.id, action.reason);
}

void PsHost::act(Shard& shard, const shards::CloseChannel& action) {
  around_.fail("shard " + std::to_string(shard.id.value) + " closes a channel: " + action.reason);
}

void PsHost::act(Shard& shard, const shards::Reply& action) {
  WorkerHost* worker = channels_.at(action.channel.value - 1);
  worker->note_answer();
  around_.network.send(host_, worker->host(), Traffic::kData,
                       around_.sizes.of(action.message, bucket_bytes_[action.message.bucket.value]),
                       [worker, shard = shard.id, message = action.message] { worker->on_parameters(shard, message); });
}

void PsHost::act(Shard& shard, const shards::SendAcknowledge& action) {
  WorkerHost* worker = channels_.at(action.channel.value - 1);
  around_.network.send(
      host_, worker->host(), Traffic::kData, around_.sizes.of(action.message),
      [worker, shard = shard.id, message = action.message] { worker->on_acknowledge(shard, message); });
}

void PsHost::act(Shard&, const shards::SendStaged& action) {
  PsHost* pacer = around_.ps.at(owners_[0].ps.task.index).get();
  around_.network.send(host_, pacer->host(), Traffic::kPeer, around_.sizes.of(action.message),
                       [pacer, message = action.message] { pacer->on_staged(message); });
}

void PsHost::act(Shard&, const shards::SendCommit& action) {
  send_to_peers<shards::CommitArrived>(action.message);
}

void PsHost::act(Shard&, const shards::SendNews& action) {
  send_to_peers<shards::NewsArrived>(action.message);
}

void PsHost::act(Shard&, const shards::RosterTaken& action) {
  tell_chief(RosterApplied{job_, generation_, action.version, action.step, action.pacer, action.batches});
}

void PsHost::act(Shard& shard, const shards::Fenced& action) {
  tell_chief(WorkerFenced{job_, generation_, shard.id, action.worker, action.last_sequence, action.last_clock});
}

// The norm is small, so nothing is clipped, and all numbers are finite.
void PsHost::act(Shard& shard, const shards::JudgeStep&) {
  handle(shard, shards::StepJudged{0.0});
}

void PsHost::act(Shard& shard, const shards::FailJob& action) {
  around_.fail("shard " + std::to_string(shard.id.value) + ": " + action.reason);
}

}  // namespace disttrain::scale
