// The chief's shell. It turns connections, messages, ticks of the clock and finished disk work into events for the
// core, and carries out the core's actions. The shell itself decides only two things: whether a hello has the right
// protocol version and cluster name, and which clients (command lines) may stay connected.
//
// One event loop owns the state of this class. Other threads write the journal, read job files, work on checkpoint
// folders and write TensorBoard's event files. The chief limits the number of connections, the queued bytes of each
// connection (it drops a peer that doesn't read), the clients that wait for a job's end, the submitted jobs that wait
// to be read, and the log lines that it keeps.
#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "chiefd/chief_metrics.h"
#include "chiefd/client_admission.h"
#include "chiefd/core/cluster.h"
#include "chiefd/curves/curves.h"
#include "chiefd/folder_keeper.h"
#include "chiefd/job_reader.h"
#include "chiefd/journal/writer.h"
#include "chiefd/log_store.h"
#include "chiefd/peer.h"
#include "chiefd/status_json.h"
#include "chiefd/task_probe.h"
#include "chiefd/traces/job_traces.h"
#include "common/checkpoint/disk_files.h"
#include "common/config/cluster_config.h"
#include "common/daemon/log/log.h"
#include "common/daemon/service.h"
#include "common/messages/client.h"
#include "common/metrics/page.h"
#include "transport/connection.h"

namespace disttrain::chiefd {

class Chief {
 public:
  struct Setup {
    ClusterConfig cluster;
    // The address in the cluster file, or the socket that systemd has opened for the chief ("fd:3").
    std::string listen_address;
    // The address of the chief's /metrics page. "": the chief serves none.
    std::string metrics_address{};
    JournalFile::Opened journal;               // of a new journal too, the state has an id
    std::uint64_t seed = 0;                    // random
    Incarnation incarnation{};                 // of this process
    std::map<JobId, std::uint32_t> crashes{};  // see Cluster::Setup
    // Called with the chief's address as soon as the chief listens.
    std::function<void(const std::string&)> on_listening;
    // Called when the chief can't go on, for example because its port is in use or its disk has failed.
    std::function<void(const Error&)> on_failed;
  };
  // The loop, the transport and the log must outlive the chief. The constructor starts the chief.
  Chief(asio::io_context& loop, transport::Transport& transport, daemon::Log& log, Setup setup);
  ~Chief();

  // For systemd.
  daemon::ServiceState state() const;
  // The text of status.json, which the status page loads.
  std::string page_json() const;
  // Applies a changed cluster file. Only the settings that may change while the chief runs take effect.
  void change(const ClusterConfig& cluster);
  // Names the event that the chief waits for before it listens for connections. Returns "" once the chief listens,
  // because it is then ready.
  std::string waits_for() const;
  void collect(metrics::Page& page) const;

 private:
  struct Wait {
    JobId job;
    Instant deadline;
  };
  struct Follower {
    PeerId client;
    LogFilter filter;
  };
  struct EventFollower {
    PeerId client;
    std::optional<JobId> job;  // none: all
  };
  struct Span {
    std::int64_t begin = 0;
    std::int64_t end = INT64_MAX;
  };

  // These functions handle events. step() passes an event to the core and carries out the core's actions.
  void on_arrival(std::unique_ptr<transport::Arrival> arrival);
  void on_message(PeerId peer, const wire::ControlMessage& message);
  void take(Peer& peer, const wire::ControlMessage& message);
  void on_closed(PeerId peer, const Error& why);
  void on_tick();
  void take_own_lines();
  void look_at_curves();
  // Answers the clients whose wait `is_over` with the status of the job that they wait for.
  void answer_waiters(const std::function<bool(const Wait&)>& is_over);
  JobStatus job_status(JobId job) const;  // the core's status, and what only the shell knows
  bool knows(JobId job) const;
  // The answer for a client that waited for the job: the job's status, unless the chief has forgotten the job
  // meanwhile.
  wire::ControlMessage final_status(JobId job) const;
  // True if the job has ended, or was forgotten since, and no trace is awaited.
  bool is_over(JobId job) const;
  void step(const Event& event);

