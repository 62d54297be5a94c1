// The verdicts of `doctor` about ports and about other hosts. See checks.h.
#include <algorithm>

#include "tools/disttrain/doctor/checks.h"

namespace disttrain::cli {

namespace {

std::string port_part(const std::string& address) {
  return address.substr(address.rfind(':') + 1);
}

struct PortVerdict {
  CheckState state = CheckState::kOk;
  std::string text;
  std::string advice{};
};

// Judges a disttrain daemon that has answered doctor's hello. The chief accepts the hello, because it serves clients. A
// ps, a worker or an evaluator refuses it, and the refusal names the task.
PortVerdict judge_listener(TaskId task, const PortAnswer& port) {
  const std::string name = to_string(task);
  if (task.role == Role::kChief ? port.is_welcome || port.is_busy : port.said.find(name) != std::string::npos)
    return {CheckState::kOk, name + " answers"};
  return {CheckState::kFail,
          "another disttrain daemon answers there: " + (port.is_welcome ? "the chief of this cluster" : port.said),
          "find out which daemon answers there, and give each host the right cluster file and --index"};
}

// Judges a process that accepts connections at the port, but doesn't answer as a disttrain daemon does.
PortVerdict judge_silent(TaskId task, const std::string& number, const PortAnswer& port) {
  const std::string who = port.holder.empty() ? "another process" : port.holder;
  const char* const daemon = task.role == Role::kPs ? "psd (" : task.role == Role::kChief ? "chiefd (" : "workerd (";
  if (who.starts_with(daemon))
    return {CheckState::kFail, "port " + number + " is held by " + who + ", which doesn't answer",
            "read its log, check whether it hangs or is stopped, and restart it"};
  return {CheckState::kFail, "port " + number + " is held by " + who + ", which doesn't answer as a disttrain daemon",
          "stop that process, or give " + to_string(task) + " another port in every host's cluster file"};
}

PortVerdict judge_own(TaskId task, const std::string& number, const PortAnswer& port) {
  switch (port.listening) {
    case Listening::kOurs: {
      PortVerdict verdict = judge_listener(task, port);
      verdict.text = "port " + number + ": " + verdict.text;
      return verdict;
    }
    case Listening::kSilent:
      return judge_silent(task, number, port);
    case Listening::kUnreachable:
      return {CheckState::kFail, "port " + number + " of this host can't be reached: " + port.said,
              "check the host's firewall and its loopback interface"};
    case Listening::kNobody:
      break;
  }
  if (port.unbindable.empty()) return {CheckState::kOk, "port " + number + " is free"};
  return {CheckState::kFail,
          "port " + number + " can't be opened: " + port.unbindable +
              (port.holder.empty() ? "" : "; it is held by " + port.holder),
          "end that process, or give " + to_string(task) + " another port in every host's cluster file"};
}

PortVerdict judge_metrics(const OwnPort& own) {
  if (own.metrics_address.empty()) return {};
  const std::string number = port_part(own.metrics_address);
  const PortAnswer& page = own.metrics;
  const bool is_up = own.port.listening == Listening::kOurs;
  if (page.listening == Listening::kOurs && page.said_task == to_string(own.task) && page.said_hash != own.hash)
    return {CheckState::kWarn, "the daemon runs with another cluster file than this one",
            "give all hosts the same cluster file, and reload or restart the daemon"};
  if (page.listening == Listening::kOurs && page.said_task == to_string(own.task))
    return {CheckState::kOk, "its metrics are at port " + number};
  if (page.listening == Listening::kOurs)
    return {CheckState::kFail, "port " + number + ", where the task should serve metrics, belongs to " + page.said_task,
            "give " + to_string(own.task) + " another port in every host's cluster file"};
  PortVerdict verdict = judge_own(own.task, number, page);
  if (verdict.state == CheckState::kOk && is_up)
    return {CheckState::kWarn, "no metrics at port " + number,
            "the daemon was started with another metrics.listen: restart it with this cluster file"};
  verdict.text += " (for its metrics)";
  return verdict;
}

}  // namespace

Finding judge(const OwnPort& own) {
  Finding finding{"port", to_string(own.task), CheckState::kOk, ""};
  for (const PortVerdict& verdict : {judge_own(own.task, port_part(own.address), own.port), judge_metrics(own)}) {
    if (verdict.text.empty()) continue;
    finding.state = std::max(finding.state, verdict.state);
    finding.found += (finding.found.empty() ? "" : "; ") + verdict.text;
    if (finding.advice != verdict.advice && !verdict.advice.empty())
      finding.advice += (finding.advice.empty() ? "" : "; ") + verdict.advice;
  }
  return finding;
}

Finding judge(const OtherHost& other) {
  Finding finding{"host", other.host, CheckState::kOk, ""};
  if (!other.unresolved.empty()) {
    finding.state = CheckState::kFail;
    finding.found = other.unresolved;
    finding.advice = "correct the name in the cluster file, in DNS or in /etc/hosts";
    return finding;
  }
  std::string answering;
  std::string absent;
  for (const OtherHost::Task& task : other.tasks) {
    const std::string name = to_string(task.task);
    switch (task.port.listening) {
      case Listening::kNobody:
        absent = with_comma(absent, name);
        break;
      case Listening::kOurs:
        if (const PortVerdict verdict = judge_listener(task.task, task.port); verdict.state != CheckState::kOk)
          worsen(finding, verdict.state, name + ": " + verdict.text, verdict.advice);
        else
          answering = with_comma(answering, name);
        break;
      case Listening::kSilent:
        worsen(finding, CheckState::kFail, "the process at the port of " + name + " isn't a disttrain daemon",
               "run `disttrain doctor` on that host");
        break;
      case Listening::kUnreachable:
        worsen(finding, CheckState::kFail, name + ": " + task.port.said,
               finding.advice.empty() ? "check that the host is up and that no firewall blocks the port" : "");
        break;
    }
  }
  if (!answering.empty())
    finding.found =
        with_comma(answering + (answering.find(',') == std::string::npos ? " answers" : " answer"), finding.found);
  if (!absent.empty()) finding.found = with_comma(finding.found, "the host is up, but no daemon listens for " + absent);
  return finding;
}

}  // namespace disttrain::cli
