// The chief alone builds this text, and all other programs only read or print it, so that the names come from one
// place.
#include "chiefd/status_json.h"

#include <cinttypes>
#include <cmath>
#include <cstdio>

namespace disttrain::chiefd {
namespace {
using nlohmann::json;

constexpr std::size_t kRootCauseLines = 20;

const char* to_string(Mode mode) {
  switch (mode) {
    case Mode::kAsync:
      return "async";
    case Mode::kSync:
      return "sync";
    case Mode::kSsp:
      return "ssp";
  }
  return "unknown";
}

double to_unix_seconds(std::int64_t wall_nanoseconds) {
  return static_cast<double>(wall_nanoseconds) * 1e-9;
}

json times_by_phase(const PhaseTimes& times) {
  json by_phase = json::object();
  for (int p = 0; p < kPhases; ++p) {
    const auto phase = static_cast<Phase>(p);
    if (phase == Phase::kIdle) continue;
    const auto index = static_cast<std::size_t>(p);
    by_phase[disttrain::to_string(phase)] = index < times.size() ? to_seconds(times[index]) : 0.0;
  }
  return by_phase;
}

// Null if the worker has no times.
json times_by_stage(const DataTimes& times) {
  if (times.size() != kDataStages.size()) return nullptr;
  json by_stage = json::object();
  for (std::size_t i = 0; i < times.size(); ++i) by_stage[kDataStages[i]] = to_seconds(times[i]);
  return by_stage;
}

json shards_json(const std::vector<ShardLoad>& shards) {
  json list = json::array();
  for (const ShardLoad& load : shards)
    list.push_back({{"shard", load.shard.value},
                    {"seconds", to_seconds(load.lived)},
                    {"busy_seconds", to_seconds(load.busy)},
                    {"apply_seconds", to_seconds(load.applying)}});
  return list;
}

json task_json(const TaskStatus& task) {
  json entry = {{"task", disttrain::to_string(task.task)},
                {"pid", task.pid != 0 ? json(task.pid) : json(nullptr)},
                {"address", task.address},
                {"host", task.host},
                {"metrics", task.metrics.empty() ? json(nullptr) : json(task.metrics)},
                {"state", to_string(task.state)},
                {"reason", task.reason},
                {"step", task.figures.step},
                {"heartbeat_age_seconds", task.heartbeat_age ? json(to_seconds(*task.heartbeat_age)) : json(nullptr)},
                {"examples_per_second", number_or_null(task.figures.examples_per_second)},
                {"loss", number_or_null(task.figures.loss)},
                {"lag", task.figures.lag ? json(*task.figures.lag) : json(nullptr)},
                {"rank", task.rank ? json(*task.rank) : json(nullptr)},
                {"phase", disttrain::to_string(task.phase)},
                {"phase_seconds", to_seconds(task.in_phase)}};
  if (task.task.role == Role::kWorker) {
    entry["phase_times"] = times_by_phase(task.figures.phase_times);
    entry["data_times"] = times_by_stage(task.figures.data_times);
  }
  if (task.task.role == Role::kPs) entry["shards"] = shards_json(task.figures.shards);
  return entry;
}

json tasks_json(const std::vector<TaskStatus>& tasks, const ChiefStatus& chief) {
  TaskStatus own;
  own.task = TaskId{Role::kChief, 0};
  own.pid = chief.pid;
  own.address = chief.address;
  own.metrics = chief.metrics;
  own.state = TaskState::kReady;
  own.heartbeat_age = Duration::zero();
  json list = json::array({task_json(own)});
  for (const TaskStatus& task : tasks) list.push_back(task_json(task));
  return list;
}

json best_json(const std::vector<BestCheckpoint>& best) {
  json list = json::array();
  for (const BestCheckpoint& one : best)
    list.push_back({{"path", one.checkpoint.path}, {"step", one.checkpoint.step.value}, {"value", one.value}});
  return list;
}

// Writes a 64-bit number as hexadecimal text, because many JSON readers keep only 53 bits of a number.
std::string hexadecimal(std::uint64_t number) {
  char text[17];
  std::snprintf(text, sizeof text, "%016" PRIx64, number);
  return text;
}

json metrics_json(const std::vector<MetricValue>& metrics) {
  json by_name = json::object();
  for (const MetricValue& metric : metrics) by_name[metric.name] = number_or_null(metric.value);
  return by_name;
}

json training_metrics_json(const JobStatus& status) {
  json by_name = metrics_json(status.metrics);
  by_name["loss"] = number_or_null(status.loss);
  return by_name;
}

json evaluation_json(const std::optional<EvaluationStatus>& evaluation) {
  if (!evaluation) return nullptr;
  return {{"accuracy", number_or_null(value_of(evaluation->metrics, "accuracy"))},
          {"loss", number_or_null(evaluation->loss)},
          {"metrics", metrics_json(evaluation->metrics)},
          {"examples", evaluation->examples},
          {"step", evaluation->step.value},
          {"parameters_hash", hexadecimal(evaluation->parameters_hash)}};
}

// An entry whose task is null means that the job waits for `count` more workers, whichever they are.
json wires_json(Wires wires) {
  std::string names;
  for (const auto& [wire, name] :
       {std::pair(kShmWire, "shm"), std::pair(kRdmaWire, "rdma"), std::pair(kTcpWire, "tcp")})
    if ((wires & wire) != 0) names += (names.empty() ? "" : " and ") + std::string(name);
  return names.empty() ? json(nullptr) : json(names);
}

json waits_for_json(const JobStatus& status, const ChiefStatus& chief) {
  json list = json::array();
  for (const Awaited& one : status.waits_for)
    list.push_back({{"task", one.task ? json(disttrain::to_string(*one.task)) : json(nullptr)},
                    {"count", one.count},
                    {"since", to_unix_seconds(chief.wall_nanoseconds - (status.as_of - one.since).count())},
                    {"for", to_string(one.what)}});
  return list;
}

json absences_json(const JobStatus& status, const ChiefStatus& chief) {
  json list = json::array();
  for (const Absence& one : status.absences)
    list.push_back({{"role", one.role == Role::kPs ? "ps" : "worker"},
                    {"since", to_unix_seconds(chief.wall_nanoseconds - (status.as_of - one.since).count())},
                    {"limit", one.limit ? json(to_seconds(*one.limit)) : json(nullptr)}});
  return list;
}

json root_cause_json(const std::optional<RootCause>& cause, const LogStore& logs, const LogFilter& of_job) {
  if (!cause) return nullptr;
  return {{"task", disttrain::to_string(cause->task)},
          {"reason", cause->reason},
          {"signal", nullptr},  // filled in by `disttrain up`, which started the task and knows which signal killed it
          {"log", logs.tail(cause->task, kRootCauseLines, of_job)}};
}

}  // namespace

json number_or_null(std::optional<double> value) {
  return value && std::isfinite(*value) ? json(*value) : json(nullptr);
}

json to_json(const JobStatus& status, const ChiefStatus& chief, const LogStore& logs, const LogFilter& of_job) {
  return {{"job", status.name},
          {"id", status.job.value},
          {"mode", to_string(status.mode)},
          {"state", to_string(status.state)},
          {"reason", status.reason},
          {"waits_for", waits_for_json(status, chief)},
          {"absences", absences_json(status, chief)},
          {"resubmitted_as", status.resubmitted_as ? json(status.resubmitted_as->value) : json(nullptr)},
          {"code", status.code ? json(static_cast<int>(*status.code)) : json(nullptr)},
          {"global_step", status.global_step},
          {"steps_target", status.steps_target},
          {"epoch", status.epoch},
          {"seconds", status.seconds},
          {"steps_per_second", status.steps_per_second},
          {"examples_per_second", status.examples_per_second},
          {"examples", status.examples},
          {"loss", number_or_null(status.loss)},
          {"metrics", training_metrics_json(status)},
          {"late", status.late},
          {"skipped", status.skipped},
          {"staleness", status.staleness},
          {"evaluation", evaluation_json(status.evaluation)},
          {"best_checkpoints", best_json(status.best)},
          {"evaluations_waiting", status.evaluations_waiting},
          {"transport", wires_json(status.wires)},
          {"generation", status.generation.value},
          {"recoveries", status.recoveries},
          {"checkpoint", status.checkpoint.empty() ? json(nullptr) : json(status.checkpoint)},
          {"trace", status.trace.empty() ? json(nullptr) : json(status.trace)},
          {"trace_pending", status.is_trace_pending},
          {"root_cause", root_cause_json(status.root_cause, logs, of_job)},
          {"warnings", status.warnings},
          {"time", to_unix_seconds(chief.wall_nanoseconds)},
          {"tasks", tasks_json(status.tasks, chief)}};
}

json json_without_job(const std::vector<TaskStatus>& tasks, const ChiefStatus& chief) {
  JobStatus none;
  none.tasks = tasks;
  json answer = to_json(none, chief, LogStore());
  for (const char* key : {"job", "id", "mode", "state", "reason"}) answer[key] = nullptr;
  return answer;
}

json to_json(const std::vector<EventRecord>& events) {
  json list = json::array();
  for (const EventRecord& event : events)
    list.push_back({{"time", to_unix_seconds(event.wall_nanoseconds)},
                    {"job", event.job.value != 0 ? json(event.job.value) : json(nullptr)},
                    {"kind", event.kind},
                    {"task", event.task.empty() ? json(nullptr) : json(event.task)},
                    {"step", event.step},
                    {"cause", event.cause.empty() ? json(nullptr) : json(event.cause)},
                    {"text", event.text}});
  return list;
}

std::string events_json(const std::vector<EventRecord>& events) {
  return to_json(events).dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace disttrain::chiefd
