#include "tools/disttrain/why/verdict.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "tools/disttrain/why/verdict_state.h"

namespace disttrain::cli {

namespace {

constexpr double kFewestSteps = 3.0;

using Measure = std::function<double(const WorkerSample&)>;

double input_share(const WorkerSample& worker) {
  return worker.input / worker.seconds();
}
double compute_share(const WorkerSample& worker) {
  return worker.compute / worker.seconds();
}
double evaluate_share(const WorkerSample& worker) {
  return worker.evaluate / worker.seconds();
}
double exchange_share(const WorkerSample& worker) {
  return worker.exchange / worker.seconds();
}
double own_share(const WorkerSample& worker) {
  return 1.0 - exchange_share(worker);
}
// A worker that hasn't ended a step counts as having made half of one.
double seconds_per_step(const WorkerSample& worker) {
  return worker.seconds() / (worker.steps > 0.0 ? worker.steps : 0.5);
}
double steps_per_second(const WorkerSample& worker) {
  return 1.0 / seconds_per_step(worker);
}

// A part of the step, and what is said of workers that spend most of it there.
struct Part {
  Brake brake;
  double (*share)(const WorkerSample&);
  const char* does;      // one of them
  const char* they_do;   // several
  const char* when_all;  // what to do where all workers do so
  const char* when_one;  // what to do where one does so more than the others
};
constexpr Part kParts[] = {
    {Brake::kInput, input_share, "waits for input batches", "wait for input batches",
     "check how fast their data's disks are and how busy their processors, or raise data.prefetch",
     "check how fast its data's disk is and how busy its processors, or raise data.prefetch"},
    {Brake::kCompute, compute_share, "computes", "compute", "",
     "its device is slower than theirs, or something else uses it too"},
    {Brake::kEvaluation, evaluate_share, "evaluates", "evaluate", "evaluate less often (evaluate.every_steps)",
     "evaluate less often (evaluate.every_steps)"},
    {Brake::kLink, exchange_share, "", "", "", ""},  // or kShard
};

// The values of all workers except `but`, ascending.
std::vector<double> of_others(const std::vector<WorkerSample>& workers, const WorkerSample* but,
                              const Measure& measure) {
  std::vector<double> values;
  for (const WorkerSample& worker : workers)
    if (&worker != but) values.push_back(measure(worker));
  std::sort(values.begin(), values.end());
  return values;
}

double median(const std::vector<double>& sorted) {
  const std::size_t half = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2.0;
}

// The worker with the largest value, if that is clearly more than the others' median: kClearly times as much, and more
// by kWorthIt of `whole` (0: of its own value). Null: none.
const WorkerSample* clearly_most(const std::vector<WorkerSample>& workers, const Measure& measure, double whole) {
  const auto most = std::max_element(workers.begin(), workers.end(),
                                     [&measure](const auto& a, const auto& b) { return measure(a) < measure(b); });
  const auto others = of_others(workers, &*most, measure);
  if (others.empty()) return nullptr;
  const double value = measure(*most);
  const bool is_worth_it = value - median(others) >= kWorthIt * (whole > 0.0 ? whole : value);
  return is_worth_it && value >= kClearly * median(others) ? &*most : nullptr;
}

std::string range(const std::vector<double>& sorted) {
  const std::string most = percent(sorted.back());
  return percent(sorted.front()) == most ? most : std::to_string(std::lround(100.0 * sorted.front())) + "-" + most;
}

std::string rate(double steps_per_second) {
  char text[32];
  std::snprintf(text, sizeof(text), steps_per_second < 10.0 ? "%.2f" : "%.0f", steps_per_second);
  return text;
}

class Judge {
 public:
  Judge(const Json& status, const TwoSamples& samples)
      : job_("job " + text_of(status, "job")), mode_(text_of(status, "mode")), samples_(samples) {
    // Workers that wait for each other make equally many steps, so their own work tells them apart. Where they don't
    // wait (async, or ssp below its bound), their pace does.
    if (mode_ != "sync") straggler_ = clearly_most(samples_.workers, seconds_per_step, 0.0);
    if (straggler_ == nullptr && mode_ != "async") {
      straggler_ = clearly_most(samples_.workers, own_share, 1.0);
      is_waited_for_ = straggler_ != nullptr;
    }
    const auto busiest = std::max_element(samples_.shards.begin(), samples_.shards.end(),
                                          [](const auto& a, const auto& b) { return a.busy < b.busy; });
    if (busiest != samples_.shards.end()) busiest_ = &*busiest;
  }

