#include "chiefd/core/journal_state.h"

#include <algorithm>

#include "common/mutant.h"

namespace disttrain::chiefd {

const char* to_string(JobState state) {
  switch (state) {
    case JobState::kQueued:
      return "queued";
    case JobState::kStarting:
      return "starting";
    case JobState::kRunning:
      return "running";
    case JobState::kPaused:
      return "paused";
    case JobState::kEvaluating:
      return "evaluating";
    case JobState::kStopping:
      return "stopping";
    case JobState::kFinished:
      return "finished";
    case JobState::kFailed:
      return "failed";
    case JobState::kStopped:
      return "stopped";
  }
  return "unknown";
}

void add_event(std::deque<EventRecord>& events, const EventRecord& event) {
  const auto is_of_checkpoint = [](const EventRecord& e) { return e.kind.rfind("checkpoint", 0) == 0; };
  events.push_back(event);
  if (is_of_checkpoint(event)) {
    const auto count = std::count_if(events.begin(), events.end(), is_of_checkpoint);
    if (count > static_cast<std::ptrdiff_t>(kMaxCheckpointEvents))
      events.erase(std::find_if(events.begin(), events.end(), is_of_checkpoint));
  }
  if (events.size() > kMaxEvents) events.pop_front();
}

std::string to_string(const Cause& cause) {
  return (cause.task ? disttrain::to_string(*cause.task) + ": " : "") + cause.reason;
}

std::optional<Duration> age_of(const EventRecord& event, const EventClocks& now) {
  const Duration by_wall(now.wall_nanoseconds - event.wall_nanoseconds);
  const bool may_be_this_boot = event.uptime_nanoseconds != 0 && event.uptime_nanoseconds <= now.uptime_nanoseconds;
  if (may_be_this_boot) return std::max(by_wall, Duration(now.uptime_nanoseconds - event.uptime_nanoseconds));
  if (by_wall < Duration::zero()) return std::nullopt;
  return by_wall;
}

bool is_final(JobState state) {
  return state == JobState::kFinished || state == JobState::kFailed || state == JobState::kStopped;
}

namespace {

void forget_oldest_ended(JournalState& state) {
  const auto ended = [](const auto& entry) { return is_final(entry.second.state); };
  if (std::count_if(state.jobs.begin(), state.jobs.end(), ended) <= static_cast<std::ptrdiff_t>(kMaxEndedJobs)) return;
  state.jobs.erase(std::find_if(state.jobs.begin(), state.jobs.end(), ended));
}

class Applier {
 public:
  explicit Applier(JournalState& to) : state(to) {}

  void operator()(const TermRecord& record) const {
    state.journal = record.journal;
    state.term = std::max(state.term, record.term);
    if (record.chief.value == 0) return;
    state.chiefs[record.term] = record.chief;
    if (state.chiefs.size() > kMaxFormerChiefs) state.chiefs.erase(state.chiefs.begin());
  }
  void operator()(const SubmittedRecord& record) const {
    state.last_job = std::max(state.last_job, record.job);
    state.jobs[record.job].submitted = record;
  }
  void operator()(const StateRecord& record) const {
    // Also note the number of a job that the chief has forgotten, so that no other job gets this number.
    state.last_job = std::max(state.last_job, record.job);
    const auto job = state.jobs.find(record.job);
    if (job == state.jobs.end()) return;
    job->second.state = record.state;
    job->second.reason = record.reason;
    if (!is_final(record.state)) return;
    job->second.described.reset();
    job->second.grants.clear();
    forget_oldest_ended(state);
  }
  void operator()(const DescribedRecord& record) const {
    if (JournaledJob* job = find(record.described.job)) job->described = record.described;
  }
  void operator()(const GenerationRecord& record) const {
    JournaledJob* job = find(record.job);
    if (job == nullptr || record.generation < job->generation.generation) return;
    job->generation = record;
    job->roster = record.roster;
    job->is_training = false;
    job->grants.clear();
  }
  void operator()(const TrainingRecord& record) const {
    if (JournaledJob* job = find(record.job, record.generation)) job->is_training = true;
  }
  void operator()(const RosterRecord& record) const {
    if (JournaledJob* job = find(record.job, record.generation)) job->roster = record.roster;
  }
  void operator()(const GrantRecord& record) const {
    if (DISTTRAIN_MUTANT(kGrantForgotten)) return;
    if (JournaledJob* job = find(record.job, record.generation)) job->grants[record.lease.id] = record;
  }
  void operator()(const OpenGrantsRecord& record) const {
    JournaledJob* job = find(record.job, record.generation);
    if (job == nullptr) return;
    std::erase_if(job->grants, [&record](const auto& grant) {
      return std::find(record.open.begin(), record.open.end(), grant.first) == record.open.end();
    });
  }
  void operator()(const CheckpointRecord& record) const {
    if (JournaledJob* job = find(record.job)) job->checkpoint = record;
  }
  void operator()(const EvaluationsRecord& record) const {
    if (JournaledJob* job = find(record.job)) job->evaluations = record;
  }
  void operator()(const EndRecord& record) const {
    if (JournaledJob* job = find(record.job)) job->ended = record;
  }
  void operator()(const EventRecord& record) const { add_event(state.events, record); }

