// The pages of every daemon: /metrics for Prometheus, /healthz (the process lives and its loop turns) and /readyz (the
// daemon can do its work; else 503 and what it waits for).
#pragma once

#include <asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "common/daemon/http/endpoint.h"
#include "common/daemon/startup.h"
#include "common/metrics/page.h"

namespace disttrain::daemon {

// The first two run on the daemon's loop.
struct DaemonState {
  std::function<void(metrics::Page&)> collect;
  std::function<std::string()> waits_for;  // "the chief at 127.0.0.1:7100"; "": it is ready
  // Only /metrics calls it, on a thread that the endpoint's end doesn't wait for: it must not refer to the daemon.
  metrics::DiskQuestion disk_question = metrics::ask_disk;
};

// Call before serve(). Everything that `state` refers to must outlive the endpoint.
void add_daemon_pages(HttpEndpoint& endpoint, DaemonState state);

// Opens the endpoint at [metrics] listen, with the retries of try_patiently. If its port is in use, a second daemon of
// this task may be running. Then the task's own port is in use too, and the returned error is that of `listen`, which
// tries that port.
Result<std::unique_ptr<HttpEndpoint>> open_endpoint(asio::io_context& loop, const Startup& startup,
                                                    const std::function<Status()>& listen);

// host:port for other hosts: the endpoint's, but with the task's host if it listens on every address. "" without an
// endpoint.
std::string reachable_address(const HttpEndpoint& endpoint, const std::string& task_address);

}  // namespace disttrain::daemon
