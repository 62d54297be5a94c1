// workerd is the worker daemon: it computes gradients for the chief's jobs. With `--role evaluator` it evaluates the
// checkpoints of these jobs. `disttrain predict` and `disttrain bench step` run it in two more roles:
//
//   workerd predict CHECKPOINT OUT DEVICE THREADS [SECTION.KEY=VALUE]...
//   workerd bench-step JOB DEVICE THREADS ROUNDS data|random text|json [SECTION.KEY=VALUE]...
#include <asio/io_context.hpp>
#include <charconv>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>

#include "common/daemon/clock.h"
#include "common/daemon/crash.h"
#include "common/daemon/end_deadline.h"
#include "common/daemon/exhaustion.h"
#include "common/daemon/http/pages.h"
#include "common/daemon/log/log.h"
#include "common/daemon/release_deadline.h"
#include "common/daemon/reload.h"
#include "common/daemon/service.h"
#include "common/daemon/signals.h"
#include "common/daemon/standard_streams.h"
#include "common/daemon/startup.h"
#include "common/metrics/process.h"
#include "transport/factory/factory.h"
#include "workerd/bench/step.h"
#include "workerd/evaluator/evaluator.h"
#include "workerd/job_engine.h"
#include "workerd/predict/predict.h"
#include "workerd/worker.h"

namespace disttrain::workerd {
namespace {

EngineFactory engines_on(const std::string& device) {
  return [device](const JobConfig& config, const std::vector<ColumnSpec>& columns, Arena& arena,
                  const EngineWorld& world) { return make_job_engine(config, columns, arena, world, device); };
}

void begin_as(const char* verb) {
  daemon::open_standard_streams();
  daemon::ignore_write_signals();
  daemon::end_when_exhausted(verb);
}

// Reads a number from 1. Returns false if the text isn't one.
bool read_count(std::string_view text, std::uint32_t& count) {
  return std::from_chars(text.data(), text.data() + text.size(), count).ec == std::errc() && count > 0;
}

int refuse_role(const std::string& verb) {
  return daemon::report("workerd", {ErrorCode::kUsage, "`" + verb + "` starts this role; run that instead"});
}

// The command line, which is our own program, has checked the arguments of the two roles below. Both functions return
// the exit code.
int predict_as_told(int argc, char** argv) {
  constexpr char kName[] = "disttrain predict";
  begin_as(kName);
  PredictOptions options;
  if (argc < 4 || !read_count(argv[3], options.threads)) return refuse_role(kName);
  options.checkpoint = argv[0];
  options.out = argv[1];
  options.sets.assign(argv + 4, argv + argc);
  const Status done = predict(options, engines_on(argv[2]));
  return done ? 0 : daemon::report(kName, done.error());
}

int bench_step_as_told(int argc, char** argv) {
  constexpr char kName[] = "disttrain bench step";
  begin_as(kName);
  StepBenchOptions options;
  if (argc < 6 || !read_count(argv[2], options.threads) || !read_count(argv[3], options.rounds))
    return refuse_role(kName);
  options.job = argv[0];
  options.is_random = std::string_view(argv[4]) == "random";
  options.is_json = std::string_view(argv[5]) == "json";
  options.sets.assign(argv + 6, argv + argc);
  const Status done = bench_step(options, engines_on(argv[1]));
  return done ? 0 : daemon::report(kName, done.error());
}

}  // namespace
}  // namespace disttrain::workerd

namespace disttrain::workerd {
namespace {

// Runs the main object of a role, a Worker or an Evaluator, until the process ends. Returns the exit code.
template <typename Task>
int run_task(asio::io_context& loop, daemon::Log& log, transport::Transport& transport, const daemon::Startup& startup,
             std::unique_ptr<daemon::HttpEndpoint>& http) {
  metrics::ProcessMetrics process(to_string(startup.task), daemon::kVersion, transport.name(), startup.cluster.hash,
                                  daemon::wall_nanoseconds());
  int exit_code = 0;
  // Limits the time for the destructors of the objects below, which join threads.
  std::optional<daemon::EndDeadline> deadline;
  const EngineFactory make_engine = engines_on(compute_config_of(startup.cluster, startup.task).device);
  Task task(
      loop, transport, log, startup, make_engine,
      [&loop, &log, &exit_code](const Error& refused) {
        exit_code = daemon::report(log, refused);
        loop.stop();
      },
      [] { std::_Exit(daemon::kHungCode); });
  if (const Status ok = daemon::try_patiently([&task] { return task.start(); }); !ok)
    return daemon::report(log, ok.error());
  daemon::add_daemon_pages(*http, {.collect =
                                       [&](metrics::Page& page) {
                                         process.collect(page, {.log_messages = log.counts(),
                                                                .bytes_received = transport.traffic().received,
                                                                .bytes_sent = transport.traffic().sent});
                                         task.collect(page);
                                       },
                                   .waits_for = [&task] { return task.waits_for(); }});
  http->serve();
  daemon::Service service(loop, log, task.loops(), [&task] { return task.state(); });
  const daemon::ReloadSignal reload(loop, startup, log, service, [&task, &process](const ClusterConfig& cluster) {
    task.change(cluster);
    process.reloaded(cluster.hash, daemon::wall_nanoseconds());
  });
  const daemon::StopSignals signals(loop, [&task, &service](int) {
    task.leave();
    service.stopping();
  });
  loop.run();
  deadline.emplace(log, daemon::kEndPatience, exit_code);
  http.reset();  // destroyed first, because its pages read the objects above
  return exit_code;
}

}  // namespace
}  // namespace disttrain::workerd

int main(int argc, char** argv) {
  using namespace disttrain;

  if (argc > 1 && std::string_view(argv[1]) == "predict") return workerd::predict_as_told(argc - 2, argv + 2);
  if (argc > 1 && std::string_view(argv[1]) == "bench-step") return workerd::bench_step_as_told(argc - 2, argv + 2);
  int exit_code = 0;
  std::optional<daemon::Startup> startup = daemon::start_daemon(Role::kWorker, argc, argv, exit_code);
  if (!startup) return exit_code;

  asio::io_context loop(1);
  daemon::Log log(startup->task, startup->cluster.log);
  daemon::report_crashes(startup->task, log.form());
  const Result<std::unique_ptr<transport::Transport>> made = transport::make_transport(
      startup->cluster.transport, startup->cluster.name, [&log](const std::string& text) { log.warn(text); });
  if (!made) return daemon::report(log, made.error());
  transport::Transport& transport = **made;
  Result<std::unique_ptr<daemon::HttpEndpoint>> http = daemon::open_endpoint(
      loop, *startup, [&] { return transport::try_to_listen(loop, transport, startup->listen_address); });
  if (!http) return daemon::report(log, http.error());
  startup->metrics_address = daemon::reachable_address(**http, startup->address);
  return startup->task.role == Role::kEvaluator
             ? workerd::run_task<workerd::Evaluator>(loop, log, transport, *startup, *http)
             : workerd::run_task<workerd::Worker>(loop, log, transport, *startup, *http);
}
