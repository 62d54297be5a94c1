// A simulated psd: the real shards, core and store, and a simple version of the code in psd/ps_daemon.cc and
// shards/shard_service.cc that surrounds them.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "common/checkpoint/shard_file.h"
#include "shards/shard_job.h"
#include "shards/store/shard.h"
#include "tests/sim/chief_link.h"
#include "tests/sim/jobs.h"
#include "tests/sim/laws.h"
#include "tests/sim/shard_twin.h"

namespace disttrain::sim {

class PsNode final : public TaskNode {
 public:
  PsNode(World& world, Network& network, Member self, const Jobs& jobs, Laws& laws)
      : TaskNode(world, network, self, jobs.cluster.chief.address, jobs.cluster.heartbeat.timeout),
        jobs_(jobs),
        laws_(laws) {}

  void start() override { open_link(); }
  void on_arrival(ConnectionId connection, const Hello& hello) override;
  void on_message(ConnectionId connection, const Payload& payload) override;
  void on_closed(ConnectionId connection) override;

 private:
  struct ShardHere final : shards::Outside {
    PsNode* ps = nullptr;
    ShardId id;
    std::unique_ptr<shards::Shard> shard;
    std::unique_ptr<ShardTwin> twin;
    std::map<shards::ChannelId, ConnectionId> channels;
    std::map<ShardId, ConnectionId> peers;
    bool ready = false;
    Instant answered_at;  // the time of the last answer from the pacer's ps
    // If true, the shard has told the chief that the pacer's ps doesn't answer.
    bool has_complained = false;
    bool has_asked_for_values = false;
    // What the workers of the open channels have lent.
    std::map<shards::ChannelId, std::vector<std::shared_ptr<std::vector<float>>>> lent;

    void act(const shards::Action& action) override {
      std::visit(
          [this](const auto& a) {
            if constexpr (requires { twin->says(a); }) twin->says(a);
            ps->carry_out(*this, a);
          },
          action);
    }
    void before_update(BucketId) override {}
    void goes_on() override {}
    void update_begins() override {}
    void update_ended() override {}
  };
  struct OpenJob {
    CreateShards order;
    JobConfig config;
    std::map<ShardId, std::unique_ptr<ShardHere>> shards;
    bool created = false;
    std::optional<TaskFailed> failed;
    std::uint64_t work = 0;
    std::shared_ptr<shards::ShardJob> facts;
    // The newest checkpoint attempt.
    std::uint64_t attempt = 0;
    bool is_attempt_over = false;
    std::vector<wire::ControlMessage> said;  // reports about the attempt
    std::string folder;
    std::map<ShardId, checkpoint::ShardWriter> writers;
  };
  // A connection links a shard with a worker or with another shard.
  struct Use {
    ShardId shard;
    shards::ChannelId channel;    // a worker's
    std::optional<ShardId> peer;  // or another shard's
    bool is_waiting = false;      // waits for the pacer to answer the hello
    // If true, the link has carried messages that a new link wouldn't repeat.
    bool has_carried = false;
    Instant heard{};  // when the other shard was last heard
  };

  Hello make_hello() override;
  void on_welcome() override {
    if (!job_) return;
    if (job_->failed) tell_chief(*job_->failed);
    for (const wire::ControlMessage& report : job_->said) tell_chief(report);
  }
  void on_other_journal() override {
    const bool held = job_.has_value();
    drop_job();
    if (held) rejoin();
  }
  void on_order(const wire::ControlMessage& message) override;
  Heartbeat make_heartbeat() override;
  void before_heartbeat() override {
    give_up_marks();
    watch_peers();
  }

  void create(const CreateShards& order);
  // Lets the time for each piece of the restore pass, and then makes the shards.
  void restore(std::uint64_t pieces_left);
  void make_shards();
  bool is_longer_than_setup() const;
  void drop_job();
  bool is_open(JobId job, Generation generation) const {
    return job_ && job_->order.job == job && job_->order.generation == generation;
  }
  void dial_pacer(ShardId shard);
  void became_ready(ShardHere& shard);
  void handle(ShardHere& shard, const shards::Event& event);
  void handle_push(ShardHere& shard, shards::ChannelId channel, const PushFrame& frame);
  Status take_payload(ShardHere& shard, shards::ChannelId channel, const PushFrame& frame);
  void scribble_over(ShardHere& shard, shards::ChannelId channel);
  void close_channel(ShardHere& shard, shards::ChannelId channel);
  void lost_peer(ShardHere& shard, ShardId peer, Duration lasts);
  void dial_pacer_again(ShardId shard, bool answered);
  void end_peer_link(ConnectionId connection, Use use, Duration lasts);
  void watch_peers();
  void fail(ErrorCode code, const std::string& reason);

  void carry_out(ShardHere& shard, const shards::Admit& action);
  void carry_out(ShardHere& shard, const shards::Refuse& action);
  void carry_out(ShardHere& shard, const shards::CloseChannel& action) {
    close_channel(shard, action.channel);
    scribble_over(shard, action.channel);
  }
  void carry_out(ShardHere& shard, const shards::Reply& action);
  void carry_out(ShardHere& shard, const shards::SendAcknowledge& action);
  void carry_out(ShardHere& shard, const shards::SendStaged& action) { send_to_peers(shard, action.message); }
  void carry_out(ShardHere& shard, const shards::SendCommit& action) { send_to_peers(shard, action.message); }
  void carry_out(ShardHere& shard, const shards::SendNews& action) { send_to_peers(shard, action.message); }
  void carry_out(ShardHere& shard, const shards::Fenced& action);
  void carry_out(ShardHere& shard, const shards::RosterTaken& action);
  void carry_out(ShardHere&, const shards::ReportNow&) { tell_chief(make_heartbeat()); }
  void carry_out(ShardHere&, const shards::FailJob& action) { fail(action.code, action.reason); }
  void carry_out(ShardHere& shard, const shards::SendMarkTaken& action);
  void carry_out(ShardHere& shard, const shards::SendCut& action) { send_to_peers(shard, action.message); }
  void carry_out(ShardHere& shard, const shards::CopyForCheckpoint& action);
  void carry_out(ShardHere& shard, const shards::MarksGivenUp& action);
  template <typename Other>
  void carry_out(ShardHere&, const Other&) {}  // actions for the store alone
  void prepare(const PrepareCheckpoint& order);
  void write(ShardId shard, const shards::CopyForCheckpoint& cut, const std::shared_ptr<const shards::ShardCopy>& copy);
  void give_up_marks();
  void say(wire::ControlMessage report);
  void fail_checkpoint(std::uint64_t attempt, const Error& error);
  void send_to_peers(ShardHere& shard, const Payload& payload);

  const Jobs& jobs_;
  Laws& laws_;
  std::optional<OpenJob> job_;
  // Grows with each job. So a timer that was set for an earlier job notices the change, and does nothing.
  std::uint64_t jobs_opened_ = 0;
  std::map<ConnectionId, Use> uses_;
  std::uint64_t last_channel_ = 0;
  std::uint64_t turns_ = 0;
};

}  // namespace disttrain::sim
