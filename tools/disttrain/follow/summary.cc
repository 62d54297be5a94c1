#include "tools/disttrain/follow/summary.h"

#include <cmath>
#include <csignal>
#include <cstdio>
#include <set>

#include "common/counted.h"
#include "common/printable.h"
#include "tools/disttrain/follow/progress.h"
#include "tools/disttrain/json.h"
#include "tools/disttrain/table.h"
#include "tools/disttrain/units.h"

namespace disttrain::cli {

namespace {

std::string fixed(double value, int digits) {
  if (!std::isfinite(value)) return "-";
  char text[64];
  std::snprintf(text, sizeof(text), "%.*f", digits, value);
  return text;
}

// Returns what an operator can do about the failure of a job.
std::string way_out(const Json& status, const Json& cause) {
  const double signal = number_of(cause, "signal");
  if (signal == SIGKILL)
    return "if nobody killed this task, the host may have run out of memory: see `dmesg | tail`, and lower "
           "train.batch_size or the number of tasks";
  if (signal == SIGABRT || signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE || signal == SIGILL)
    return "this is a bug of disttrain: please report it together with the log lines above";
  const std::string look = "see the reason and the log lines above, and `disttrain logs`; when the cause is gone, ";
  if (text_of(status, "checkpoint").empty()) return look + "the job can be submitted again";
  return look + "the job can be submitted again, or, if its cluster still runs, `disttrain resubmit " +
         text_of(status, "job") + "` goes on from its newest checkpoint";
}

// A job that loses a worker again and again has the same warning many times. Prints a warning once for each row of
// them. The lines after a warning's first one are the output of a user's program, such as a traceback. They are printed
// once, because often each loss has the same.
void print_warnings(std::ostream& out, const Json& warnings) {
  std::set<std::string> outputs;
  for (std::size_t i = 0, next = 0; i < warnings.size(); i = next) {
    while (next < warnings.size() && warnings[next] == warnings[i]) ++next;
    if (!warnings[i].is_string()) continue;
    const std::string times = next - i > 1 ? " (" + std::to_string(next - i) + " times)" : "";
    std::string text = unfolded(warnings[i].get<std::string>());
    const std::size_t first_line = text.find('\n');
    if (first_line != std::string::npos && !outputs.insert(text.substr(first_line)).second)
      text.replace(first_line, std::string::npos, " (as above)");
    out << "  warning" << times << ": " << indented(text, 2) << '\n';
  }
}

// Prints each metric of an evaluation and a comma, the accuracy first. A chief of an older version tells only the
// accuracy.
void print_metrics(std::ostream& out, const Json& evaluation) {
  const auto print = [&out](const std::string& name, double value) {
    if (std::isfinite(value)) out << name << " " << fixed(value, 4) << ", ";
  };
  print("accuracy", number_of(evaluation, "accuracy"));
  const auto metrics = evaluation.find("metrics");
  if (metrics == evaluation.end() || !metrics->is_object()) return;
  for (const auto& [name, value] : metrics->items())
    if (name != "accuracy" && value.is_number()) print(name, value.get<double>());
}

}  // namespace

int exit_code_of(const Json& status) {
  const std::string state = text_of(status, "state");
  if (state == "finished") return 0;
  if (state == "stopped") return 2;
  const auto code = status.find("code");
  if (code != status.end() && code->is_number_integer()) return code->get<int>();
  return static_cast<int>(ErrorCode::kFailed);
}

void print_checkpoint(std::ostream& out, const Json& status) {
  if (const std::string checkpoint = text_of(status, "checkpoint"); !checkpoint.empty())
    out << "  newest checkpoint " << checkpoint << '\n';
}

void print_summary(std::ostream& out, const Json& status) {
  if (text_of(status, "state") != "failed") {  // for a failed job print_root_cause() prints this
    out << "job " << text_of(status, "job") << " " << text_of(status, "state");
    const std::string reason = text_of(status, "reason");
    if (!reason.empty()) out << ": " << reason;
    out << '\n';
  }
  if (const double steps = number_of(status, "global_step"); steps > 0) {
    const double seconds = number_of(status, "seconds");
    const double loss = number_of(status, "loss");
    out << "  " << with_commas(steps) << ' ' << noun_for(static_cast<std::uint64_t>(steps), "step");
    if (seconds > 0)
      out << ", trained for " << seconds_text(seconds) << ", " << with_commas(number_of(status, "examples_per_second"))
          << " examples/s";
    if (std::isfinite(loss)) out << ", loss " << fixed(loss, 4);
    out << '\n';
  }
  if (const double recoveries = number_of(status, "recoveries"); recoveries > 0)
    out << "  " << with_commas(recoveries) << (recoveries == 1 ? " recovery" : " recoveries") << '\n';
  print_checkpoint(out, status);
  if (const std::string trace = text_of(status, "trace"); !trace.empty())
    out << "  trace " << trace << " (open it in ui.perfetto.dev)\n";
  const auto evaluation = status.find("evaluation");
  if (evaluation != status.end() && evaluation->is_object()) {
    out << "  test ";
    print_metrics(out, *evaluation);
    const double examples = number_of(*evaluation, "examples");
    out << "loss " << fixed(number_of(*evaluation, "loss"), 4) << " over " << with_commas(examples) << ' '
        << noun_for(static_cast<std::uint64_t>(examples), "example") << '\n';
  }
  if (const Json best = list_of(status, "best_checkpoints"); !best.empty())
    out << "  best checkpoint: " << text_of(best.front(), "path") << " (" << fixed(number_of(best.front(), "value"), 4)
        << ")\n";
  if (const std::string skipped = skipped_text(status); !skipped.empty()) out << "  warning: " << skipped << '\n';
  print_warnings(out, list_of(status, "warnings"));
}

void print_root_cause(std::ostream& out, const Json& status) {
  if (text_of(status, "state") != "failed") return;
  const std::string failed = "job " + text_of(status, "job") + " failed";
  const auto cause = status.find("root_cause");
  if (cause == status.end() || !cause->is_object()) {
    out << failed << ": " << text_of(status, "reason") << '\n';
    return;
  }
  const std::string task = text_of(*cause, "task");
  const std::string reason = unfolded(text_of(*cause, "reason"));
  // A reason of several lines ends with the output of a user's program, which the log only repeats.
  const bool shows_output = reason.find('\n') != std::string::npos;
  if (const Json log = list_of(*cause, "log"); !log.empty() && !shows_output) {
    out << "last log lines of " << task << ":\n";
    for (const Json& line : log)
      if (line.is_string()) out << "  | " << line.get<std::string>() << '\n';
  }
  out << failed << " because of " << task << ": " << reason << '\n';
  const bool is_refused_at_start = status.contains("code") && status["code"].is_number_integer();
  if (!is_refused_at_start) out << "what to do: " << way_out(status, *cause) << '\n';
}

void print_phases(std::ostream& out, const Json& status) {
  out << fixed(number_of(status, "steps_per_second"), 1) << " steps/s, "
      << with_commas(number_of(status, "examples_per_second")) << " examples/s, all workers together\n";
  const char* const phases[] = {"input", "pull", "compute", "push", "wait"};
  Table table({"task", "input", "pull", "compute", "push", "wait"});
  for (const Json& task : list_of(status, "tasks")) {
    const auto times = task.find("phase_times");
    if (times == task.end() || !times->is_object()) continue;
    double sum = 0;
    for (const char* phase : phases) sum += std::isfinite(number_of(*times, phase)) ? number_of(*times, phase) : 0;
    std::vector<std::string> row = {text_of(task, "task")};
    for (const char* phase : phases) {
      const double seconds = number_of(*times, phase);
      row.push_back(seconds_text(seconds) + (sum > 0 ? " (" + fixed(100 * seconds / sum, 0) + "%)" : ""));
    }
    table.add(row);
  }
  out << table.text();
}

Json failed_status(const Json& last, const std::string& job, const std::string& task, const std::string& reason,
                   std::optional<int> signal, const std::vector<std::string>& log) {
  Json status = last;
  if (!status.is_object()) {
    status = {{"job", job},
              {"state", ""},
              {"reason", ""},
              {"waits_for", Json::array()},
              {"global_step", 0},
              {"seconds", 0.0},
              {"steps_per_second", 0.0},
              {"examples_per_second", 0.0},
              {"loss", nullptr},
              {"metrics", {{"loss", nullptr}}},
              {"evaluation", nullptr},
              {"transport", nullptr},
              {"generation", 0},
              {"recoveries", 0},
              {"skipped", 0},
              {"checkpoint", nullptr},
              {"trace", nullptr},
              {"trace_pending", false},
              {"tasks", Json::array()}};
  }
  status["state"] = "failed";
  status["reason"] = task.empty() ? reason : task + ": " + reason;
  status["waits_for"] = Json::array();
  status["root_cause"] = nullptr;
  if (!task.empty())
    status["root_cause"] = {
        {"task", task}, {"reason", reason}, {"signal", signal ? Json(*signal) : Json(nullptr)}, {"log", log}};
  return status;
}

}  // namespace disttrain::cli
