#include "scale/worker_host.h"

#include <algorithm>
#include <utility>

#include "scale/ps_host.h"

namespace disttrain::scale {

TaskHello WorkerHost::make_hello() const {
  TaskHello hello;
  hello.member = self_;
  hello.address = address_of(around_.cluster, self_.task);
  hello.host = hello.address;
  hello.pid = 1;
  hello.threads = 1;
  hello.device = "cpu";
  return hello;
}

Heartbeat WorkerHost::make_heartbeat() {
  Heartbeat beat;
  beat.job = held_;
  beat.generation = generation_;
  beat.clock = now();
  if (!core_) return beat;
  const workerd::Progress& progress = core_->progress();
  beat.phase = progress.phase;
  beat.in_phase = now() - progress.since;
  beat.steps = progress.steps;
  beat.examples = progress.examples;
  beat.loss = progress.loss;
  beat.phase_times.assign(progress.times.begin(), progress.times.end());
  return beat;
}

void WorkerHost::on_order(const wire::ControlMessage& message) {
  if (const auto* asked = std::get_if<DescribeJob>(&message)) {
    held_ = asked->job;
    tell_chief(JobDescribed{asked->job, around_.model, around_.train_records, 0, 0, {}});
  } else if (const auto* order = std::get_if<OpenJob>(&message)) {
    open(*order);
  } else if (std::holds_alternative<StartJob>(message)) {
    feed(workerd::Start{});
  } else if (const auto* grant = std::get_if<LeaseGrant>(&message)) {
    feed(workerd::LeaseGranted{*grant});
  } else if (const auto* pause = std::get_if<PauseJob>(&message)) {
    feed(workerd::Paused{pause->paused});
  } else if (std::holds_alternative<StopJob>(message)) {
    feed(workerd::StopRequested{});
  } else if (const auto* close = std::get_if<CloseJob>(&message)) {
    core_.reset();
    held_ = JobId();
    generation_ = Generation();
    tell_chief(JobClosed{close->job});
  }
}

void WorkerHost::open(const OpenJob& order) {
  held_ = order.job;
  generation_ = order.generation;
  owners_ = order.owners;
  token_ = order.token;
  has_pipeline_ = order.config->train.pipeline > 0;
  for (const Bucket& bucket : order.layout.buckets) bucket_bytes_.push_back(bucket.words * sizeof(float));
  workerd::JobFacts facts;
  facts.self = self_;
  facts.config = *order.config;
  facts.layout = order.layout;
  facts.roster = order.roster;
  facts.train_records = order.train_records;
  facts.credits = around_.cluster.transport.credits;
  facts.evaluates = order.evaluates;
  facts.clock = order.clock;
  core_ = std::make_unique<workerd::WorkerCore>(std::move(facts), now());
  channels_.resize(order.layout.shards);
  for (std::uint32_t s = 0; s < order.layout.shards; ++s) {
    channels_[s].ps = around_.ps.at(order.owners[s].ps.task.index).get();
    dial(ShardId(s));
  }
  tick();
}

void WorkerHost::dial(ShardId shard) {
  around_.network.connect(host_, channels_[shard.value].ps->host(), [this, shard] {
    PsHost& ps = *channels_[shard.value].ps;
    const ChannelHello hello{held_, generation_, shard, self_, token_};
    Hello sent;
    sent.cluster = around_.cluster.name;
    sent.who = hello;
    around_.network.send(host_, ps.host(), Traffic::kData, frame_bytes(sent),
                         [this, &ps, hello] { ps.on_channel_hello(*this, hello); });
  });
}

void WorkerHost::on_channel(ShardId shard, shards::ChannelId channel, const Welcome& welcome) {
  channels_[shard.value].id = channel;
  feed(workerd::ChannelOpened{shard, welcome.last_sequence});
}

void WorkerHost::on_refused(ShardId shard, const std::string& why) {
  around_.fail("shard " + std::to_string(shard.value) + " refuses " + to_string(self_.task) + ": " + why);
}

void WorkerHost::tick() {
  feed(workerd::Tick{});
  around_.queue.after(std::chrono::seconds(1), [this] {
    if (core_) tick();
  });
}

// Hands the event to the core, and then each batch that the core waits for.
void WorkerHost::feed(const workerd::Event& event) {
  if (!core_) return;
  workerd::Actions actions = std::exchange(actions_, {});  // reuses the memory of the last call
  actions.clear();
  around_.worker_cores.run([&] { core_->step(now(), event, actions); });
  for (const workerd::Action& action : actions) std::visit([this](const auto& a) { carry_out(a); }, action);
  actions_ = std::move(actions);
  if (const auto wanted = core_ ? core_->batch_wanted() : std::nullopt) feed(workerd::BatchReady{*wanted});
}

void WorkerHost::carry_out(const workerd::ReportOpened&) {
  tell_chief(JobOpened{held_, generation_});
}

void WorkerHost::carry_out(const workerd::RequestLease& action) {
  tell_chief(LeaseRequest{held_, generation_, action.records_per_second});
}

void WorkerHost::carry_out(const workerd::SendPull& action) {
  const Channel& channel = channels_[action.shard.value];
  around_.network.send(
      host_, channel.ps->host(), Traffic::kData, around_.sizes.of(action.pull),
      [channel, shard = action.shard, pull = action.pull] { channel.ps->on_pull(shard, channel.id, pull); });
}

void WorkerHost::carry_out(const workerd::SendPush& action) {
  const Channel& channel = channels_[action.shard.value];
  const std::uint64_t payload = action.payload ? bucket_bytes_[action.push.bucket.value] : 0;
  around_.network.send(host_, channel.ps->host(), Traffic::kData, around_.sizes.of(action.push, payload),
                       [channel, shard = action.shard,
                        event = shards::PushArrived{channel.id, action.sequence, action.push, payload, false}] {
                         channel.ps->on_push(shard, event);
                       });
}

void WorkerHost::carry_out(const workerd::LoadValues&) {
  around_.queue.after(Duration(), [this] { feed(workerd::ValuesLoaded{}); });
}

void WorkerHost::carry_out(const workerd::Compute&) {
  note_step();
  begun_ = now();
  is_measured_ = around_.is_measuring;
  around_.queue.after(around_.compute, [this] {
    computed_ = now();
    feed(workerd::Computed{1.0F});
  });
}

void WorkerHost::note_answer() {
  if (answered_ < computed_) answered_ = now();
}

// The next step begins, so the last one is over.
void WorkerHost::note_step() {
  if (!is_measured_) return;
  around_.step_times.push_back(now() - begun_);
  if (has_pipeline_) return;
  const Instant sent = std::max(computed_, delivered_);
  const Instant answered = std::max(sent, answered_);
  around_.parts.computing += computed_ - begun_;
  around_.parts.sending += sent - computed_;
  around_.parts.others += answered - sent;
  around_.parts.receiving += now() - answered;
}

void WorkerHost::carry_out(const workerd::ReportFinished& action) {
  tell_chief(WorkerFinished{held_, generation_, action.steps});
}

void WorkerHost::carry_out(const workerd::Accuse& action) {
  around_.fail(to_string(self_.task) + " accuses shard " + std::to_string(action.shard.value) + ": " + action.reason);
}

void WorkerHost::carry_out(const workerd::Fail& action) {
  around_.fail(to_string(self_.task) + ": " + action.error.message);
}

}  // namespace disttrain::scale
