// A daemon's HTTP address, for monitoring. It is read-only and keeps no state of a client. Each connection has one
// request, and each GET builds its page anew.
//
// kThreads threads answer requests, and an answer that takes longer than kDeadline is aborted. HttpDoor holds a limited
// number of clients whose request hasn't arrived yet; they occupy no thread. Up to kBacklog more clients wait in the
// kernel. A page gets the daemon's state by ask(). Methods other than GET and HEAD are answered with 405, and unknown
// paths with 404.
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

  // Binds the port; clients then wait in the kernel until serve(). `listen` is the value of [metrics] listen. If it is
  // only a host, the port is that of `task_address` plus kMetricsPortDistance. "HOST:0" means any free port. "" means
  // no endpoint, and all other calls then do nothing. The daemon's loop must outlive the endpoint. Fails with
  // kUnavailable if the port is in use, with kNoPermission if this process may not use the port, and with kConfig if
  // the host isn't an address of this host or the port doesn't exist.
  static Result<std::unique_ptr<HttpEndpoint>> open(asio::io_context& loop, const std::string& listen,
                                                    const std::string& task_address);
  // Cancels questions and answers in progress. Don't call it on the loop while the loop runs.
  ~HttpEndpoint();
  HttpEndpoint(const HttpEndpoint&) = delete;

  // "127.0.0.1:8110"; "" without an endpoint.
  const std::string& address() const;

  // Adds a page. Call this before serve(). The endpoint's threads call `page`, several at a time.
  void add(const std::string& path, std::function<HttpAnswer()> page);
  void serve();

  // For a page: runs `question` on the daemon's loop and returns its result. Returns none if the loop doesn't run it
  // within kLoopPatience, or if the endpoint ends. `question` may then still run later, so it must not hold references
  // to the page's variables.
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
