// disttrain bench scale: predicts how a job performs on a cluster of a given size. It simulates the cluster with the
// real cores of all tasks (scale/cluster_run.h).
#include <sys/resource.h>

#include <iostream>

#include "common/config/reader/reader.h"
#include "common/daemon/clock.h"
#include "common/daemon/startup.h"
#include "tools/disttrain/model_of_job.h"
#include "tools/disttrain/scale/link_options.h"
#include "tools/disttrain/scale/report_text.h"
#include "tools/disttrain/units.h"
#include "tools/disttrain/verbs.h"

namespace disttrain::cli {
namespace {

constexpr std::uint64_t kDefaultBytes = 80'000'000;
constexpr std::uint64_t kLeastBytes = 4;
constexpr std::uint64_t kMostBytes = 1'000'000'000'000;

// A job whose model is one variable of so many bytes.
Result<scale::RunOptions> made_up_job(const ScaleOptions& options) {
  const std::uint64_t bytes = options.bytes.value_or(kDefaultBytes);
  if (bytes < kLeastBytes || bytes > kMostBytes)
    return fail(ErrorCode::kUsage, "--bytes " + std::to_string(bytes) + ": the parameters must have 4 bytes to 1 TB");
  scale::RunOptions run;
  run.job.job.name = "scale";
  run.job.train.mode = Mode::kSync;
  run.job.train.batch_size = 100;
  VariableSpec variable;
  variable.name = "parameters";
  variable.shape = {bytes / sizeof(float)};
  run.model.variables.push_back(variable);
  run.model.columns = {{.name = "inputs", .shape = {1}}};
  return run;
}

Result<scale::RunOptions> job_of_file(const ScaleOptions& options) {
  auto file = config::read_job_file(options.job, options.sets);
  if (!file) return tl::unexpected<Error>(std::move(file.error()));
  auto model = model_of_job(file->config);
  if (!model.has_value()) return tl::unexpected<Error>(model.error());
  if (!*model)
    return fail(ErrorCode::kConfig, options.job +
                                        ": the size of the model is known only when the job runs; give its "
                                        "size by --bytes instead of --job");
  scale::RunOptions run;
  run.job = std::move(file->config);
  run.model = std::move(**model);
  return run;
}

Result<scale::RunOptions> make_run(const ScaleOptions& options) {
  auto run = options.job.empty() ? made_up_job(options) : job_of_file(options);
  if (!run) return run;
  if (options.mode == "sync") run->job.train.mode = Mode::kSync;
  if (options.mode == "async") run->job.train.mode = Mode::kAsync;
  if (options.mode == "ssp") run->job.train.mode = Mode::kSsp;
  if (options.shards) run->job.job.shards = *options.shards;
  run->workers = options.workers;
  run->ps_threads.assign(options.ps, options.threads);
  run->speed = link_speed(options.bandwidth, options.latency);
  run->compute = parse_time(options.compute, kMostCompute).value();
  run->steps = options.steps;
  run->records = options.records;
  run->clock = +[] { return daemon::thread_time(); };
  return run;
}

std::uint64_t peak_memory() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return static_cast<std::uint64_t>(used.ru_maxrss) * 1024;
}

}  // namespace

int bench_scale(const ScaleOptions& options) {
  const auto made = make_run(options);
  if (!made) return daemon::report("disttrain bench scale", made.error());
  const Instant begin = daemon::now();
  const auto report = scale::run(*made);
  if (!report) return daemon::report("disttrain bench scale", report.error());
  const double wall = to_seconds(daemon::now() - begin);
  if (options.json) {
    Json json = to_json(*made, *report);
    json["wall"] = wall;
    json["peak_memory_bytes"] = peak_memory();
    std::cout << line_of(json) << '\n';
  } else {
    print(std::cout, *made, *report);
    std::cout << "the simulation took " << seconds_text(wall) << " and " << bytes_text(peak_memory()) << " of memory\n";
  }
  return 0;
}

}  // namespace disttrain::cli
