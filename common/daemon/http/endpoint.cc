#include "common/daemon/http/endpoint.h"

#include <netdb.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <asio/post.hpp>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "common/config/cluster_config.h"
#include "common/daemon/http/door.h"
#include "common/daemon/http/stream.h"
#include "common/daemon/threads.h"
#include "common/os/descriptor.h"

namespace disttrain::daemon {

namespace {

// Gives access to httplib's parser and responses. This file handles connections and threads itself, because it must
// limit their number.
class Parser final : public httplib::Server {
 public:
  using httplib::Server::process_request;
};

// The state of the HTTP requests whose answers come from the loop. The functions posted to the loop share it, because
// they may run after the endpoint's end.
struct Waits {
  std::mutex mutex;  // guards `closed` and the state of each question
  std::condition_variable changed;
  bool closed = false;
};

struct HostAndPort {
  std::string host;
  std::string port;
};

// "127.0.0.1", "::1", "127.0.0.1:0", "[::1]:0".
Result<HostAndPort> place_of(const std::string& listen, const std::string& task_address) {
  const bool is_bracketed = listen.front() == '[';
  const bool is_any = listen.ends_with(":0") && (is_bracketed || listen.find(':') == listen.size() - 2);
  std::string host = is_any ? listen.substr(0, listen.size() - 2) : listen;
  if (is_bracketed) host = host.substr(1, host.size() - 2);
  const std::string task_port = task_address.substr(task_address.rfind(':') + 1);
  if (is_any || task_port == "0") return HostAndPort{host, "0"};
  const int port = std::stoi(task_port) + kMetricsPortDistance;
  if (port > 65535)
    return fail(ErrorCode::kConfig, "can't serve metrics at port " + std::to_string(port) +
                                        ", the task's port + 1000: ports end at 65535; choose one below 64536 for the "
                                        "task, or set metrics.listen to \"" +
                                        host + ":0\" (any free port) or \"\" (none)");
  return HostAndPort{host, std::to_string(port)};
}

tl::unexpected<Error> cannot_listen(const HostAndPort& place, int error) {
  const std::string what = "can't serve metrics at " + place.host + " port " + place.port + ": ";
  switch (error) {
    case EADDRINUSE:
      return fail(ErrorCode::kUnavailable,
                  what +
                      "the port is in use by another process (it is the task's port + 1000); stop that process, give "
                      "the task another port, or set metrics.listen to \"\" for no metrics");
    case EACCES:
    case EPERM:
      return fail(ErrorCode::kNoPermission,
                  what +
                      "this user may not use a port below 1024; it is the task's port + 1000, "
                      "so give the task port 24 or higher");
    case EADDRNOTAVAIL:
      return fail(ErrorCode::kConfig,
                  what + "metrics.listen isn't an address of this host; set it to one that `hostname -I` prints");
    default:
      return fail(ErrorCode::kUnavailable, what + std::strerror(error));
  }
}

Result<Descriptor> bind_to(const HostAndPort& place) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(place.host.c_str(), place.port.c_str(), &hints, &found); error != 0)
    return fail(error == EAI_AGAIN ? ErrorCode::kUnavailable : ErrorCode::kConfig,
                "can't serve metrics at " + place.host + ": " + ::gai_strerror(error) +
                    "; set metrics.listen to an address of this host");
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> freed(found, ::freeaddrinfo);
  Descriptor socket(::socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return cannot_listen(place, errno);
  const int on = 1;
  // so that a restarted daemon can bind the port at once
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(socket.get(), found->ai_addr, found->ai_addrlen) != 0 ||
      ::listen(socket.get(), HttpEndpoint::kBacklog) != 0)
    return cannot_listen(place, errno);
  return socket;
}

std::string address_of_socket(int fd) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  char host[NI_MAXHOST] = "";
  char port[NI_MAXSERV] = "";
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length);
  ::getnameinfo(reinterpret_cast<sockaddr*>(&address), length, host, sizeof host, port, sizeof port,
                NI_NUMERICHOST | NI_NUMERICSERV);
  const bool is_ipv6 = address.ss_family == AF_INET6;
  return (is_ipv6 ? "[" + std::string(host) + "]" : std::string(host)) + ":" + port;
}

}  // namespace

struct HttpEndpoint::State {
  explicit State(asio::io_context& l) : loop(l) {}

