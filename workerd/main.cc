// workerd: computes gradients of the jobs that the chief gives it.
#include <asio/io_context.hpp>

#include "common/daemon/log.h"
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
  const daemon::StopSignals signals(loop, [&loop, &log](int) {
    log.info("asked to end");
    loop.stop();
  });
  workerd::Worker worker(loop, tcp, log, *startup, workerd::make_torch_engine,
                         [&loop, &exit_code](const Error& refused) {
                           exit_code = daemon::report("workerd", refused);
                           loop.stop();
                         });
  if (const Status ok = worker.start(); !ok) return daemon::report("workerd", ok.error());
  loop.run();
  return exit_code;
}