 private:
  JournalState& state;

  JournaledJob* find(JobId id) const {
    const auto job = state.jobs.find(id);
    return job == state.jobs.end() ? nullptr : &job->second;
  }
  JournaledJob* find(JobId id, Generation generation) const {
    JournaledJob* job = find(id);
    return job != nullptr && job->generation.generation == generation ? job : nullptr;
  }
};

}  // namespace

void apply(JournalState& state, const Record& record) {
  std::visit(Applier(state), record);
}

std::vector<Record> compacted(const JournalState& state) {
  std::vector<Record> records;
  if (state.journal.value != 0 && state.chiefs.count(state.term) == 0)
    records.push_back(TermRecord{state.journal, state.term});
  for (const auto& [term, chief] : state.chiefs) records.push_back(TermRecord{state.journal, term, chief});
  for (const auto& [id, job] : state.jobs) {
    records.push_back(job.submitted);
    if (job.described) records.push_back(DescribedRecord{*job.described});
    if (job.generation.generation.value != 0) records.push_back(job.generation);
    if (job.is_training) records.push_back(TrainingRecord{id, job.generation.generation});
    if (job.roster.version > job.generation.roster.version)
      records.push_back(RosterRecord{id, job.generation.generation, job.roster});
    for (const auto& [lease, grant] : job.grants) records.push_back(grant);
    if (job.checkpoint) records.push_back(*job.checkpoint);
    if (job.evaluations) records.push_back(*job.evaluations);
    if (job.ended) records.push_back(*job.ended);
    if (job.state != JobState::kQueued) records.push_back(StateRecord{id, job.state, job.reason});
  }
  if (state.jobs.empty() ? state.last_job.value != 0 : state.last_job > state.jobs.rbegin()->first)
    records.push_back(StateRecord{state.last_job, JobState::kStopped, "forgotten"});
  records.insert(records.end(), state.events.begin(), state.events.end());
  return records;
}

JournalState salvaged(JournalState state, std::optional<std::uint64_t> lost, Term newest, JournalId anew,
                      const std::string& why) {
  const std::uint64_t passed = lost.value_or(kUnknownLoss);
  state.journal = anew;
  state.chiefs.clear();
  state.term = Term(std::max(state.term, newest).value + passed);
  state.last_job = JobId(state.last_job.value + static_cast<std::uint32_t>(passed));
  for (auto& [id, job] : state.jobs) {
    if (is_final(job.state)) continue;
    const bool has_begun = job.generation.generation.value != 0;
    job.generation.job = id;
    job.generation.generation = Generation(job.generation.generation.value + passed);
    job.grants.clear();
    if (job.ended || !has_begun) continue;
    add_event(state.events,
              EventRecord{0, id, kRollsBack, "", 0, "the job goes back to its newest checkpoint: " + why, why});
  }
  return state;
}

}  // namespace disttrain::chiefd
