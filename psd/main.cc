// psd: the parameter server daemon. See PsDaemon.
#include <asio/io_context.hpp>
#include <cstdlib>
#include <memory>
#include <optional>

#include "common/checkpoint/disk_files.h"
#include "common/daemon/clock.h"
#include "common/daemon/crash.h"
#include "common/daemon/end_deadline.h"
#include "common/daemon/http/pages.h"
#include "common/daemon/log/log.h"
#include "common/daemon/release_deadline.h"
#include "common/daemon/reload.h"
#include "common/daemon/service.h"
#include "common/daemon/signals.h"
#include "common/daemon/startup.h"
#include "common/metrics/process.h"
#include "psd/ps_daemon.h"
#include "transport/factory/factory.h"

int main(int argc, char** argv) {
  using namespace disttrain;

  int exit_code = 0;
  std::optional<daemon::Startup> startup = daemon::start_daemon(Role::kPs, argc, argv, exit_code);
  if (!startup) return exit_code;

  daemon::Log log(startup->task, startup->cluster.log);
  daemon::report_crashes(startup->task, log.form());
  const Result<std::unique_ptr<transport::Transport>> made = transport::make_transport(
      startup->cluster.transport, startup->cluster.name, [&log](const std::string& text) { log.warn(text); });
  if (!made) return daemon::report(log, made.error());
  transport::Transport& transport = **made;
  asio::io_context loop(1);
  Result<std::unique_ptr<daemon::HttpEndpoint>> http = daemon::open_endpoint(
      loop, *startup, [&] { return transport::try_to_listen(loop, transport, startup->listen_address); });
  if (!http) return daemon::report(log, http.error());
  startup->metrics_address = daemon::reachable_address(**http, startup->address);
  metrics::ProcessMetrics process(to_string(startup->task), daemon::kVersion, transport.name(), startup->cluster.hash,
                                  daemon::wall_nanoseconds());
  // The deadline must outlive the objects below, because they join their threads when they are destroyed.
  std::optional<daemon::EndDeadline> deadline;
  checkpoint::DiskFiles files;
  psd::PsDaemon ps(loop, transport, files, *startup, log, {.end = [] { std::_Exit(daemon::kHungCode); }});
  if (Status started = daemon::try_patiently([&ps] { return ps.start(); }); !started)
    return daemon::report(log, started.error());
  daemon::add_daemon_pages(**http, {.collect =
                                        [&](metrics::Page& page) {
                                          process.collect(page, {.log_messages = log.counts(),
                                                                 .bytes_received = transport.traffic().received,
                                                                 .bytes_sent = transport.traffic().sent});
                                          ps.collect(page);
                                        },
                                    .waits_for = [&ps] { return ps.waits_for(); }});
  (*http)->serve();
  daemon::Service service(loop, log, ps.loops(), [&ps] { return ps.state(); });
  const daemon::ReloadSignal reload(loop, *startup, log, service, [&ps, &process](const ClusterConfig& cluster) {
    ps.change(cluster);
    process.reloaded(cluster.hash, daemon::wall_nanoseconds());
  });
  const daemon::StopSignals signals(loop, [&ps, &service](int) {
    ps.leave();
    service.stopping();
  });
  loop.run();
  exit_code = ps.exit_code();
  deadline.emplace(log, daemon::kEndPatience, exit_code);
  http->reset();  // the endpoint must end before `ps`, because its pages read the state of `ps`
  return exit_code;
}
