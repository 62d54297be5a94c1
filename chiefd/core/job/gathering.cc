#include "chiefd/core/job/gathering.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "chiefd/core/job/absent.h"
#include "chiefd/core/job/parts.h"

namespace disttrain::chiefd {
namespace {

Status check_described(const JobConfig& config, const JobDescribed& described) {
  if (described.train_records == 0)
    return fail(ErrorCode::kData, "the data has no records: check data.files and data.records");
  if (!config.evaluate.files.empty() && described.evaluation_records == 0)
    return fail(ErrorCode::kData, "the evaluation data has no records: check evaluate.files");
  const Result<EvaluationRules> rules = evaluation_rules(config.evaluate, described.model.metrics);
  return rules ? Status() : tl::unexpected(rules.error());
}

// "worker/1 (10.0.0.2:7120), worker/2 (10.0.0.3:7120)"
std::string with_addresses(const std::vector<Awaited>& missing, const Tasks& tasks) {
  std::string text;
  for (const Awaited& one : missing) {
    text += (text.empty() ? "" : ", ") + to_string({one});
    const Task* task = one.task ? tasks.find(*one.task) : nullptr;
    if (task != nullptr) text += " (" + task->hello.address + ")";
  }
  return text;
}

}  // namespace

Gathering::Gathering(JobParts& parts)
    : setup_(parts.setup),
      stage_(parts.stage),
      condition_(parts.condition),
      events_(parts.events),
      generation_(parts.generation),
      workers_(parts.workers),
      candidates_(parts.candidates),
      reachability_(parts.reachability),
      folder_(parts.folder),
      launch_(parts.launch),
      recovery_(parts.recovery),
      start_failures_(parts.start_failures),
      ending_(parts.ending) {}

void Gathering::begin(Turn& turn) {
  condition_.begin();
  begin_again(turn);
  condition_.set(turn, JobState::kStarting, "gathers its tasks");
  gather(turn);
}

void Gathering::begin_again(Turn& turn) {
  stage_.enter(Stage::kGather);
  stage_.await_nobody();
  since_ = turn.now;
  stage_.set_deadline(turn.now + setup_.timeouts.setup);  // absences.h sets it anew while tasks are absent
}

void Gathering::resume(Turn& turn) {
  begin_again(turn);
  gather(turn);
}

// The connected workers with which the job can begin. If ranks are fixed (job.on_worker_loss = "wait"), these are the
// tasks that hold them, in the order of the ranks.
std::vector<Member> Gathering::workers_there(const Tasks& tasks) const {
  std::map<TaskId, Member> there;
  for (const auto& [id, task] : tasks.all())
    if (id.role == Role::kWorker && task.takes_work() && !candidates_.is_left_out(task)) there.emplace(id, task.member);
  std::vector<Member> workers;
  for (const TaskId rank : workers_.ranks())
    if (there.count(rank) != 0) workers.push_back(there.at(rank));
  if (workers_.ranks().empty())
    for (const auto& [id, member] : there) workers.push_back(member);
  return workers;
}

bool Gathering::lacks(const Tasks& tasks, Role role) const {
  if (role == Role::kPs)
    return std::any_of(tasks.all().begin(), tasks.all().end(), [](const auto& entry) {
      return entry.first.role == Role::kPs && entry.second.is_listed && !entry.second.takes_work();
    });
  const std::size_t ranks = workers_.ranks().size();
  const std::size_t wanted = ranks == 0 ? setup_.submission.awaited_workers : 0;
  const std::size_t awaited = wanted - std::min(wanted, left_out_workers(tasks));
  return workers_there(tasks).size() < std::max({setup_.least_workers(), ranks, awaited});
}

// Starts the job as soon as all tasks of the cluster file are connected. The job can also start with every ps, every
// worker with a fixed rank, and job.min_workers workers. When these are connected, the job waits only two heartbeat
// timeouts longer for the other tasks. At its first start, a job of `disttrain up` also needs as many workers as `up`
// starts. Without this rule the job would begin with whichever of these workers come first, and its results would
// differ from run to run.
void Gathering::gather(Turn& turn) {
  const std::vector<Awaited> missing = this->missing(turn.tasks);
  if (missing.empty()) return describe(turn, workers_there(turn.tasks));
  std::string reason = "waiting for ";
  const auto tasks = std::count_if(turn.tasks.all().begin(), turn.tasks.all().end(),
                                   [](const auto& entry) { return entry.first.role != Role::kEvaluator; });
  if (missing.front().task) reason += std::to_string(missing.size()) + " of " + std::to_string(tasks) + " tasks: ";
  condition_.explain(reason + to_string(missing));
  if (lacks(turn.tasks, Role::kPs) || lacks(turn.tasks, Role::kWorker)) {
    complete_enough_at_.reset();
    return;
  }
  if (!complete_enough_at_) complete_enough_at_ = turn.now;
  if (turn.now - *complete_enough_at_ < 2 * setup_.timeouts.silent) return;
  events_.warn("began without " + with_addresses(missing, turn.tasks));
  describe(turn, workers_there(turn.tasks));
}

// A worker that was lost while the job started before takes part only if the job needs it. If lost workers are waited
// for, it needs each.
void Gathering::describe(Turn& turn, std::vector<Member> workers) {
  const auto lost_before = [this](const Member& worker) { return candidates_.was_lost_at_start(worker.task); };
  const auto fresh = static_cast<std::size_t>(std::count_if(
      workers.begin(), workers.end(), [&lost_before](const Member& worker) { return !lost_before(worker); }));
  if (!setup_.waits_for_lost() && fresh >= setup_.least_workers()) std::erase_if(workers, lost_before);
  failures_.clear();
  workers_.choose(workers);
  ask_to_describe(turn, {workers.front()});
}

void Gathering::ask_to_describe(Turn& turn, const std::vector<Member>& workers) {
  stage_.enter(Stage::kDescribe);
  std::vector<Member> awaited(stage_.awaited().begin(), stage_.awaited().end());
  awaited.insert(awaited.end(), workers.begin(), workers.end());
  condition_.explain(
      to_string(awaited.front().task) +
      (awaited.size() == 1 ? " reads the data and builds the model" : " and others read the data and build the model") +
      (failures_.empty() ? "" : ", because " + to_string(failures_.front().first.task) + " couldn't"));
  stage_.await(turn.now, awaited, turn.now + setup_.timeouts.setup);
  turn.send_to(workers, DescribeJob{setup_.id, setup_.shared_config()});
}

// The cause may be the job, which then fails at each worker, or the worker alone, which may lack memory, a device, a
// library or the data. So all other workers are asked at once, also those that have come meanwhile. They need the data
// and the model anyway.
void Gathering::on_describe_failed(Turn& turn, const Member& from, const Error& error) {
  failures_.push_back({from, error});
  const auto& [first, first_error] = failures_.front();
  std::vector<Member> others = workers_.roster().members;
  std::erase(others, from);
  const std::vector<Member> newcomers = this->newcomers(turn.tasks, others.size());
  std::vector<Member> unasked = newcomers;
  if (failures_.size() == 1) unasked.insert(unasked.begin(), others.begin(), others.end());
  others.insert(others.end(), newcomers.begin(), newcomers.end());
  if (!start_failures_.may_start_with(others.size())) return ending_.fail(turn, first_error, first.task);
  std::sort(others.begin(), others.end());
  workers_.choose_members(others);
  stage_.answered(from);  // another worker is still asked, or is asked now
  if (!unasked.empty()) ask_to_describe(turn, unasked);
}

// The connected workers that aren't in the roster and haven't failed. As in describe(), those that were lost before
// take part only if the job needs them besides `others` workers of the roster.
std::vector<Member> Gathering::newcomers(const Tasks& tasks, std::size_t others) const {
  std::set<TaskId> known;
  for (const Member& worker : workers_.roster().members) known.insert(worker.task);
  for (const auto& [worker, error] : failures_) known.insert(worker.task);
  std::vector<Member> workers = workers_there(tasks);
  std::erase_if(workers, [&](const Member& worker) { return known.count(worker.task) != 0; });
  const auto lost_before = [this](const Member& worker) { return candidates_.was_lost_at_start(worker.task); };
  const auto lost = static_cast<std::size_t>(std::count_if(workers.begin(), workers.end(), lost_before));
  if (others + workers.size() - lost >= setup_.least_workers()) std::erase_if(workers, lost_before);
  return workers;
}

void Gathering::give_up_on_awaited(Turn& turn, const Error& error) {
  const std::set<Member> awaited = stage_.awaited();
  for (const Member& worker : awaited)
    if (stage_.is(Stage::kDescribe) && stage_.awaits(worker)) on_describe_failed(turn, worker, error);
}

std::size_t Gathering::left_out_workers(const Tasks& tasks) const {
  return static_cast<std::size_t>(std::count_if(tasks.all().begin(), tasks.all().end(), [this](const auto& entry) {
    return entry.second.takes_work() && candidates_.is_left_out(entry.second);
  }));
}

// At this stage no task holds anything of the job. So if the job loses a task that it counts on, it only gathers its
// tasks again.
void Gathering::on_finding(Turn& turn, const Finding& finding) {
  const Member& member = finding.member;
  const bool is_good = finding.what == Finding::What::kJoined || finding.what == Finding::What::kReturned;
  if (is_good || (member.task.role == Role::kWorker && !workers_.is_in_roster(member))) return;
  // The job's data may have crashed the worker, and would then crash it again and again. A ps may come and go, too. So
  // these losses count for job.max_restarts.
  const bool may_repeat = finding.what == Finding::What::kLost && !finding.was_told_to_end &&
                          (stage_.awaits(member) || member.task.role == Role::kPs);
  const Cause cause{member.task, finding.why};
  if (may_repeat && member.task.role == Role::kWorker) candidates_.note_lost_at_start(member.task);
  const std::size_t times = may_repeat ? recovery_.count_loss(turn, kLostAtStart, cause) : 0;
  if (times > setup_.config().job.max_restarts)
    return ending_.fail(turn, recovery_.too_many_losses(ErrorCode::kUnavailable, cause, times), member.task);
  stage_.await_nobody();
  resume(turn);
}

void Gathering::on_described(Turn& turn, const Member& from, const JobDescribed& described) {
  if (!stage_.awaits(from)) return;
  stage_.await_nobody();
  for (const auto& [worker, error] : std::exchange(failures_, {}))
    start_failures_.leave_out(turn, worker, error.message);
  if (Status status = check_described(setup_.config(), described); !status)
    return ending_.fail(turn, status.error(), std::nullopt);
  if (setup_.evaluators > 0 && setup_.evaluates() && !setup_.takes_checkpoints())
    events_.warn(
        "an evaluator needs checkpoints, but the job takes none, so a worker evaluates: set "
        "checkpoint.directory in job.toml");
  if (!described.notice.empty()) events_.warn(described.notice);
  generation_.describe(described);
  candidates_.note_prepared(from);
  turn.persist(DescribedRecord{described});
  generation_.draw_numbers(turn.term);
  workers_.use_roster();
  if (setup_.takes_checkpoints()) return ask_folder(turn);
  find_init(turn);
}

void Gathering::ask_folder(Turn& turn) {
  stage_.enter(Stage::kFolder);
  condition_.explain("the chief looks for checkpoints in " + setup_.config().checkpoint.directory);
  stage_.set_deadline(turn.now + setup_.timeouts.setup);
  folder_.ask_newest(turn);
}

// The path is resolved only once, so that all shards and all generations begin with the same parameters.
void Gathering::find_init(Turn& turn) {
  if (generation_.restore() || !setup_.has_init() || !generation_.init_path().empty()) return place_model(turn);
  stage_.enter(Stage::kInit);
  condition_.explain("the chief looks for the first parameters in " + setup_.config().checkpoint.init_from);
  stage_.set_deadline(turn.now + setup_.timeouts.setup);
  stage_.set_ticket(turn.next_ticket());
  const CheckpointSection& checkpoint = setup_.config().checkpoint;
  turn.folder_work(setup_.id, stage_.ticket(),
                   FindInit{checkpoint.init_from, checkpoint.init_map, generation_.described()->model});
}

void Gathering::on_init(Turn& turn, const Result<FolderAnswer>& answer) {
  stage_.clear_deadline();
  if (!answer) {
    Error error = answer.error();
    error.message = "checkpoint.init_from: " + error.message;
    return ending_.fail(turn, std::move(error), std::nullopt);
  }
  if (!answer->ignored.empty()) events_.warn(answer->ignored);
  generation_.init_from(answer->path);
  place_model(turn);
}

void Gathering::place_model(Turn& turn) {
  // If a ps was lost after stage kGather, the job gathers its tasks again.
  if (lacks(turn.tasks, Role::kPs)) return resume(turn);
  if (Status status = generation_.check_restore(); !status) return ending_.fail(turn, status.error(), std::nullopt);
  const std::size_t workers = workers_.roster().members.size();
  const auto is_avoided = [&](TaskId ps) { return reachability_.is_avoided(turn.tasks, ps); };
  if (Status status = generation_.place(turn.tasks, is_avoided, workers, workers); !status)
    return ending_.fail(turn, status.error(), std::nullopt);
  if (setup_.waits_for_lost() && workers_.ranks().empty()) workers_.fix_ranks(workers_.roster().members);
  launch_.begin_generation(turn);
}

std::vector<Awaited> Gathering::missing(const Tasks& tasks) const {
  std::vector<Awaited> missing;
  for (const auto& [id, task] : tasks.all())
    if (task.is_listed && !task.takes_work() && id.role != Role::kEvaluator)  // a job trains without evaluators
      missing.push_back(absent(id, &task, since_));
  for (const TaskId rank : workers_.ranks()) {
    const Task* task = tasks.find(rank);
    const bool is_unlisted = task == nullptr || !task->is_listed;
    if (is_unlisted && (task == nullptr || !task->takes_work())) missing.push_back(absent(rank, task, since_));
  }
  const auto there =
      static_cast<std::size_t>(std::count_if(tasks.all().begin(), tasks.all().end(), [this](const auto& entry) {
        return entry.first.role == Role::kWorker && entry.second.takes_work() && !candidates_.is_left_out(entry.second);
      }));
  if (missing.empty() && there < setup_.least_workers())
    missing.push_back({std::nullopt, AwaitedFor::kHello, since_, setup_.least_workers() - there});
  return missing;
}

}  // namespace disttrain::chiefd
