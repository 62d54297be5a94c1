// A simulated chiefd: the real core, and what chiefd/chief.cc does around it. The ChiefDisk outlives it.
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

  // A client's requests. `name` is a job of Jobs::configs.
  void submit(const std::string& name);
  void stop(const std::string& name, bool kill);
  void save(const std::string& name);
  void reconfigure(Duration heartbeat_timeout);
  // A process with another incarnation says hello as a task that is connected. `drawn` chooses the task.
  void claim_a_place(std::uint64_t drawn);
  // L2: each client gets its answer within a bound.
  void check_clients();

  const chiefd::Cluster& cluster() const { return *cluster_; }
  Welcome make_welcome() const;
  // The jobs that a client was told are accepted.
  const std::set<std::string>& accepted() const { return accepted_; }
  // The job ended under an earlier chief. The journal has its end, but no figures.
  bool knows_by_journal_alone(const std::string& name) const { return ended_before_.count(name) != 0; }

 private:
  void step(const chiefd::Event& event);
  // I29: a claim alone displaces no process, and a process that answers its probe isn't displaced.
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
  // I26: a task that the chief reports as lost was hit by a fault.
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
  std::map<ConnectionId, Member> probes_;  // open probes, and the process that each one looks for
  ConnectionId joining_ = 0;
  ConnectionId last_claim_ = ConnectionId{1} << 62;
  std::map<TaskId, Incarnation> admitted_;  // the last that this chief admitted
  std::set<TaskId> seen_lost_;              // tasks that were lost or left since then
  Instant written_;                         // when the disk finishes the current write
  Instant next_written_;                    // when it finishes the write after that
  Instant folder_free_;                     // when the shared disk finishes its last request
  std::set<std::string> accepted_;
  std::set<std::string> ended_before_;
  std::uint64_t last_client_ = 0;
  std::map<std::uint64_t, std::string> submitting_;
  std::map<std::uint64_t, Instant> asked_;  // requests to save or stop a job, and since when
};

}  // namespace disttrain::sim
