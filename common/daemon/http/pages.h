// The pages of every daemon. /metrics is for Prometheus. /healthz says that the process lives and its main loop runs.
// /readyz says that the daemon can do its work; otherwise it answers 503 and says what the daemon waits for.
#pragma once

#include <asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "common/daemon/http/endpoint.h"
#include "common/daemon/startup.h"
#include "common/metrics/page.h"

namespace disttrain::daemon {

// The functions that the pages call. `collect` and `waits_for` run on the daemon's loop.
struct DaemonState {
  std::function<void(metrics::Page&)> collect;
  std::function<std::string()> waits_for;  // such as "the chief at 127.0.0.1:7100"; "" = the daemon is ready
  // The page /metrics calls it on a thread that may outlive the endpoint, so it must not refer to the daemon.
  metrics::DiskQuestion disk_question = metrics::ask_disk;
};

// Call this before serve(). Everything that `state` refers to must outlive the endpoint.
void add_daemon_pages(HttpEndpoint& endpoint, DaemonState state);

// Opens the endpoint at [metrics] listen, with the retries of try_patiently(). If that fails, calls `listen`, which
// tries to listen at the task's own port. If `listen` fails too, a second daemon of this task probably runs, and the
// error of `listen` is returned.
Result<std::unique_ptr<HttpEndpoint>> open_endpoint(asio::io_context& loop, const Startup& startup,
                                                    const std::function<Status()>& listen);

// Returns the endpoint's host:port for use from other hosts. If the endpoint listens on all addresses, the host is the
// task's host. Returns "" if there is no endpoint.
std::string reachable_address(const HttpEndpoint& endpoint, const std::string& task_address);

}  // namespace disttrain::daemon