  Verdict verdict() const {
    const Part* largest = std::max_element(std::begin(kParts), std::end(kParts), [this](const Part& a, const Part& b) {
      return typical(a.share) < typical(b.share);
    });
    if (largest->brake == Brake::kLink) return is_shard_cause() ? of_shard() : of_link();
    if (straggler_ != nullptr) return of_straggler(*largest);
    return largest->brake == Brake::kCompute ? of_devices() : of_all(*largest);
  }

 private:
  bool is_alone() const { return samples_.workers.size() == 1; }
  std::string all_workers() const {
    return is_alone() ? samples_.workers[0].task : "all " + std::to_string(samples_.workers.size()) + " workers";
  }
  std::string only_task() const { return is_alone() ? samples_.workers[0].task : ""; }
  std::string of_every_one(const Measure& share) const { return range(of_others(samples_.workers, nullptr, share)); }
  std::string of_the_others(const Measure& share) const {
    return range(of_others(samples_.workers, straggler_, share));
  }
  // The straggler's share; where all are alike, the mean.
  double typical(const Measure& share) const {
    if (straggler_ != nullptr) return share(*straggler_);
    double sum = 0.0;
    for (const WorkerSample& worker : samples_.workers) sum += share(worker);
    return sum / static_cast<double>(samples_.workers.size());
  }
  Verdict say(Brake brake, const std::string& task, const std::string& sentence) const {
    return {brake, task, job_ + sentence, samples_};
  }

  Verdict of_straggler(const Part& part) const {
    const std::string others = of_the_others(part.share);
    std::string text = " is held back by " + straggler_->task +
                       (straggler_->host.empty() ? "" : " on " + straggler_->host) + ", which " + part.does + " " +
                       percent(part.share(*straggler_)) + " of its step";
    if (is_waited_for_)
      text += " while the others " + std::string(part.they_do) + " " + others + " and wait for it";
    else
      text += " and makes " + rate(steps_per_second(*straggler_)) + " steps/s; the others " + part.they_do + " " +
              others + " of theirs, make " + rate(median(of_others(samples_.workers, straggler_, steps_per_second))) +
              " and don't wait for it";
    return say(part.brake, straggler_->task, text + ": " + part.when_one);
  }

  Verdict of_all(const Part& part) const {
    return say(part.brake, only_task(),
               std::string(" is held back by ") + (part.brake == Brake::kInput ? "its input" : "evaluations") + ": " +
                   all_workers() + " " + (is_alone() ? part.does : part.they_do) + " " + of_every_one(part.share) +
                   " of the step: " + part.when_all);
  }

  Verdict of_devices() const {
    const bool is_most = typical(compute_share) >= kMostly;
    return say(Brake::kCompute, only_task(),
               " computes: " + all_workers() + (is_alone() ? " spends " : " spend ") + of_every_one(compute_share) +
                   " of the step in compute: " +
                   (is_most ? "nothing holds it back but the device" : "no other part of it takes as long"));
  }

  // A shard serves the workers one after the other. In sync and ssp all of them wait while it does.
  bool is_shard_cause() const {
    if (busiest_ == nullptr) return false;
    const double sharers = mode_ == "async" ? static_cast<double>(samples_.workers.size()) : 1.0;
    return busiest_->busy >= kBusy || busiest_->busy / sharers >= kExplains * typical(exchange_share);
  }

  Verdict of_shard() const {
    return say(Brake::kShard, busiest_->task,
               " is held back by " + busiest_->task + ": the thread of its shard " + std::to_string(busiest_->shard) +
                   " is at work " + percent(busiest_->busy) + " of the time (applying gradients takes " +
                   percent(busiest_->applying) + "), and " + all_workers() + (is_alone() ? " waits " : " wait ") +
                   of_every_one(exchange_share) +
                   " of the step for parameters: give it more shards (job.shards, and shards of [[ps]]) or another ps");
  }

