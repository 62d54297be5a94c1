// disttrain why [JOB]: says in one sentence what slows the job's steps, and prints the figures behind this verdict.
#include <algorithm>
#include <asio/io_context.hpp>
#include <iostream>
#include <sstream>

#include "common/daemon/startup.h"
#include "tools/disttrain/follow/follow_job.h"
#include "tools/disttrain/interrupts.h"
#include "tools/disttrain/table.h"
#include "tools/disttrain/up/running_cluster.h"
#include "tools/disttrain/verbs.h"
#include "tools/disttrain/why/verdict.h"

namespace disttrain::cli {

namespace {

using namespace std::chrono_literals;

constexpr Duration kBetweenLooks = 2s;
// The measurement goes on until each worker has made a few steps, but not longer than this.
constexpr Duration kLongest = 10s;
constexpr std::size_t kMostRows = 8;

struct Answer {
  Json status;
  Verdict verdict;
};

Result<Answer> look_twice(ChiefClient& client, const std::string& job) {
  Result<Json> before = ask_status(client, job, false, Duration::zero());
  if (!before) return tl::unexpected<Error>(std::move(before.error()));
  if (text_of(*before, "state") != "running") return Answer{*before, judge(*before, *before)};
  const std::string number = std::to_string(static_cast<long>(number_of(*before, "id")));
  const auto end = std::chrono::steady_clock::now() + kLongest;
  while (true) {
    Result<Json> after = ask_status(client, number, false, kBetweenLooks);
    if (!after) return tl::unexpected<Error>(std::move(after.error()));
    const bool is_last = std::chrono::steady_clock::now() >= end || text_of(*after, "state") != "running";
    if (is_last || is_enough(*before, *after)) return Answer{*after, judge(*before, *after)};
    if (compare(*before, *after).workers.empty()) before = std::move(after);  // every worker started over
  }
}

template <typename Row>
void print_rows(Table table, std::size_t rows, const Row& row) {
  for (std::size_t i = 0; i < std::min(rows, kMostRows); ++i) table.add(row(i));
  std::istringstream lines(table.text());
  for (std::string line; std::getline(lines, line);) std::cout << "  " << line << '\n';
  if (rows > kMostRows) std::cout << "  and " << rows - kMostRows << " more\n";
}

void print(Verdict verdict) {
  std::cout << verdict.sentence << '\n';
  auto& [workers, shards] = verdict.samples;
  std::stable_sort(workers.begin(), workers.end(),
                   [](const auto& a, const auto& b) { return a.exchange * b.seconds() < b.exchange * a.seconds(); });
  std::stable_sort(shards.begin(), shards.end(), [](const auto& a, const auto& b) { return a.busy > b.busy; });
  if (!workers.empty())
    print_rows(Table({"WORKER", "STEPS/S", "INPUT", "COMPUTE", "EVALUATE", "PUSH, PULL, WAIT"}), workers.size(),
               [&workers = workers](std::size_t i) -> std::vector<std::string> {
                 const WorkerSample& sample = workers[i];
                 const double all = sample.seconds();
                 char rate[32];
                 std::snprintf(rate, sizeof(rate), "%.2f", sample.steps / all);
                 return {sample.task,
                         rate,
                         percent(sample.input / all),
                         percent(sample.compute / all),
                         percent(sample.evaluate / all),
                         percent(sample.exchange / all)};
               });
  if (!shards.empty())
    print_rows(Table({"PS", "SHARD", "BUSY", "APPLYING"}), shards.size(),
               [&shards = shards](std::size_t i) -> std::vector<std::string> {
                 const ShardSample& sample = shards[i];
                 return {sample.task, std::to_string(sample.shard), percent(sample.busy), percent(sample.applying)};
               });
}

Json to_json(const Answer& answer) {
  const auto task_or_null = [](const std::string& task) { return task.empty() ? Json(nullptr) : Json(task); };
  Json workers = Json::array();
  for (const WorkerSample& sample : answer.verdict.samples.workers) {
    Json stages = Json::object();
    for (std::size_t i = 0; i < sample.stages.size(); ++i) stages[kDataStages[i]] = sample.stages[i];
    workers.push_back({{"task", sample.task},
                       {"steps", sample.steps},
                       {"input", sample.input},
                       {"compute", sample.compute},
                       {"evaluate", sample.evaluate},
                       {"exchange", sample.exchange},
                       {"data", stages}});
  }
  Json shards = Json::array();
  for (const ShardSample& sample : answer.verdict.samples.shards)
    shards.push_back(
        {{"task", sample.task}, {"shard", sample.shard}, {"busy", sample.busy}, {"applying", sample.applying}});
  return {{"job", answer.status.value("job", Json(nullptr))},
          {"id", answer.status.value("id", Json(nullptr))},
          {"state", answer.status.value("state", Json(nullptr))},
          {"brake", to_string(answer.verdict.brake)},
          {"task", task_or_null(answer.verdict.task)},
          {"sentence", answer.verdict.sentence},
          {"workers", workers},
          {"shards", shards}};
}

}  // namespace

int why(const WhyOptions& options) {
  const auto cluster = find_running_cluster(options.cluster, options.chief);
  if (!cluster) return daemon::report("disttrain why", cluster.error());
  asio::io_context loop;
  Interrupts interrupts(loop);
  ChiefClient client(loop, [&interrupts] { return interrupts.count() > 0; });
  if (const Status connected = client.connect(cluster->target, cluster->dial); !connected)
    return interrupts.count() > 0 ? interrupts.exit_code() : daemon::report("disttrain why", connected.error());
  const Result<Answer> answer = look_twice(client, options.job);
  if (interrupts.count() > 0) return interrupts.exit_code();
  if (!answer) return daemon::report("disttrain why", answer.error());
  if (options.json)
    std::cout << line_of(to_json(*answer)) << '\n';
  else
    print(answer->verdict);
  return 0;
}

}  // namespace disttrain::cli
