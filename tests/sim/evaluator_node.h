// A simulated evaluator: the real core, and a simple version of the code in workerd/evaluator that surrounds it. It
// reads the real files of a checkpoint. The loss that it reports is a function of the checkpoint's place.
#pragma once

#include <memory>

#include "common/checkpoint/job_folder.h"
#include "tests/sim/chief_link.h"
#include "tests/sim/jobs.h"
#include "tests/sim/laws.h"
#include "workerd/core/evaluator_core.h"

namespace disttrain::sim {

class EvaluatorNode final : public TaskNode {
 public:
  // An evaluation takes at most `slowest`.
  EvaluatorNode(World& world, Network& network, Member self, const Jobs& jobs, Laws& laws, Duration slowest)
      : TaskNode(world, network, self, jobs.cluster.chief.address, jobs.cluster.heartbeat.timeout),
        jobs_(jobs),
        laws_(laws),
        slowest_(slowest) {}

  void start() override { open_link(); }
  void on_arrival(ConnectionId connection, const Hello&) override { answer_probe(connection); }
  void on_message(ConnectionId connection, const Payload& payload) override {
    if (is_link(connection)) on_link_message(payload);
  }
  void on_closed(ConnectionId connection) override {
    if (is_link(connection)) on_link_closed();
  }

 private:
  Hello make_hello() override;
  void on_welcome() override {}
  void on_other_journal() override { carry_out(core_.on_drop()); }
  void on_order(const wire::ControlMessage& message) override;
  Heartbeat make_heartbeat() override;

  void carry_out(const workerd::EvaluatorActions& actions);
  void begin(const workerd::BeginEvaluation& action);
  void read(const workerd::BeginEvaluation& action);
  void end(const workerd::BeginEvaluation& action, Step step);

  const Jobs& jobs_;
  Laws& laws_;
  const Duration slowest_;
  workerd::EvaluatorCore core_;
  workerd::EvaluationTicket running_;            // 0: none runs
  std::unique_ptr<checkpoint::InputFile> lock_;  // of the checkpoint that is being evaluated
  std::uint64_t work_ = 0;                       // see Heartbeat
};

}  // namespace disttrain::sim
