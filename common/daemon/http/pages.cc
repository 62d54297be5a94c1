#include "common/daemon/http/pages.h"

#include <utility>

#include "common/daemon/host.h"
#include "common/daemon/service.h"
#include "common/format_duration.h"

namespace disttrain::daemon {

namespace {

HttpAnswer text_answer(int status, const std::string& text) {
  return HttpAnswer{status, HttpAnswer().content_type, text + "\n"};
}

HttpAnswer loop_stands_still() {
  return text_answer(503, "the daemon's main loop hasn't run for " + format_duration(HttpEndpoint::kLoopPatience));
}

}  // namespace

void add_daemon_pages(HttpEndpoint& endpoint, DaemonState state) {
  endpoint.add("/healthz", [&endpoint] {
    return endpoint.ask([] { return true; }) ? text_answer(200, "ok") : loop_stands_still();
  });
  endpoint.add("/readyz", [&endpoint, waits_for = std::move(state.waits_for)] {
    const auto what = endpoint.ask(waits_for);
    if (!what) return loop_stands_still();
    return what->empty() ? text_answer(200, "ready") : text_answer(503, "waits for " + *what);
  });
  const auto disks = std::make_shared<const metrics::Disks>(std::move(state.disk_question));
  endpoint.add("/metrics", [&endpoint, collect = std::move(state.collect), disks] {
    auto page = endpoint.ask([collect] {
      metrics::Page fresh;
      collect(fresh);
      return fresh;
    });
    if (!page) return loop_stands_still();
    page->ask_folders(*disks);
    return HttpAnswer{200, "text/plain; version=0.0.4; charset=utf-8", page->text()};
  });
}

Result<std::unique_ptr<HttpEndpoint>> open_endpoint(asio::io_context& loop, const Startup& startup,
                                                    const std::function<Status()>& listen) {
  std::unique_ptr<HttpEndpoint> endpoint;
  const Status opened = try_patiently([&]() -> Status {
    Result<std::unique_ptr<HttpEndpoint>> tried =
        HttpEndpoint::open(loop, startup.cluster.metrics.listen, startup.address);
    if (!tried) {
      if (Status own = listen(); !own) return own;
      return tl::unexpected(tried.error());
    }
    endpoint = std::move(*tried);
    return {};
  });
  if (!opened) return tl::unexpected(opened.error());
  return endpoint;
}

std::string reachable_address(const HttpEndpoint& endpoint, const std::string& task_address) {
  const std::string& own = endpoint.address();
  if (own.empty()) return own;
  const std::string host = host_part(own);
  if (host != "0.0.0.0" && host != "::") return own;
  return task_address.substr(0, task_address.rfind(':')) + own.substr(own.rfind(':'));
}

}  // namespace disttrain::daemon
