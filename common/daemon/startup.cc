#include "common/daemon/startup.h"

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdlib>
#include <iostream>

#include "common/config/reader/reader.h"
#include "common/config/reader/schema.h"
#include "common/daemon/daemon_options.h"
#include "common/daemon/exhaustion.h"
#include "common/daemon/host.h"
#include "common/daemon/log/log_entry.h"
#include "common/daemon/log/message_ids.h"
#include "common/daemon/log/systemd_journal.h"
#include "common/daemon/random.h"
#include "common/daemon/service.h"
#include "common/daemon/signals.h"
#include "common/daemon/standard_streams.h"
#include "common/daemon/usage_error.h"
#include "common/metrics/process.h"
#include "common/printable.h"

namespace disttrain::daemon {

namespace {

constexpr std::size_t kMostDescriptors = 65536;  // the units' limit

std::optional<DaemonOptions> parse(Role role, int argc, char** argv, int& exit_code) {
  DaemonOptions options;
  const char* environment = std::getenv("DISTTRAIN_CLUSTER");
  options.cluster_file = environment != nullptr && *environment != '\0' ? environment : kDefaultClusterFile;
  CLI::App app(std::string(program_of(role)) + ": " + purpose_of(role), program_of(role));
  add_daemon_options(app, role, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    exit_code = error.get_exit_code() == 0 ? app.exit(error) : static_cast<int>(ErrorCode::kUsage);
    if (exit_code == 0) return std::nullopt;
    const std::string problem = usage_error(app, error);
    tell_status(problem);
    std::cerr << problem << "\nRun with --help for more information.\n";
    return std::nullopt;
  }
  return options;
}

// With --address, the cluster file doesn't name this worker. Adds the worker to `cluster`, this process's own copy.
Status add_unlisted(ClusterConfig& cluster, const DaemonOptions& options) {
  if (options.address.empty()) return {};
  const std::string what = "--address " + options.address + ": ";
  if (options.role == "evaluator")
    return fail(ErrorCode::kUsage, what + "an evaluator must be in the cluster file: add an [[evaluator]] section");
  if (!config::is_address(options.address))
    return fail(ErrorCode::kUsage, what + "expected HOST:PORT with a port from 1 to 65535");
  if (!cluster.allow_unlisted_workers)
    return fail(ErrorCode::kConfig, what + options.cluster_file +
                                        " doesn't allow workers that it doesn't name: set "
                                        "cluster.allow_unlisted_workers, or add a [[worker]] section");
  if (!options.index || *options.index < cluster.workers.size())
    return fail(ErrorCode::kUsage, what + "a worker that isn't in the cluster file needs an --index of " +
                                       std::to_string(cluster.workers.size()) + " or more");
  constexpr std::uint32_t kMostWorkers = 4096;
  if (*options.index >= kMostWorkers)
    return fail(ErrorCode::kUsage, "--index " + std::to_string(*options.index) + ": expected a number below " +
                                       std::to_string(kMostWorkers));
  cluster.unlisted = *options.index + 1 - cluster.workers.size();
  cluster.workers.resize(*options.index + 1);
  cluster.workers.back().address = options.address;
  return {};
}

Result<Startup> find_place(Role role, const DaemonOptions& options) {
  auto cluster = config::read_cluster(options.cluster_file);
  if (!cluster) return tl::unexpected<Error>(std::move(cluster.error()));
  if (Status added = add_unlisted(*cluster, options); !added) return tl::unexpected(added.error());
  auto task = find_own_task(*cluster, role, options.index);
  if (!task) return tl::unexpected<Error>(Error{task.error().code, options.cluster_file + ": " + task.error().message});
  Startup startup{std::move(*cluster), *task, draw_incarnation(), "", "", {}};
  startup.is_salvage = options.is_salvage;
  startup.address = address_of(startup.cluster, startup.task);
  startup.listen_address = startup.address;
  return startup;
}

}  // namespace

std::optional<Startup> start_daemon(Role role, int argc, char** argv, int& exit_code) {
  open_standard_streams();
  ignore_write_signals();
  end_when_exhausted(program_of(role));
  std::signal(SIGHUP, SIG_IGN);  // ignored until a ReloadSignal handles it
  const auto options = parse(role, argc, argv, exit_code);
  if (!options) return std::nullopt;
  if (role == Role::kWorker && options->role == "evaluator") role = Role::kEvaluator;
  // Such a run must not report to systemd, because systemd would take the report for that of the running daemon.
  if (options->is_check || options->is_salvage) unsetenv("NOTIFY_SOCKET");
  if (Status limits = raise_limits(kMostDescriptors); !limits) {
    exit_code = report(program_of(role), limits.error());
    return std::nullopt;
  }
  // Retries, because a host may be up before its name server.
  Result<Startup> startup = fail(ErrorCode::kSoftware, "");
  (void)try_patiently(
      [&]() -> Status {
        startup = find_place(role, *options);
        return startup ? Status() : tl::unexpected(startup.error());
      },
      kTriesWithoutEnd);
  if (!startup && options->is_check) {  // report() would log that a daemon has ended, so don't call it
    std::cerr << program_of(role) << ": " << startup.error().message << '\n';
    exit_code = static_cast<int>(startup.error().code);
    return std::nullopt;
  }
  if (!startup) {
    exit_code = report(program_of(role), startup.error());
    return std::nullopt;
  }
  if (options->is_check) {
    std::cout << options->cluster_file << " is valid: this is " << to_string(startup->task) << " at "
              << startup->address << '\n';
    exit_code = 0;
    return std::nullopt;
  }
  if (auto inherited = inherited_listener()) startup->listen_address = *inherited;
  // Read the file later with this task's index. Finding the task by its address could block the loop, because it asks
  // the resolver.
  DaemonOptions known = *options;
  if (role != Role::kChief) known.index = startup->task.index;
  startup->read_file = [role, options = std::move(known)]() -> Result<ClusterConfig> {
    Result<Startup> anew = find_place(role, options);
    if (!anew) return tl::unexpected<Error>(std::move(anew.error()));
    return std::move(anew->cluster);
  };
  return std::move(*startup);
}

std::string banner(const ClusterConfig& cluster, TaskId task, const std::string& address, const std::string& transport,
                   const std::string& metrics_address) {
  return std::string(program_of(task.role)) + " " + kVersion + ": " + to_string(task) + " of cluster " + cluster.name +
         " at " + address + ", transport " + transport + ", configuration " + metrics::hash_text(cluster.hash) +
         ", metrics at " + (metrics_address.empty() ? "no address" : metrics_address);
}

int report(const char* program, const Error& error) {
  const bool is_told = stderr_is_journal() && send_to_journal({{"MESSAGE", error.message},
                                                               {"PRIORITY", std::to_string(priority_of(Level::kError))},
                                                               {"DISTTRAIN_EVENT", kEnded},
                                                               {"MESSAGE_ID", message_id_of(kEnded)}});
  if (!is_told) std::cerr << program << ": " << printable(error.message, Lines::kMany) << '\n';
  tell_status(error.message);
  return static_cast<int>(error.code);
}

int report(Log& log, const Error& error) {
  log.write(Level::kError, error.message, {.kind = kEnded});
  tell_status(error.message);
  return static_cast<int>(error.code);
}

}  // namespace disttrain::daemon
