#include "tests/sim/chief_node.h"

#include <algorithm>

namespace disttrain::sim {
namespace {

constexpr Duration kClientPatience = std::chrono::seconds(60);
constexpr Duration kFullDiskPause = std::chrono::milliseconds(200);

}  // namespace

void ChiefNode::start() {
  if (!journal_.open()) return after(kFullDiskPause, [this] { start(); });
  laws_.begins(disk_.journal);
  chiefd::JournalState journal = disk_.journal;
  if (journal.journal.value == 0) journal.journal = JournalId(77);
  chiefd::Cluster::Setup setup{.config = jobs_.cluster,
                               .journal = std::move(journal),
                               .jobs = {},
                               .seed = self().incarnation.value,
                               .clocks = disk_.clocks(world_.now()),
                               .self = self().incarnation};
  for (const auto& [id, job] : disk_.journal.jobs) {
    setup.jobs.emplace(id, chiefd::RecoveredJob{job, jobs_.read(job.submitted.toml)});
    if (job.evaluations) evaluations_[id] = *job.evaluations;
    if (chiefd::is_final(job.state)) ended_before_.insert(job.submitted.name);
  }
  cluster_ = std::make_unique<chiefd::Cluster>(std::move(setup));
  tell("begins, term " + std::to_string(cluster_->term().value));
  for (const chiefd::Action& action : cluster_->start(now())) std::visit([this](const auto& a) { act(a); }, action);
  tick();
}

void ChiefNode::tick() {
  step(chiefd::Tick{});
  after(cluster_->timeouts().interval / 2, [this] { tick(); });
}

void ChiefNode::step(const chiefd::Event& event) {
  const chiefd::Actions actions = cluster_->step(now(), event);
  if (const auto broken = cluster_->broken_invariant()) laws_.violated(*broken);
  for (const chiefd::Action& action : actions) {
    check_displaced(event, action);
    std::visit([this](const auto& a) { act(a); }, action);
  }
}

void ChiefNode::check_displaced(const chiefd::Event& event, const chiefd::Action& action) {
  const auto* gone = std::get_if<chiefd::Disconnect>(&action);
  if (gone == nullptr) return;
  const auto* joined = std::get_if<chiefd::TaskJoined>(&event);
  if (joined != nullptr && joined->hello.member.task == gone->member.task && joined->hello.member != gone->member)
    laws_.violated("I29: " + to_string(gone->member.task) +
                   " loses its place to a claim that the chief hasn't checked");
  const auto* probe = std::get_if<chiefd::ProbeDone>(&event);
  if (probe != nullptr && probe->outcome == chiefd::ProbeOutcome::kAnswered && probe->answered_by == gone->member)
    laws_.violated("I29: " + to_string(gone->member.task) + " loses its place although it answered its probe");
}

void ChiefNode::claim_a_place(std::uint64_t drawn) {
  if (connections_.empty()) return;
  auto victim = connections_.begin();
  std::advance(victim, drawn % connections_.size());
  TaskHello hello;
  hello.member = Member{victim->first, Incarnation(drawn | std::uint64_t{1} << 62)};
  hello.address = address_of(jobs_.cluster, victim->first);
  hello.host = "elsewhere";
  hello.shards = 2;
  tell("gets a hello from another process that claims the place of " + to_string(victim->first));
  joining_ = ++last_claim_;  // the process that claims the place has no connection in the simulation
  step(chiefd::TaskJoined{hello});
  joining_ = 0;
}

void ChiefNode::submit(const std::string& name) {
  submitting_[++last_client_] = name;
  step(chiefd::Submit{chiefd::ClientId(last_client_), chiefd::Submission{name, jobs_.configs.at(name), 0}});
}

void ChiefNode::stop(const std::string& name, bool kill) {
  asked_[++last_client_] = world_.now();
  step(chiefd::Stop{chiefd::ClientId(last_client_), name, kill, "sim"});
}

void ChiefNode::save(const std::string& name) {
  tell("a client wants a checkpoint");
  world_.count(Happening::kClientSaves);
  asked_[++last_client_] = world_.now();
  step(chiefd::Save{chiefd::ClientId(last_client_), name});
}

void ChiefNode::reconfigure(Duration heartbeat_timeout) {
  tell("has another heartbeat timeout");
  // Until the tasks learn the new timeout, they may send heartbeats too seldom for it. So the chief may suspect any of
  // them.
  for (const PsConfig& ps : jobs_.cluster.ps) network_.harm.hit(ps.address);
  for (const WorkerConfig& worker : jobs_.cluster.workers) network_.harm.hit(worker.address);
  step(chiefd::Reconfigured{heartbeat_timeout});
}

// L2. The chief may need a disk for its answer. While a disk hangs, only the job's own time limits end the wait, and
// these are longer than kClientPatience. A chief that is paused answers nobody. So kClientPatience counts from the
// moment when the chief runs and no disk hangs any more.
void ChiefNode::check_clients(Instant runs_since) {
  const Instant begin = std::max({runs_since, disk_.hung_until, jobs_.disk->hangs_until()});
  for (const auto& [client, since] : asked_)
    if (world_.now() - std::max(since, begin) > kClientPatience)
      laws_.violated("L2: a client has waited for its answer for more than a minute");
}

void ChiefNode::on_arrival(ConnectionId connection, const Hello& hello) {
  const auto* task = std::get_if<TaskHello>(&hello.who);
  if (task == nullptr) return close(connection);
  const TaskId id = task->member.task;
  const auto before = admitted_.find(id);
  const bool is_another = before != admitted_.end() && before->second != task->member.incarnation;
  joining_ = connection;
  step(chiefd::TaskJoined{*task});
  joining_ = 0;
  if (members_.count(connection) == 0) return;  // refused
  // I4: when another process takes the task's place, the chief must have noticed that the former one died, even if the
  // new one came at once.
  const auto now_there = admitted_.find(id);
  if (is_another && now_there->second == task->member.incarnation && seen_lost_.count(id) == 0)
    laws_.violated("I4: " + to_string(id) + " is a new process, but the chief hasn't noticed that the former one died");
  if (now_there != admitted_.end() && now_there->second == task->member.incarnation) seen_lost_.erase(id);
}

void ChiefNode::on_message(ConnectionId connection, const Payload& payload) {
  if (const auto probe = probes_.extract(connection)) {
    const auto* answer = std::get_if<wire::HelloAnswer>(&payload);
    const auto* refused = answer != nullptr ? std::get_if<Refused>(answer) : nullptr;
    close(connection);
    return step(chiefd::ProbeDone{probe.mapped(), chiefd::ProbeOutcome::kAnswered, refused ? refused->by : Member()});
  }
  const auto member = members_.find(connection);
  if (member == members_.end()) return;
  const Member from = member->second;
  std::visit(
      [this, &from](const auto& m) {
        if constexpr (std::is_constructible_v<chiefd::FromTask, decltype(m)>) step(chiefd::TaskMessage{from, m});
      },
      std::get<wire::ControlMessage>(payload));
}

void ChiefNode::on_closed(ConnectionId connection) {
  if (const auto probe = probes_.extract(connection))
    return step(chiefd::ProbeDone{probe.mapped(), chiefd::ProbeOutcome::kNoAnswer});
  const auto found = members_.extract(connection);
  if (found.empty()) return;
  const Member member = found.mapped();
  const auto current = connections_.find(member.task);
  if (current == connections_.end() || current->second != connection) return;
  connections_.erase(current);
  step(chiefd::ConnectionLost{member, "reset"});
}

void ChiefNode::act(const chiefd::Admit& action) {
  const auto old = connections_.find(action.member.task);
  if (old != connections_.end()) {
    members_.erase(old->second);
    close(old->second);
  }
  connections_[action.member.task] = joining_;
  members_[joining_] = action.member;
  admitted_[action.member.task] = action.member.incarnation;
  laws_.welcomes(cluster_->term(), disk_.journal);
  send(joining_, wire::HelloAnswer(make_welcome()));
}

Welcome ChiefNode::make_welcome() const {
  Welcome welcome;
  welcome.term = cluster_->term();
  welcome.journal = cluster_->journal();
  welcome.chief = cluster_->self();
  welcome.former = cluster_->former_chiefs();
  welcome.heartbeat_timeout = cluster_->timeouts().silent;
  return welcome;
}

void ChiefNode::act(const chiefd::RefuseTask& action) {
  tell("refuses " + to_string(action.member.task) + ": " + action.refused.reason);
  send(joining_, wire::HelloAnswer(action.refused));
  close(joining_);
}

void ChiefNode::act(const chiefd::Disconnect& action) {
  const auto current = connections_.find(action.member.task);
  if (current == connections_.end() || members_.at(current->second) != action.member) return;
  const ConnectionId connection = current->second;
  members_.erase(connection);
  connections_.erase(current);
  close(connection);
}

void ChiefNode::act(const chiefd::Send& action) {
  const auto current = connections_.find(action.task);
  if (current == connections_.end()) return;
  laws_.sends(action, disk_.journal);
  std::visit(
      [&](auto message) {
        if constexpr (requires { message.layout; })
          message.layout = in_small_buckets(message.layout, jobs_.bucket_elements);
        send(current->second, wire::ControlMessage(std::move(message)));
      },
      action.message);
}

void ChiefNode::act(const chiefd::Probe& action) {
  Hello hello;
  hello.who = ClientHello{"chief"};
  const auto done = [this, member = action.member](chiefd::ProbeOutcome outcome) {
    step(chiefd::ProbeDone{member, outcome});
  };
  dial(action.address, hello, cluster_->timeouts().probe,
       [this, done, member = action.member](std::optional<ConnectionId> connection, bool refused) {
         if (!connection) return done(refused ? chiefd::ProbeOutcome::kRefused : chiefd::ProbeOutcome::kNoAnswer);
         probes_[*connection] = member;
         after(cluster_->timeouts().probe, [this, done, connection] {
           if (probes_.erase(*connection) == 0) return;
           close(*connection);
           done(chiefd::ProbeOutcome::kNoAnswer);
         });
       });
}

// Records become durable in the order in which they were written. If the process dies, the records that aren't durable
// yet are lost.
void ChiefNode::act(const chiefd::Persist& action) {
  note(action.record);
  const Duration takes = world_.between(std::chrono::microseconds(50), disk_.slowest);
  if (world_.now() >= next_written_) {
    written_ = next_written_ = std::max(world_.now(), disk_.hung_until) + takes;
  } else {
    // All records that arrive during a write are written together by the next one.
    if (world_.now() >= written_) written_ = next_written_;
    if (next_written_ == written_) next_written_ = std::max(written_, disk_.hung_until) + takes;
  }
  chiefd::Persist stamped = action;
  if (auto* event = std::get_if<chiefd::EventRecord>(&stamped.record)) {
    event->wall_nanoseconds = disk_.clocks(world_.now()).wall_nanoseconds;
    event->uptime_nanoseconds = disk_.clocks(world_.now()).uptime_nanoseconds;
  }
  journal_.begin(stamped.record);
  after(next_written_ - world_.now(), [this, action = std::move(stamped)] {
    if (!journal_.complete()) return disk_.on_failed();
    // The laws learn of a generation when its record is durable. If the chief dies before, the next chief may use the
    // same number again.
    if (const auto* generation = std::get_if<chiefd::GenerationRecord>(&action.record)) {
      laws_.generation_begins(*generation);
      const std::string& name = disk_.journal.jobs.at(generation->job).submitted.name;
      laws_.restarts(jobs_.configs.at(name), *generation, cluster_->term());
      laws_.rolls_back(*generation, "/c/" + name);
    }
    step(chiefd::Persisted{action.ticket});
  });
}

void ChiefNode::blames(const std::string& whom, const std::string& why) {
  const auto says = [&why](const char* what) { return why.find(what) != std::string::npos; };
  // A task may be lost without a fault for one of two reasons: the chief told the task to begin anew, or the task
  // reports a problem with the disk.
  const bool was_told_to = says("it has started over");
  if (was_told_to || says("input/output error") || says("isn't the folder that the chief sees")) return;
  // A worker that comes back late to a new chief may be reported as lost, too. This does no harm: the job lends no
  // records while the new chief waits for its tasks, and the chief takes the late worker back.
  if (says("was lost while the chief was away") && whom.starts_with("worker/")) return;
  const auto task = parse_task_id(whom);
  if (task && !network_.harm.is_hit(*task))
    laws_.violated("I26: " + whom + " is reported as lost, but no fault has hit it: " + why);
}

// The chief may give up an evaluation only if a disk has failed, or if no evaluator has answered for long.
void ChiefNode::gives_up(const chiefd::EventRecord& event) {
  const std::size_t path = event.text.find("/c/");
  if (event.text.find("weren't evaluated") != std::string::npos) laws_.evaluates_no_more(event.job, "");
  if (event.text.find("goes on without this evaluation") != std::string::npos && path != std::string::npos)
    laws_.evaluates_no_more(event.job, event.text.substr(path, event.text.find(':', path) - path));
}

// Reports to the laws those records that they need.
void ChiefNode::note(const chiefd::Record& record) {
  if (std::holds_alternative<chiefd::TrainingRecord>(record)) laws_.trains();
  if (const auto* evaluations = std::get_if<chiefd::EvaluationsRecord>(&record)) {
    evaluations_[evaluations->job] = *evaluations;
    laws_.notes_evaluations(*evaluations);
    if (!evaluations->early_end.empty()) world_.count(Happening::kFinishesEarly);
  }
  if (const auto* checkpoint = std::get_if<chiefd::CheckpointRecord>(&record)) laws_.knows_checkpoint(*checkpoint);
  if (const auto* event = std::get_if<chiefd::EventRecord>(&record)) {
    if (event->kind == "evaluation_failed") gives_up(*event);
    if (event->kind == "evaluation_interrupted") world_.count(Happening::kEvaluationInterrupted);
    if (event->kind == chiefd::kStillWaiting) laws_.reports_wait(world_.now());
    if (event->kind == chiefd::kLossCounted) laws_.counts_loss(world_.now());
    if (event->kind == "best_exported") world_.count(Happening::kBestExported);
    tell("event " + event->kind + ": " + event->text);
    for (const char* kind : {chiefd::kLossCounted, chiefd::kLostAtStart, chiefd::kWorkerLost, "task_lost"})
      if (event->kind == kind) blames(event->task, event->text);
    if (event->kind == chiefd::kTaskLeaves) laws_.is_to_leave();
    const bool is_spared =
        event->kind == chiefd::kRollsBack && event->text.starts_with("the job starts again without a worker");
    if (is_spared) laws_.starts_without_a_worker();
    if (event->kind == chiefd::kRollsBack && !is_spared) {
      laws_.begins_anew();
      laws_.rolls_back_uncounted(event->text.starts_with("a link failed"));
    }
    if (event->kind == chiefd::kLossCounted || event->kind == chiefd::kLostAtStart || event->kind == "chief_started")
      laws_.begins_anew();
    if (event->kind == "task_left" || event->kind == "task_lost")
      if (const auto task = parse_task_id(event->task)) seen_lost_.insert(*task);
    if (event->kind == "worker_lost" || event->kind == "worker_left" || event->kind == "link_lost")
      laws_.worker_lost(event->job, event->task);
  }
}

namespace {

// The chief's wall clock. It jumps forward and back between requests.
thread_local std::int64_t wall_seconds = 1;

}  // namespace

// Carries out one request after the other. The chief may crash after the change on the disk and before the answer.
void ChiefNode::act(const chiefd::FolderWork& action) {
  const bool commits = std::holds_alternative<chiefd::CommitAttempt>(action.work);
  const auto known = commits ? evaluations_.find(action.job) : evaluations_.end();
  const chiefd::EvaluationsRecord evaluations =
      known != evaluations_.end() ? known->second : chiefd::EvaluationsRecord();
  folder_free_ = std::max(folder_free_, world_.now());
  folder_free_ += jobs_.disk->delay(folder_free_);
  after(folder_free_ - world_.now(), [this, action, evaluations] {
    const std::vector<std::string> pins = laws_.pins_there(evaluations);
    wall_seconds = static_cast<std::int64_t>(world_.random().below(2000000000));
    if (folders_.count(action.job) == 0 && !std::holds_alternative<chiefd::OpenFolder>(action.work) &&
        !std::holds_alternative<chiefd::FindInit>(action.work))
      return;  // closed
    auto& folder = folders_[action.job];
    if (!folder)
      folder = std::make_unique<chiefd::JobFolder>(
          jobs_.disk->files(), +[] { return wall_seconds; });
    Result<chiefd::FolderAnswer> answer =
        std::visit([&](const auto& work) { return folder->carry_out(work); }, action.work);
    laws_.pins_stay(pins);
    if (!answer) tell("its folder: " + answer.error().message);
    if (answer && std::holds_alternative<chiefd::CommitAttempt>(action.work)) {
      const auto& commit = std::get<chiefd::CommitAttempt>(action.work);
      laws_.committed(commit, action.job, answer->path);
    }
    const bool is_asked = std::holds_alternative<chiefd::OpenFolder>(action.work) ||
                          std::holds_alternative<chiefd::FindNewest>(action.work);
    if (answer && is_asked) laws_.found_newest("/c/" + cluster_->status(action.job, now()).name, answer->newest);
    folder_free_ = std::max(folder_free_, world_.now() + jobs_.disk->delay());
    after(folder_free_ - world_.now(),
          [this, done = chiefd::FolderDone{action.job, action.ticket, std::move(answer)}] { step(done); });
  });
}

void ChiefNode::act(const chiefd::CloseFolder& action) {
  after(std::max(folder_free_, world_.now()) - world_.now(), [this, job = action.job] { folders_.erase(job); });
}

void ChiefNode::act(const chiefd::AnswerClient& action) {
  asked_.erase(action.client.value);
  if (const auto* saved = std::get_if<CheckpointSaved>(&action.answer)) laws_.saved(saved->path);
  const auto submitted = submitting_.extract(action.client.value);
  if (submitted.empty()) return;
  if (std::holds_alternative<JobSubmitted>(action.answer)) {
    accepted_.insert(submitted.mapped());
    laws_.accepted(submitted.mapped());
  }
  if (const auto* refused = std::get_if<Refused>(&action.answer)) tell("refuses a job: " + refused->reason);
}

}  // namespace disttrain::sim
