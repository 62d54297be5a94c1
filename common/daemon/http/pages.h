// The pages that every daemon has: /metrics for a Prometheus, /healthz (the process lives and its loop turns) and
// /readyz (it has what it needs to do its work; else 503 and what it waits for).
#pragma once

#include <asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "common/daemon/http/endpoint.h"
#include "common/daemon/startup.h"
#include "common/metrics/page.h"

namespace disttrain::daemon {

// The first two are asked on the daemon's loop.
struct DaemonState {
  std::function<void(metrics::Page&)> collect;
  std::function<std::string()> waits_for;  // "the chief at 127.0.0.1:7100"; "": it is ready
  // Asked by /metrics alone, on a thread that the endpoint's end doesn't wait for: refers to nothing of the daemon.
  metrics::DiskQuestion disk_question = metrics::ask_disk;
};

// Before serve(). What `state` refers to lives until the endpoint has ended.
void add_daemon_pages(HttpEndpoint& endpoint, DaemonState state);

// At [metrics] listen, and as patiently as the task's own port: see try_patiently. Where that port is in use, the
// task's own may be, too: then a second daemon of the task runs, and the error is that of `listen`, which tries the own
// port and lets it go again.
Result<std::unique_ptr<HttpEndpoint>> open_endpoint(asio::io_context& loop, const Startup& startup,
                                                    const std::function<Status()>& listen);

// host:port for others: the endpoint's, with the task's host where it listens on every address of the host. "" where
// there is no endpoint.
std::string reachable_address(const HttpEndpoint& endpoint, const std::string& task_address);

}  // namespace disttrain::daemon
