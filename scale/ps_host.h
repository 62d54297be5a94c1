// A ps: the real cores of its shards, and a simple version of the code in psd that surrounds them. Updates take no
// time.
#pragma once

#include <memory>
#include <vector>

#include "scale/task_host.h"
#include "shards/core/shard_core.h"

namespace disttrain::scale {

class PsHost final : public TaskHost {
 public:
  PsHost(Surroundings& around, Member self, std::uint32_t threads) : TaskHost(around, self), threads_(threads) {}

  // What workers send.
  void on_channel_hello(WorkerHost& worker, const ChannelHello& hello);
  void on_pull(ShardId shard, shards::ChannelId channel, const Pull& pull);
  void on_push(ShardId shard, const shards::PushArrived& event);
  // What other shards send.
  void on_peer_hello(PsHost& from, ShardId peer);
  void on_peer_welcome(ShardId shard);
  void on_staged(const Staged& staged);
  template <typename Event>
  void on_pacer(ShardId shard, const Event& event) {
    if (Shard* own = find(shard)) handle(*own, event);
  }

 private:
  struct Shard {
    ShardId id;
    std::unique_ptr<shards::ShardCore> core;
    bool is_ready = false;
    bool is_open = false;  // the link to the pacer is open
  };
  struct Peer {
    ShardId shard;
    PsHost* ps = nullptr;
  };

  TaskHello make_hello() const override;
  Heartbeat make_heartbeat() override;
  void on_order(const wire::ControlMessage& message) override;

  void create(const CreateShards& order);
  void dial_pacer(ShardId shard);
  void became_ready(Shard& shard);
  Shard* find(ShardId shard);
  void handle(Shard& shard, const shards::Event& event);
  void carry_out(Shard& shard, shards::Actions& actions);
  // Sends what on_pacer() of each peer takes.
  template <typename Event, typename Message>
  void send_to_peers(const Message& message);

  void act(Shard& shard, const shards::Admit& action);
  void act(Shard& shard, const shards::Refuse& action);
  void act(Shard& shard, const shards::CloseChannel& action);
  void act(Shard& shard, const shards::Reply& action);
  void act(Shard& shard, const shards::SendAcknowledge& action);
  void act(Shard& shard, const shards::SendStaged& action);
  void act(Shard& shard, const shards::SendCommit& action);
  void act(Shard& shard, const shards::SendNews& action);
  void act(Shard& shard, const shards::RosterTaken& action);
  void act(Shard& shard, const shards::Fenced& action);
  void act(Shard& shard, const shards::JudgeStep& action);
  void act(Shard&, const shards::ReportNow&) { tell_chief(make_heartbeat()); }
  void act(Shard& shard, const shards::FailJob& action);
  template <typename Other>
  void act(Shard&, const Other&) {}  // what only the store does

  const std::uint32_t threads_;
  JobId job_;
  Generation generation_;
  std::vector<Owner> owners_;
  std::vector<std::uint64_t> bucket_bytes_;
  std::vector<std::unique_ptr<Shard>> shards_;
  std::vector<WorkerHost*> channels_;   // by ChannelId - 1
  std::vector<Peer> peers_;             // of the pacer
  std::vector<shards::Actions> spare_;  // memory for actions
  bool is_created_ = false;
  std::uint64_t turns_ = 0;
};

}  // namespace disttrain::scale