  std::string no_shard_is_busy() const {
    if (busiest_ == nullptr) return "";
    return ", and no shard is busy (the busiest, shard " + std::to_string(busiest_->shard) + " of " + busiest_->task +
           ", " + percent(busiest_->busy) + ")";
  }
  // The host of all workers and shards; "": they are on several.
  std::string only_host() const {
    const std::string host = samples_.workers[0].host;
    const auto is_there = [&host](const auto& sample) { return sample.host == host; };
    const bool all = std::all_of(samples_.workers.begin(), samples_.workers.end(), is_there) &&
                     std::all_of(samples_.shards.begin(), samples_.shards.end(), is_there);
    return all ? host : "";
  }
  std::string advice() const {
    const std::string host = only_host();
    return host.empty() ? ": see the network between their hosts, or make a step carry more (train.batch_size) or "
                          "overlap with the next (train.pipeline)"
                        : ": all of them are on " + host +
                              ", where no network lies between, so they share its processors: try fewer tasks there, "
                              "or more work in a step (train.batch_size)";
  }

  Verdict of_link() const {
    // A slower worker whose exchange takes no larger share of its step than the others' isn't slow because of its link.
    const bool is_slower = straggler_ != nullptr && !is_waited_for_;
    if (is_slower && exchange_share(*straggler_) > median(of_others(samples_.workers, straggler_, exchange_share)))
      return say(Brake::kLink, straggler_->task,
                 " is held back by the link between " + straggler_->task +
                     " and the ps tasks: its pushes and pulls take " + percent(exchange_share(*straggler_)) +
                     " of its step, those of the others " + of_the_others(exchange_share) + no_shard_is_busy() +
                     advice());
    const bool hides = mode_ != "async" && !is_alone();
    return say(Brake::kLink, is_waited_for_ ? straggler_->task : only_task(),
               " is held back by the links between " + (is_alone() ? samples_.workers[0].task : "the workers") +
                   " and the ps tasks: pushes, pulls and the wait for their answers take " +
                   (is_waited_for_ ? percent(exchange_share(*straggler_)) : of_every_one(exchange_share)) +
                   " of the step" + (is_waited_for_ ? whose() : "") + no_shard_is_busy() +
                   (hides && straggler_ == nullptr
                        ? "; in " + mode_ + " all workers wait alike, which hides whose link is slow"
                        : "") +
                   advice());
  }
  // The straggler waits for no other worker, so its share is the exchange alone.
  std::string whose() const {
    return " even at " + straggler_->task + ", which waits least (its own work takes " +
           percent(own_share(*straggler_)) + ", that of the others " + of_the_others(own_share) + ")";
  }

  const std::string job_;
  const std::string mode_;
  const TwoSamples& samples_;
  const WorkerSample* straggler_ = nullptr;
  bool is_waited_for_ = false;  // whether the others wait for the straggler
  const ShardSample* busiest_ = nullptr;
};

}  // namespace

const char* to_string(Brake brake) {
  constexpr const char* kNames[] = {"no_job",  "state",      "unknown", "stall", "input",
                                    "compute", "evaluation", "shard",   "link"};
  return kNames[static_cast<std::size_t>(brake)];
}

std::string percent(double share) {
  return std::to_string(std::lround(100.0 * share)) + " %";
}

Verdict judge(const Json& before, const Json& after) {
  if (text_of(after, "state") != "running") return judge_state(after);
  TwoSamples samples = compare(before, after);
  if (samples.workers.empty())
    return {Brake::kUnknown, "",
            "job " + text_of(after, "job") +
                " runs, but none of its workers was in it at both samples: run `disttrain why` again",
            std::move(samples)};
  if (std::all_of(samples.workers.begin(), samples.workers.end(),
                  [](const auto& worker) { return worker.steps == 0.0; }))
    return judge_stall(after, std::move(samples));
  return Judge(after, samples).verdict();
}

bool is_enough(const Json& before, const Json& after) {
  const TwoSamples samples = compare(before, after);
  return !samples.workers.empty() && std::all_of(samples.workers.begin(), samples.workers.end(),
                                                 [](const auto& worker) { return worker.steps >= kFewestSteps; });
}

}  // namespace disttrain::cli
