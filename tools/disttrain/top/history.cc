#include "tools/disttrain/top/history.h"

#include <cmath>
#include <utility>

#include "tools/disttrain/follow/follow_job.h"

namespace disttrain::cli {

namespace {

void append(std::vector<double>& series, double value) {
  if (series.size() >= TopHistory::kMost) series.erase(series.begin());
  series.push_back(value);
}

}  // namespace

void TopHistory::add(const Json& status) {
  const Json job = status.value("id", Json());
  if (job != job_) *this = TopHistory();
  job_ = job;
  if (is_final_state(text_of(status, "state"))) return;
  double sum = std::nan("");
  std::map<std::string, std::vector<double>> tasks;  // without tasks that are gone
  for (const Json& task : list_of(status, "tasks")) {
    const std::string name = text_of(task, "task");
    const double rate = number_of(task, "examples_per_second");
    if (std::isfinite(rate)) sum = std::isnan(sum) ? rate : sum + rate;
    std::vector<double> series = std::move(tasks_[name]);
    append(series, rate);
    tasks[name] = std::move(series);
  }
  tasks_ = std::move(tasks);
  append(examples_per_second_, sum);
  append(loss_, number_of(status, "loss"));
}

void TopHistory::miss() {
  append(examples_per_second_, std::nan(""));
  append(loss_, std::nan(""));
  for (auto& [name, series] : tasks_) append(series, std::nan(""));
}

const std::vector<double>& TopHistory::examples_per_second_of(const std::string& task) const {
  static const std::vector<double> kNone;
  const auto found = tasks_.find(task);
  return found == tasks_.end() ? kNone : found->second;
}

}  // namespace disttrain::cli
