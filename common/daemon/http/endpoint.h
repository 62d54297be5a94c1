// The daemon's own HTTP address, for whoever watches it: pages that are made anew for each GET. Read-only; no state of
// a client is kept, each connection is one request.
//
// It has threads of its own: kThreads at most answer at a time, and who takes longer than kDeadline for the answer is
// closed. Those whose request hasn't come yet occupy none, and have the bounds of HttpDoor; kBacklog wait in the
// kernel. What a page needs of the daemon it gets by ask(). GET and HEAD; another method is answered 405, another path
// 404.
#pragma once

#include <asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "common/result.h"
#include "common/time.h"

namespace disttrain::daemon {

struct HttpAnswer {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

class HttpEndpoint {
 public:
  static constexpr int kThreads = 4;
  static constexpr int kBacklog = 64;
  static constexpr Duration kDeadline = std::chrono::seconds(10);
  static constexpr Duration kLoopPatience = std::chrono::seconds(2);

  // Binds, so that who connects waits for serve(). `listen` as [metrics] listen: a host, with the port
  // kMetricsPortDistance above the one of `task_address`; "host:0": any free port; "": no endpoint, and the calls below
  // do nothing. The loop, the daemon's, outlives it. Errors: kUnavailable (the port is in use), kNoPermission, kConfig
  // (no such address here, or no such port).
  static Result<std::unique_ptr<HttpEndpoint>> open(asio::io_context& loop, const std::string& listen,
                                                    const std::string& task_address);
  // Ends what is being asked and answered. Not from the loop while it runs.
  ~HttpEndpoint();
  HttpEndpoint(const HttpEndpoint&) = delete;

  // "127.0.0.1:8110"; "" where there is none.
  const std::string& address() const;

  // Before serve(). `page` is called on the endpoint's threads, several at a time.
  void add(const std::string& path, std::function<HttpAnswer()> page);
  void serve();

  // From a page: what `question` returns on the loop. None: the loop hasn't turned within kLoopPatience, or the
  // endpoint ends; the question may then still be asked, so it refers to nothing of the page.
  template <typename Question>
  auto ask(Question question) const -> std::optional<std::invoke_result_t<Question>> {
    auto answer = std::make_shared<std::optional<std::invoke_result_t<Question>>>();
    if (!run_on_loop([answer, question = std::move(question)]() mutable { answer->emplace(question()); }))
      return std::nullopt;
    return std::move(*answer);
  }

 private:
  struct State;

  explicit HttpEndpoint(std::unique_ptr<State> state);
  bool run_on_loop(std::function<void()> work) const;

  const std::unique_ptr<State> state_;
};

}  // namespace disttrain::daemon
