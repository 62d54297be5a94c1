// A simulated workerd: the real core, and a simple version of the code in workerd/worker.cc, step_thread.cc,
// job_runner.cc and ps_exchange.cc that surrounds it. Its engine adds small integers.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "tests/sim/chief_link.h"
#include "tests/sim/jobs.h"
#include "tests/sim/laws.h"
#include "workerd/core/worker_core.h"

namespace disttrain::sim {

class WorkerNode final : public TaskNode {
 public:
  WorkerNode(World& world, Network& network, Member self, const Jobs& jobs, Laws& laws, Duration slowest_step)
      : TaskNode(world, network, self, jobs.cluster.chief.address, jobs.cluster.heartbeat.timeout),
        jobs_(jobs),
        laws_(laws),
        slowest_step_(slowest_step) {}

  void start() override {
    open_link();
    tick();
    watch();
  }
  void on_arrival(ConnectionId connection, const Hello&) override { answer_probe(connection); }
  void on_message(ConnectionId connection, const Payload& payload) override;
  void on_closed(ConnectionId connection) override;

 private:
  struct Link {
    ConnectionId connection = 0;
    bool open = false;
    std::uint64_t attempt = 0;
    Duration pause{};
    std::optional<Instant> patience;  // deadline for the first opening of the link; empty after that
    Instant heard;                    // while the link is open: when the shard was last heard
  };
  // The state of one ps. The worker may have several channels to it.
  struct Ps {
    Instant heard;
    bool has_complained = false;
  };

  Hello make_hello() override;
  void on_welcome() override { feed(workerd::ChiefReturned{}); }
  void on_away() override { feed(workerd::ChiefAway{}); }
  void on_other_journal() override {
    const bool held = held_.value != 0;
    drop_job();
    prepared_ = JobId();
    if (held) rejoin();
  }
  void on_order(const wire::ControlMessage& message) override;
  Heartbeat make_heartbeat() override;

  void open(const OpenJob& order);
  void drop_job();
  bool is_ours(JobId job, Generation generation) const {
    return core_ && order_.job == job && order_.generation == generation;
  }
  // Hands the event to the core. If the worker computes on its loop's thread, the event waits until the computation has
  // ended.
  void feed(const workerd::Event& event);
  void in_turn(std::function<void()> work);
  void feed_now(const workerd::Event& event);
  void supply();
  void tick();

  void dial_shard(ShardId shard);
  void lost_shard(ShardId shard, bool answered);
  Ps& ps_of(ShardId shard) { return ps_[order_.owners.at(shard.value).ps.task]; }
  void reached(ShardId shard);
  void watch();
  void describe(const DescribeJob& order);

  void carry_out(const workerd::ReportOpened&) { tell_chief(JobOpened{order_.job, order_.generation}); }
  void carry_out(const workerd::RequestLease& action);
  void carry_out(const workerd::RequestBatch& action);
  void carry_out(const workerd::DropBatch& action) { ready_.erase(action.ticket); }
  void carry_out(const workerd::SendPull& action);
  void carry_out(const workerd::SendPush& action);
  void carry_out(const workerd::SendMark& action);
  void carry_out(const workerd::LoadValues& action);
  void carry_out(const workerd::Compute& action);
  template <typename Body>
  void for_each_variable(std::vector<float>& flat, const Body& body);
  float compute_gradients(const workerd::Compute& action);
  void end_computation(float loss);
  bool spoil(std::vector<float>& gradient, std::uint64_t step);
  void carry_out(const workerd::Recompute& action);
  void carry_out(const workerd::DropCompute& action);
  void begin_computation();
  void carry_out(const workerd::RunEvaluation& action);
  void carry_out(const workerd::ReportEvaluated& action);
  void carry_out(const workerd::ReportFinished& action);
  void carry_out(const workerd::Accuse& action);
  void carry_out(const workerd::Fail& action);
  RunId run_id() const { return {order_.job, order_.generation}; }

  const Jobs& jobs_;
  Laws& laws_;
  const Duration slowest_step_;
  JobId held_;  // the job that the worker names in each hello; the first order for a job sets it
  Generation held_generation_;
  JobId prepared_;  // the job whose data this worker has read
  OpenJob order_;
  JobConfig config_;
  std::unique_ptr<workerd::WorkerCore> core_;
  std::uint64_t work_ = 0;  // see Heartbeat
  // Grows with each job. So a timer that was set for an earlier job notices the change, and does nothing.
  std::uint64_t runs_ = 0;
  bool busy_ = false;                          // computes or evaluates
  bool blocks_ = false;                        // computes on its loop's thread, as workerd does with short computations
  std::optional<workerd::Compute> computing_;  // the step that the engine computes
  bool is_begun_ = false;                      // all parameters of computing_ are there
  std::set<BucketId> missing_;                 // the buckets of computing_ that haven't arrived
  std::uint64_t final_ = 0;  // number of flat elements whose gradients the engine has announced in this step
  std::deque<std::function<void()>> deferred_;
  std::vector<Link> links_;
  std::map<ConnectionId, ShardId> shards_;
  std::map<TaskId, Ps> ps_;
  Instant watched_;
  std::map<workerd::BatchTicket, workerd::BatchOrder> batches_;
  std::set<workerd::BatchTicket> ready_;
  std::vector<std::vector<float>> parameters_;
  std::vector<std::map<BucketId, Step>> versions_;  // of the buckets in parameters_
  std::vector<std::vector<float>> gradients_;
  std::vector<std::vector<std::shared_ptr<std::vector<float>>>> lent_;  // by the index of the gradients
  std::vector<double> records_;      // for each gradient: the sum of value_of() over its records
  std::optional<CloseJob> closing_;  // set if an order to close the job came while busy_
  void read_data(const DescribeJob& order, std::uint64_t pieces_left);
  void close_job(const CloseJob& order);
  void fail_to_open(const OpenJob& order);
};

}  // namespace disttrain::sim
