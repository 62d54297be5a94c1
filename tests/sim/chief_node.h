// A simulated chiefd: the real core, and a simple version of the code in chiefd/chief.cc that surrounds the core. The
// ChiefDisk survives this process.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "chiefd/core/cluster.h"
#include "chiefd/folder_work.h"
#include "tests/sim/chief_journal.h"
#include "tests/sim/jobs.h"
#include "tests/sim/laws.h"
#include "tests/sim/network.h"

namespace disttrain::sim {

class ChiefNode final : public Node {
 public:
  ChiefNode(World& world, Network& network, Incarnation incarnation, const Jobs& jobs, Laws& laws, ChiefDisk& disk)
      : Node(world, network, TaskId{Role::kChief, 0}, incarnation),
        jobs_(jobs),
        laws_(laws),
        disk_(disk),
        journal_(world, disk, [&laws](const std::string& what) { laws.violated(what); }) {}

  void start() override;
  bool listens() const override { return listens_; }
  void on_arrival(ConnectionId connection, const Hello& hello) override;
  void on_message(ConnectionId connection, const Payload& payload) override;
  void on_closed(ConnectionId connection) override;

  // Clients call these functions to make requests. `name` is a job in Jobs::configs.
  void submit(const std::string& name);
  void stop(const std::string& name, bool kill);
  void save(const std::string& name);
  void reconfigure(Duration heartbeat_timeout);
  // Another process says hello in the name of a task that is already connected. `drawn` is a random number that chooses
  // the task.
  void claim_a_place(std::uint64_t drawn);
  // L2: each client gets its answer within kClientPatience. `runs_since`: when this process was paused last.
  void check_clients(Instant runs_since);

  const chiefd::Cluster& cluster() const { return *cluster_; }
  Welcome make_welcome() const;
  // The jobs whose clients were told that the job is accepted.
  const std::set<std::string>& accepted() const { return accepted_; }
  // Returns true if the job ended under an earlier chief. The journal says that it ended, but has no figures about it.
  bool knows_by_journal_alone(const std::string& name) const { return ended_before_.count(name) != 0; }

 private:
  void step(const chiefd::Event& event);
  // I29: if another process claims a task's place, the task's process keeps the place as long as it answers the chief's
  // probes.
  void check_displaced(const chiefd::Event& event, const chiefd::Action& action);
  void act(const chiefd::Listen&) { listens_ = true; }
  void act(const chiefd::Admit& action);
  void act(const chiefd::RefuseTask& action);
  void act(const chiefd::Disconnect& action);
  void act(const chiefd::Send& action);
  void act(const chiefd::Probe& action);
  void act(const chiefd::Persist& action);
  void act(const chiefd::FolderWork& action);
  void act(const chiefd::CloseFolder& action);
  void act(const chiefd::AnswerClient& action);
  void note(const chiefd::Record& record);
  void gives_up(const chiefd::EventRecord& event);
  // I26: if the chief reports a task as lost, a fault has hit that task.
  void blames(const std::string& whom, const std::string& why);
  void act(const chiefd::JobEnded&) {}
  void act(const chiefd::Note& action) { tell(action.text); }
  void tick();

  const Jobs& jobs_;
  Laws& laws_;
  ChiefDisk& disk_;
  ChiefJournal journal_;
  std::map<JobId, std::unique_ptr<chiefd::JobFolder>> folders_;
  std::unique_ptr<chiefd::Cluster> cluster_;
  bool listens_ = false;
  std::map<TaskId, ConnectionId> connections_;
  std::map<ConnectionId, Member> members_;
  std::map<ConnectionId, Member> probes_;  // the open probes, each with the process that it looks for
  ConnectionId joining_ = 0;
  ConnectionId last_claim_ = ConnectionId{1} << 62;
  std::map<TaskId, Incarnation> admitted_;  // by task, the last process that this chief admitted
  std::set<TaskId> seen_lost_;  // the tasks that were reported as lost or left since their last process was admitted
  Instant written_;             // when the current write to the chief's own disk ends
  Instant next_written_;        // when the write after the current one ends
  Instant folder_free_;         // when the shared disk has done all requests so far
  std::map<JobId, chiefd::EvaluationsRecord> evaluations_;  // the newest record of each job, durable or not
  std::set<std::string> accepted_;
  std::set<std::string> ended_before_;
  std::uint64_t last_client_ = 0;
  std::map<std::uint64_t, std::string> submitting_;
  std::map<std::uint64_t, Instant> asked_;  // when each client asked to save or stop a job
};

}  // namespace disttrain::sim
