// The daemon's own HTTP address, for monitoring: each GET makes its page anew. Read-only. It keeps no state of a
// client; each connection is one request.
//
// At most kThreads threads of its own answer, and an answer that takes longer than kDeadline is cut off. Clients whose
// request isn't there yet occupy no thread; HttpDoor bounds them; kBacklog wait in the kernel. A page reads the
// daemon's state with ask(). GET and HEAD; another method is answered 405, another path 404.
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

  // Binds the port, so that clients wait until serve(). `listen` as [metrics] listen: a host, with the port
  // kMetricsPortDistance above that of `task_address`; "host:0": any free port; "": no endpoint, and the calls below do
  // nothing. The daemon's loop outlives it. Errors: kUnavailable (the port is in use), kNoPermission, kConfig (no such
  // address on this host, or no such port).
  static Result<std::unique_ptr<HttpEndpoint>> open(asio::io_context& loop, const std::string& listen,
                                                    const std::string& task_address);
  // Ends questions and answers under way. Don't call it on the loop while the loop runs.
  ~HttpEndpoint();
  HttpEndpoint(const HttpEndpoint&) = delete;

  // "127.0.0.1:8110"; "" without an endpoint.
  const std::string& address() const;

  // Call before serve(). `page` is called on the endpoint's threads, several at a time.
  void add(const std::string& path, std::function<HttpAnswer()> page);
  void serve();

  // For a page: runs `question` on the loop and returns its result. None: the loop hasn't turned within kLoopPatience,
  // or the endpoint ends. Then `question` may still run, so it must not refer to anything of the page.
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
