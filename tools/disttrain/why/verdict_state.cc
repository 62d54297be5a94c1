#include "tools/disttrain/why/verdict_state.h"

#include <utility>
#include <vector>

#include "common/ids.h"
#include "tools/disttrain/follow/follow_job.h"
#include "tools/disttrain/follow/progress.h"
#include "tools/disttrain/units.h"
#include "tools/disttrain/up/missing_tasks.h"

namespace disttrain::cli {

namespace {

bool is_away(const Json& task) {
  const std::string state = text_of(task, "state");
  return state == "waiting" || state == "silent" || state == "dead" || state == "left";
}

// Returns the tasks that the job waits for and that are away.
std::vector<Json> awaited(const Json& status) {
  std::vector<Json> found;
  const std::string state = text_of(status, "state");
  for (const Json& task : list_of(status, "tasks")) {
    const auto id = parse_task_id(text_of(task, "task"));
    if (!id || !is_away(task) || state == "queued") continue;  // a queued job waits for another job
    const bool evaluates = state == "evaluating" && id->role == Role::kEvaluator;
    if (evaluates || waits_for(status, *id)) found.push_back(task);
  }
  return found;
}

// Returns "ps/0 hasn't sent a heartbeat for 3 s: check its process 12 on a (10.0.0.1:7110) and the network there".
std::string what_to_do(const Json& task) {
  const std::string name = text_of(task, "task");
  const std::string host = text_of(task, "host");
  const std::string address = text_of(task, "address");
  const std::string where = (host.empty() ? "" : " on " + host) + (address.empty() ? "" : " (" + address + ")");
  const double pid = number_of(task, "pid");
  const double age = number_of(task, "heartbeat_age_seconds");
  if (text_of(task, "state") == "silent")
    return name + " hasn't sent a heartbeat for " + seconds_text(age) + ": check its process" +
           (std::isfinite(pid) ? " " + std::to_string(static_cast<long>(pid)) : "") + where + " and the network there";
  const std::string program = name.starts_with("ps/")          ? "psd"
                              : name.starts_with("evaluator/") ? "workerd --role evaluator"
                                                               : "workerd";
  return name + " isn't there: start " + program + where;
}

std::string reason_of(const Json& status) {
  const std::string reason = headline(text_of(status, "reason"));
  return reason.empty() ? "" : ": " + reason;
}

Verdict judge_ended(const Json& status, const std::string& begin) {
  const auto cause = status.find("root_cause");
  if (text_of(status, "state") != "failed" || cause == status.end() || !cause->is_object())
    return {Brake::kState, "", begin + " " + text_of(status, "state") + reason_of(status), {}};
  const std::string task = text_of(*cause, "task");
  return {
      Brake::kState,
      task,
      begin + " failed because of " + task + ": " + headline(text_of(*cause, "reason")) + "; see `disttrain events`",
      {}};
}

}  // namespace

Verdict judge_state(const Json& status) {
  const std::string state = text_of(status, "state");
  if (state.empty()) return {Brake::kNoJob, "", "no job was submitted yet", {}};
  const std::string job = "job " + text_of(status, "job");
  if (is_final_state(state)) return judge_ended(status, job);
  const std::vector<Json> tasks = awaited(status);
  std::string advice;
  for (const Json& task : tasks) advice += "; " + what_to_do(task);
  return {Brake::kState,
          tasks.empty() ? "" : text_of(tasks[0], "task"),
          job + " is " + state + reason_of(status) + advice,
          {}};
}

Verdict judge_stall(const Json& status, TwoSamples samples) {
  const std::string begin = "job " + text_of(status, "job") + " runs, but no step ended during the measurement: ";
  Json at_work;
  double longest = -1.0;
  for (const Json& task : list_of(status, "tasks")) {
    const std::string name = text_of(task, "task");
    if (text_of(task, "state") == "silent") return {Brake::kStall, name, begin + what_to_do(task), std::move(samples)};
    const std::string phase = text_of(task, "phase");
    const bool works = phase == "input" || phase == "compute" || phase == "evaluate";
    if (!name.starts_with("worker/") || text_of(task, "state") != "running" || !works) continue;
    if (!(number_of(task, "phase_seconds") > longest)) continue;
    longest = number_of(task, "phase_seconds");
    at_work = task;
  }
  if (at_work.is_null())
    return {Brake::kStall, "",
            begin +
                "all workers wait for the ps tasks, although each ps sends heartbeats; see `disttrain logs` and "
                "`disttrain events`",
            std::move(samples)};
  const std::string name = text_of(at_work, "task");
  return {Brake::kStall, name,
          begin + name + " has been in " + text_of(at_work, "phase") + " for " + seconds_text(longest) +
              ", longer than any other worker",
          std::move(samples)};
}

}  // namespace disttrain::cli
