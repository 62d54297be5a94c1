// psd: the daemon that keeps the parameters. See PsDaemon.
#include <asio/io_context.hpp>

#include "common/daemon/log.h"
#include "common/daemon/reload.h"
#include "common/daemon/service.h"
#include "common/daemon/signals.h"
#include "common/daemon/startup.h"
#include "psd/ps_daemon.h"
#include "transport/tcp/transport.h"

int main(int argc, char** argv) {
  using namespace disttrain;

  int exit_code = 0;
  const std::optional<daemon::Startup> startup = daemon::start_daemon(Role::kPs, argc, argv, exit_code);
  if (!startup) return exit_code;

  transport::TcpOptions options;
  options.congestion_control = startup->cluster.transport.congestion_control;
  if (Status valid = transport::validate(options); !valid) return daemon::report("psd", valid.error());

  daemon::Log log(startup->task, startup->cluster.log);
  transport::TcpTransport transport(options);
  asio::io_context loop(1);
  psd::PsDaemon ps(loop, transport, *startup, log);
  if (Status started = daemon::listen_patiently([&ps] { return ps.start(); }); !started) {
    log.error(started.error().message);
    daemon::tell_status(started.error().message);
    return static_cast<int>(started.error().code);
  }
  daemon::Service service(loop, log, ps.loops(), [&ps] { return ps.state(); });
  const daemon::ReloadSignal reload(loop, *startup, log, service,
                                    [&ps](const ClusterConfig& cluster) { ps.change(cluster); });
  const daemon::StopSignals signals(loop, [&ps, &service](int) {
    ps.leave();
    service.stopping();
  });
  loop.run();
  return ps.exit_code();
}