  // Connections.
  std::optional<Refused> refusal_of(const Hello& hello) const;
  void refuse(transport::Arrival& arrival, const Refused& why);
  Peer& adopt(transport::Arrival& arrival, std::uint64_t max_blob_bytes);
  void join_task(transport::Arrival& arrival, const Hello& hello);
  void drop(PeerId peer);
  Welcome make_welcome(std::uint64_t cluster_hash) const;

  // These functions carry out the core's actions.
  Status listen();
  void carry_out(Actions actions);
  void act(const Listen& action);
  void act(const Admit& action);
  void act(const RefuseTask& action);
  void act(const Disconnect& action);
  void act(const Send& action);
  void act(const Probe& action);
  void act(const Persist& action);
  void act(const FolderWork& action);
  void act(const CloseFolder& action);
  void act(const AnswerClient& action);
  void act(const JobEnded& action);
  void act(const Note& action);

  // These functions are in chief_clients.cc. They admit clients (command lines) and answer their requests.
  void admit_client(transport::Arrival& arrival, const ClientHello& hello);
  void answer(PeerId client, const wire::ControlMessage& message);
  void look_at_clients(Instant now);
  ClientAdmission::Use use_of(PeerId client) const;
  bool drops_for_unread(PeerId client, Instant now);
  void bound_queues();
  void on_request(Peer& client, const wire::ControlMessage& message);
  void submit(Peer& client, const SubmitJob& request);
  void submit_read(PeerId client, const SubmitJob& request, Result<JobConfig> config, Instant begin);
  void take_submission(PeerId client, const SubmitJob& request, Result<JobConfig> config);
  void give_status(Peer& client, const StatusRequest& request);
  void give_logs(Peer& client, const LogsRequest& request);
  LogFilter lines_of(JobId job) const;  // of the time of this job
  void give_events(Peer& client, const EventsRequest& request);
  void add_event(const EventRecord& event);
  nlohmann::json status_of(std::optional<JobId> job) const;
  std::string status_json(std::optional<JobId> job) const;
  std::string all_status_json() const;
  ChiefStatus chief_status() const;
  void add_lines(TaskId task, LogLines lines);

  // Constant.
  asio::io_context& loop_;
  transport::Transport& transport_;
  daemon::Log& log_;
  const std::string listen_address_;
  const std::string metrics_address_;
  const std::function<void(const std::string&)> on_listening_;
  const std::function<void(const Error&)> on_failed_;
  // Calls that were posted to the loop hold a weak pointer to this flag, and do nothing once the chief is destroyed.
  const std::shared_ptr<bool> is_alive_;

  ClusterConfig config_;
  std::unique_ptr<Cluster> cluster_;
  std::unique_ptr<ChiefMetrics> metrics_;
  std::unique_ptr<JournalWriter> journal_;
  checkpoint::DiskFiles disk_files_;
  std::unique_ptr<FolderKeeper> folders_;
  std::unique_ptr<transport::Listener> listener_;
  asio::steady_timer timer_;
  std::map<PeerId, std::unique_ptr<Peer>> peers_;
  std::map<TaskId, PeerId> task_peers_;
  std::map<TaskId, std::unique_ptr<TaskProbe>> probes_;  // the newest running probe of each task
  PeerId last_peer_;
  // The peer whose hello the core is handling (TaskJoined). Null at all other times.
  Peer* joining_ = nullptr;
  std::uint64_t joining_hash_ = 0;
  // The peer whose message the chief is handling now.
  PeerId speaker_;
  // The outcome of the message that the chief is handling now, for the metrics. None: the chief answers the message
  // later.
  std::optional<metrics::RpcCode> outcome_;
  // The outcome of the hello that the chief is answering now, for the metrics.
  metrics::RpcCode hello_outcome_ = metrics::RpcCode::kOk;
  // When the chief next measures how the job uses its time (core/goodput.h).
  Instant next_look_;
  ClientAdmission admission_;
  std::unique_ptr<JobReader> reader_;
  std::map<PeerId, Wait> waits_;  // of the clients that wait for a job's end: one each
  std::vector<Follower> followers_;
  std::vector<EventFollower> event_followers_;
  std::deque<EventRecord> events_;  // the newest kMaxEvents
  LogStore logs_;
  Curves curves_;
  JobTraces traces_;
  // The begin and end of each job by the wall clock. The chief selects the log lines of a job by these times.
  std::map<JobId, Span> spans_;
};

}  // namespace disttrain::chiefd
