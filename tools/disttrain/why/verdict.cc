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
// If the worker hasn't ended a step, assumes that it has made half a step.
double seconds_per_step(const WorkerSample& worker) {
  return worker.seconds() / (worker.steps > 0.0 ? worker.steps : 0.5);
}
double steps_per_second(const WorkerSample& worker) {
  return 1.0 / seconds_per_step(worker);
}

// A part of the step, and the words for workers that spend most of the step in it.
struct Part {
  Brake brake;
  double (*share)(const WorkerSample&);
  const char* does;      // the verb for one worker
  const char* they_do;   // the verb for several workers
  const char* when_all;  // the advice if all workers spend most of the step in this part
  const char* when_one;  // the advice if one worker spends more time in this part than the others
};
constexpr Part kParts[] = {
    {Brake::kInput, input_share, "waits for input batches", "wait for input batches",
     "check the speed of their disks and the load of their processors, or raise data.prefetch",
     "check the speed of its disk and the load of its processors, or raise data.prefetch"},
    {Brake::kCompute, compute_share, "computes", "compute", "",
     "its device is slower than the other workers' devices, or another program uses this device too"},
    {Brake::kEvaluation, evaluate_share, "evaluates", "evaluate", "evaluate less often (evaluate.every_steps)",
     "evaluate less often (evaluate.every_steps)"},
    {Brake::kLink, exchange_share, "", "", "", ""},  // verdict() decides whether it is kLink or kShard
};

// Returns the values of all workers except `but`, in ascending order.
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

// Returns the worker with the largest value, if this is clearly larger than the others' median, else null. Clearly
// larger means: at least kClearly times as large, and larger by at least kWorthIt of `whole`. If `whole` is 0, the
// function uses the largest value as `whole`.
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

// The advice for the stage of making batches that takes longest, in the order of kDataStages.
constexpr const char* kStageAdvice[] = {
    "put the data on a faster disk or network, or set data.shuffle = \"blocks\", which reads whole blocks",
    "raise data.threads, or store the data in a format that is decoded faster (docs/data.md)",
    "raise data.threads, or store the data transformed, such as smaller images",
    "raise data.threads",
};

// Says how the time of making these workers' batches is divided among its stages, and what to do: "; of the time of
// ...". Returns "" if their records are in memory.
std::string stages_text(const std::vector<WorkerSample>& workers) {
  std::array<double, kDataStages.size()> sums{};
  double all = 0.0;
  for (const WorkerSample& worker : workers)
    for (std::size_t i = 0; i < sums.size(); ++i) {
      sums[i] += worker.stages[i];
      all += worker.stages[i];
    }
  if (!(all > 0.0)) return "";
  std::string text;
  for (std::size_t i = 0; i < sums.size(); ++i)
    text += std::string(i == 0 ? "" : ", ") + kDataStages[i] + " " + percent(sums[i] / all);
  const auto slowest = static_cast<std::size_t>(std::max_element(sums.begin(), sums.end()) - sums.begin());
  return "; the slow stage of making batches is " + std::string(kDataStages[slowest]) + " (" + text +
         " of the input threads' time): " + kStageAdvice[slowest];
}

