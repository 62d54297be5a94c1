// workerd: computes gradients of the jobs that the chief gives it.
#include <asio/io_context.hpp>

#include "common/daemon/log.h"
#include "common/daemon/reload.h"
#include "common/daemon/service.h"
#include "common/daemon/signals.h"
#include "common/daemon/startup.h"
#include "transport/tcp/transport.h"
#include "workerd/compute/engine.h"
#include "workerd/worker.h"

int main(int argc, char** argv) {
  using namespace disttrain;

  int exit_code = 0;
  const std::optional<daemon::Startup> startup = daemon::start_daemon(Role::kWorker, argc, argv, exit_code);
  if (!startup) return exit_code;

  asio::io_context loop(1);
  daemon::Log log(startup->task, startup->cluster.log);
  transport::TcpTransport tcp(
      transport::TcpOptions{.congestion_control = startup->cluster.transport.congestion_control});
  workerd::Worker worker(loop, tcp, log, *startup, workerd::make_torch_engine,
                         [&loop, &exit_code](const Error& refused) {
                           exit_code = daemon::report("workerd", refused);
                           loop.stop();
                         });
  if (const Status ok = daemon::listen_patiently([&worker] { return worker.start(); }); !ok)
    return daemon::report("workerd", ok.error());
  daemon::Service service(loop, log, worker.loops(), [&worker] { return worker.state(); });
  const daemon::ReloadSignal reload(loop, *startup, log, service,
                                    [&worker](const ClusterConfig& cluster) { worker.change(cluster); });
  const daemon::StopSignals signals(loop, [&worker, &service](int) {
    worker.leave();
    service.stopping();
  });
  loop.run();
  return exit_code;
}
