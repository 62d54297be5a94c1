// A worker: its real core, and a simple version of the code in workerd that surrounds it. Its batches are always ready,
// and each computation takes the same time.
#pragma once

#include <memory>
#include <vector>

#include "scale/task_host.h"
#include "shards/core/events.h"
#include "workerd/core/worker_core.h"

namespace disttrain::scale {

class WorkerHost final : public TaskHost {
 public:
  using TaskHost::TaskHost;

  // What the shards send.
  void on_channel(ShardId shard, shards::ChannelId channel, const Welcome& welcome);
  void on_refused(ShardId shard, const std::string& why);
  void on_parameters(ShardId shard, const Parameters& parameters) {
    feed(workerd::ParametersArrived{shard, parameters});
  }
  void on_acknowledge(ShardId shard, const Acknowledge& acknowledge) {
    feed(workerd::AcknowledgeArrived{shard, acknowledge});
  }

  // Called at the moment when a shard sends parameters, and when one has got a push frame of this worker.
  void note_answer();
  void note_delivery() { delivered_ = now(); }

  // Number of steps that the worker has done.
  std::uint64_t steps() const { return core_ ? core_->progress().steps : 0; }

 private:
  // How a shard is reached.
  struct Channel {
    PsHost* ps = nullptr;
    shards::ChannelId id;
  };

  TaskHello make_hello() const override;
  Heartbeat make_heartbeat() override;
  void on_order(const wire::ControlMessage& message) override;

  void open(const OpenJob& order);
  void dial(ShardId shard);
  void feed(const workerd::Event& event);
  void tick();
  void note_step();

  void carry_out(const workerd::ReportOpened& action);
  void carry_out(const workerd::RequestLease& action);
  void carry_out(const workerd::RequestBatch&) {}  // supply() says at once that the batch is ready
  void carry_out(const workerd::DropBatch&) {}
  void carry_out(const workerd::SendPull& action);
  void carry_out(const workerd::SendPush& action);
  void carry_out(const workerd::SendMark&) {}       // no checkpoints are taken
  void carry_out(const workerd::RunEvaluation&) {}  // nor evaluations
  void carry_out(const workerd::ReportEvaluated&) {}
  void carry_out(const workerd::LoadValues& action);
  void carry_out(const workerd::Compute& action);
  void carry_out(const workerd::Recompute&) {}  // this and DropCompute need JobFacts::begins_early
  void carry_out(const workerd::DropCompute&) {}
  void carry_out(const workerd::ReportFinished& action);
  void carry_out(const workerd::Accuse& action);
  void carry_out(const workerd::Fail& action);

  JobId held_;
  Generation generation_;
  std::unique_ptr<workerd::WorkerCore> core_;
  // Of the job's order only these parts are kept, because a thousand workers would otherwise have a thousand layouts.
  std::vector<Owner> owners_;
  std::vector<std::uint64_t> bucket_bytes_;
  std::uint64_t token_ = 0;
  bool has_pipeline_ = false;
  std::vector<Channel> channels_;  // by shard
  workerd::Actions actions_;

  // The step that the worker does now. A time that isn't known yet is before `begun_`.
  bool is_measured_ = false;
  Instant begun_;
  Instant computed_;
  Instant delivered_;  // the newest arrival of a push frame at its shard
  Instant answered_;   // when the first shard sent an answer
};

}  // namespace disttrain::scale