class Judge {
 public:
  Judge(const Json& status, const TwoSamples& samples)
      : job_("job " + text_of(status, "job")), mode_(text_of(status, "mode")), samples_(samples) {
    // If workers wait for each other, all make equally many steps, so only their own work shows who is slow. If they
    // don't wait (in async, and in ssp below its bound), their steps per second show it.
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
  // Returns the straggler's share. If there is no straggler, returns the mean of all workers.
  double typical(const Measure& share) const {
    if (straggler_ != nullptr) return share(*straggler_);
    double sum = 0.0;
    for (const WorkerSample& worker : samples_.workers) sum += share(worker);
    return sum / static_cast<double>(samples_.workers.size());
  }
  Verdict say(Brake brake, const std::string& task, const std::string& sentence) const {
    return {brake, task, job_ + sentence, samples_};
  }

  // Workers that don't wait for each other still wait at a checkpoint: a shard takes no push that came after the mark
  // of one worker before it has the marks of all. If the straggler's step is very long, this stops the others.
  std::string how_others_wait() const {
    if (!(median(of_others(samples_.workers, straggler_, exchange_share)) > 0.5))
      return "don't wait for " + straggler_->task;
    return "spend " + of_the_others(exchange_share) +
           " of it in push, pull and wait: while a checkpoint is taken, they wait until " + straggler_->task +
           " has ended its step";
  }

  Verdict of_straggler(const Part& part) const {
    const std::string others = of_the_others(part.share);
    std::string text = " is held back by " + straggler_->task +
                       (straggler_->host.empty() ? "" : " on " + straggler_->host) + ", which " + part.does + " for " +
                       percent(part.share(*straggler_)) + " of its step";
    if (is_waited_for_)
      text += "; the others " + std::string(part.they_do) + " for " + others + " of their step and then wait for " +
              straggler_->task;
    else
      text += " and makes " + rate(steps_per_second(*straggler_)) + " steps/s; the others " + part.they_do + " for " +
              others + " of their step, make " +
              rate(median(of_others(samples_.workers, straggler_, steps_per_second))) + " steps/s and " +
              how_others_wait();
    const std::string stages = part.brake == Brake::kInput ? stages_text({*straggler_}) : "";
    return say(part.brake, straggler_->task, text + (stages.empty() ? "; " + std::string(part.when_one) : stages));
  }

  Verdict of_all(const Part& part) const {
    const std::string stages = part.brake == Brake::kInput ? stages_text(samples_.workers) : "";
    return say(part.brake, only_task(),
               std::string(" is held back by ") + (part.brake == Brake::kInput ? "its input" : "evaluations") + ": " +
                   all_workers() + " " + (is_alone() ? part.does : part.they_do) + " for " + of_every_one(part.share) +
                   " of the step" + (stages.empty() ? "; " + std::string(part.when_all) : stages));
  }

  Verdict of_devices() const {
    const bool is_most = typical(compute_share) >= kMostly;
    return say(Brake::kCompute, only_task(),
               " computes: " + all_workers() + (is_alone() ? " spends " : " spend ") + of_every_one(compute_share) +
                   " of the step in compute, " +
                   (is_most ? "so only a faster device would help" : "and no other part of the step takes as long"));
  }

  // A shard serves the workers one after the other. In async each worker waits only while the shard serves that worker.
  // In sync and ssp it waits while the shard serves any of them.
  bool is_shard_cause() const {
    if (busiest_ == nullptr) return false;
    const double sharers = mode_ == "async" ? static_cast<double>(samples_.workers.size()) : 1.0;
    return busiest_->busy >= kBusy || busiest_->busy / sharers >= kExplains * typical(exchange_share);
  }

  Verdict of_shard() const {
    return say(Brake::kShard, busiest_->task,
               " is held back by " + busiest_->task + ": the thread of its shard " + std::to_string(busiest_->shard) +
                   " works for " + percent(busiest_->busy) + " of the time (for " + percent(busiest_->applying) +
                   " it applies gradients), and " + all_workers() + (is_alone() ? " waits" : " wait") +
                   " for parameters for " + of_every_one(exchange_share) +
                   " of the step: use more shards (job.shards, and shards of [[ps]]) or more ps tasks");
  }

  std::string no_shard_is_busy() const {
    if (busiest_ == nullptr) return "";
    return ", and no shard is busy (the busiest is shard " + std::to_string(busiest_->shard) + " of " + busiest_->task +
           " with " + percent(busiest_->busy) + ")";
  }
  // Returns the host if all workers and shards are on the same one, else "".
  std::string only_host() const {
    const std::string host = samples_.workers[0].host;
    const auto is_there = [&host](const auto& sample) { return sample.host == host; };
    const bool all = std::all_of(samples_.workers.begin(), samples_.workers.end(), is_there) &&
                     std::all_of(samples_.shards.begin(), samples_.shards.end(), is_there);
    return all ? host : "";
  }
  std::string advice() const {
    const std::string host = only_host();
    return host.empty() ? ": check the network between their hosts, use larger steps (train.batch_size), or let steps "
                          "overlap (train.pipeline)"
                        : ": all of them run on " + host +
                              " and share its processors: try fewer tasks there, or larger steps (train.batch_size)";
  }

  Verdict of_link() const {
    // A straggler's link is to blame only if exchange takes a larger share of its step than of the others' steps.
    const bool is_slower = straggler_ != nullptr && !is_waited_for_;
    if (is_slower && exchange_share(*straggler_) > median(of_others(samples_.workers, straggler_, exchange_share)))
      return say(Brake::kLink, straggler_->task,
                 " is held back by the link between " + straggler_->task + " and the ps tasks: pushes and pulls take " +
                     percent(exchange_share(*straggler_)) + " of " + straggler_->task + "'s step and " +
                     of_the_others(exchange_share) + " of the other workers' steps" + no_shard_is_busy() + advice());
    const bool hides = mode_ != "async" && !is_alone();
    return say(
        Brake::kLink, is_waited_for_ ? straggler_->task : only_task(),
        " is held back by the links between " + (is_alone() ? samples_.workers[0].task : "the workers") +
            " and the ps tasks: pushes, pulls and the wait for their answers take " +
            (is_waited_for_ ? percent(exchange_share(*straggler_)) : of_every_one(exchange_share)) + " of the step" +
            (is_waited_for_ ? whose() : "") + no_shard_is_busy() +
            (hides && straggler_ == nullptr
                 ? "; in " + mode_ + " all workers wait equally long, so the figures don't show whose link is slow"
                 : "") +
            advice());
  }
  // Names the straggler. It waits for no other worker, so all its time in exchange is due to the network and the ps.
  std::string whose() const {
    return " even for " + straggler_->task + ", which waits least (it works for " + percent(own_share(*straggler_)) +
           " of its step, while the others work for " + of_the_others(own_share) + " of theirs)";
  }

  const std::string job_;
  const std::string mode_;
  const TwoSamples& samples_;
  const WorkerSample* straggler_ = nullptr;
  bool is_waited_for_ = false;  // true: the others wait for the straggler
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
                " runs, but no worker took part during the whole measurement: run `disttrain why` again",
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
