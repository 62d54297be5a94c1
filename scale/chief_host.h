// The chief: its real core, and a simple version of the code in chiefd that surrounds it. A write to its journal takes
// one millisecond.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "chiefd/core/cluster.h"
#include "scale/task_host.h"

namespace disttrain::scale {

class ChiefHost {
 public:
  // The job begins when `workers` workers are there.
  ChiefHost(Surroundings& around, const JobConfig& job, std::uint32_t workers);
  ChiefHost(const ChiefHost&) = delete;

  void start();
  HostId host() const { return host_; }
  bool is_over() const { return is_over_; }
  const Timeouts& timeouts() const { return cluster_.timeouts(); }

  // What the tasks send.
  void on_hello(TaskHost& task, const TaskHello& hello);
  void on_frame(const Member& from, const wire::EncodedControl& frame);

  // The heartbeats of the measured steps that were answered and led to nothing else: their number, and what they cost
  // the core and the codec.
  struct Heartbeats {
    std::uint64_t count = 0;
    Duration core{};
    Duration codec{};
  };
  const Heartbeats& heartbeats() const { return heartbeats_; }
  // Handles some of these heartbeats again, one right after the other, and returns what they cost now. The chief of a
  // real cluster has a processor to itself. Here the cores of all other tasks run between two heartbeats, so the chief
  // never finds its memory in the caches.
  Heartbeats handle_again();

 private:
  // The time that the meters of the chief show.
  Heartbeats spent() const;
  void step(const chiefd::Event& event);
  void tick();
  template <typename Actions>
  void carry_out(const Actions& actions);

  void act(const chiefd::Listen& action);
  void act(const chiefd::Admit& action);
  void act(const chiefd::RefuseTask& action);
  void act(const chiefd::Disconnect& action);
  void act(const chiefd::Send& action);
  void act(const chiefd::Probe& action);
  void act(const chiefd::Persist& action);
  void act(const chiefd::FolderWork& action);
  void act(const chiefd::CloseFolder&) {}
  void act(const chiefd::AnswerClient& action);
  void act(const chiefd::JobEnded& action);
  void act(const chiefd::Note&) {}

  Surroundings& around_;
  const HostId host_;
  const JobConfig job_;
  const std::uint32_t workers_;
  chiefd::Cluster cluster_;
  std::map<TaskId, TaskHost*> tasks_;
  bool is_over_ = false;
  Heartbeats heartbeats_;
  struct Received {
    Member from;
    wire::EncodedControl frame;
  };
  std::vector<Received> kept_;  // some of the heartbeats that are counted in heartbeats_
};

}  // namespace disttrain::scale