  void answer_all();
  HttpAnswer answer_to(const std::string& method, const std::string& path) const;

  asio::io_context& loop;
  Descriptor socket;  // invalid: no endpoint
  std::string address;
  std::map<std::string, std::function<HttpAnswer()>> pages;
  Parser parser;
  const std::shared_ptr<Waits> waits = std::make_shared<Waits>();
  Descriptor ended{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};  // becomes readable when the threads should end
  HttpDoor door{socket, ended};
  std::vector<std::thread> threads;
};

Result<std::unique_ptr<HttpEndpoint>> HttpEndpoint::open(asio::io_context& loop, const std::string& listen,
                                                         const std::string& task_address) {
  auto state = std::make_unique<State>(loop);
  if (!listen.empty()) {
    const Result<HostAndPort> place = place_of(listen, task_address);
    if (!place) return tl::unexpected(place.error());
    Result<Descriptor> socket = bind_to(*place);
    if (!socket) return tl::unexpected(socket.error());
    state->socket = std::move(*socket);
    state->address = address_of_socket(state->socket.get());
  }
  return std::unique_ptr<HttpEndpoint>(new HttpEndpoint(std::move(state)));
}

HttpEndpoint::HttpEndpoint(std::unique_ptr<State> state) : state_(std::move(state)) {}

HttpEndpoint::~HttpEndpoint() {
  {
    const std::lock_guard lock(state_->waits->mutex);
    state_->waits->closed = true;
  }
  state_->waits->changed.notify_all();
  ::eventfd_write(state_->ended.get(), 1);
  for (std::thread& thread : state_->threads) thread.join();
}

const std::string& HttpEndpoint::address() const {
  return state_->address;
}

void HttpEndpoint::add(const std::string& path, std::function<HttpAnswer()> page) {
  state_->pages[path] = std::move(page);
}

void HttpEndpoint::serve() {
  if (!state_->socket) return;
  state_->parser.set_default_headers({{"Cache-Control", "no-store"}, {"X-Content-Type-Options", "nosniff"}});
  state_->parser.set_pre_routing_handler(
      [state = state_.get()](const httplib::Request& request, httplib::Response& response) {
        const HttpAnswer answer = state->answer_to(request.method, request.path);
        response.status = answer.status;
        if (answer.status == 405) response.set_header("Allow", "GET, HEAD");
        response.set_content(answer.body, answer.content_type);
        return httplib::Server::HandlerResponse::Handled;
      });
  for (int i = 0; i < kThreads; ++i)
    state_->threads.emplace_back([state = state_.get()] {
      name_thread("http");
      state->answer_all();
    });
}

HttpAnswer HttpEndpoint::State::answer_to(const std::string& method, const std::string& path) const {
  const auto page = pages.find(path);
  if (page == pages.end()) {
    HttpAnswer none{404, HttpAnswer().content_type, "there is no " + path + " here; there are:"};
    for (const auto& [known, unused] : pages) none.body += " " + known;
    none.body += "\n";
    return none;
  }
  if (method != "GET" && method != "HEAD")
    return HttpAnswer{405, HttpAnswer().content_type, path + " is read-only: use GET or HEAD\n"};
  return page->second();
}

void HttpEndpoint::State::answer_all() {
  while (std::optional<HttpRequest> request = door.next()) {
    HttpStream stream(std::move(*request), kDeadline, ended);
    bool is_closed = true;
    parser.process_request(stream, true, is_closed, nullptr);
    stream.finish();
  }
}

bool HttpEndpoint::run_on_loop(std::function<void()> work) const {
  struct Asked {
    bool is_done = false;
    bool is_given_up = false;  // the asker has stopped waiting, so the loop skips the question
  };
  const auto asked = std::make_shared<Asked>();
  asio::post(state_->loop, [waits = state_->waits, asked, work = std::move(work)] {
    {
      const std::lock_guard lock(waits->mutex);
      if (waits->closed || asked->is_given_up) return;
    }
    work();
    const std::lock_guard lock(waits->mutex);
    asked->is_done = true;
    waits->changed.notify_all();
  });
  Waits& waits = *state_->waits;
  std::unique_lock lock(waits.mutex);
  waits.changed.wait_for(lock, kLoopPatience, [&waits, &asked] { return asked->is_done || waits.closed; });
  asked->is_given_up = true;
  return asked->is_done;
}

}  // namespace disttrain::daemon
