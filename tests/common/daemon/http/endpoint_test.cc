// A daemon's HTTP address, over real sockets.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <atomic>
#include <future>
#include <thread>

#include "common/daemon/http/endpoint.h"
#include "common/daemon/http/pages.h"
#include "common/metrics/families.h"

namespace disttrain::daemon {
namespace {

using namespace std::chrono_literals;

// A loop that runs on its own thread, as a daemon's does.
class TurningLoop {
 public:
  TurningLoop() : work_(asio::make_work_guard(loop)), thread_([this] { loop.run(); }) {}
  ~TurningLoop() {
    work_.reset();
    loop.stop();
    thread_.join();
  }
  asio::io_context loop{1};

 private:
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::thread thread_;
};

std::uint16_t port_of(const std::string& address) {
  return static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
}

int dial(const HttpEndpoint& endpoint) {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(port_of(endpoint.address()));
  if (::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) ADD_FAILURE() << "can't connect";
  return fd;
}

std::string read_all(int fd) {
  std::string text;
  char buffer[4096];
  for (ssize_t n = 0; (n = ::recv(fd, buffer, sizeof buffer, 0)) > 0;) text.append(buffer, static_cast<std::size_t>(n));
  return text;
}

void say(int fd, const std::string& text) {
  static_cast<void>(::send(fd, text.data(), text.size(), MSG_NOSIGNAL));
}

// Sends these bytes and returns the whole answer.
std::string answer_to(const HttpEndpoint& endpoint, const std::string& request) {
  const int fd = dial(endpoint);
  say(fd, request);
  std::string answer = read_all(fd);
  ::close(fd);
  return answer;
}

std::string get(const HttpEndpoint& endpoint, const std::string& path) {
  return answer_to(endpoint, "GET " + path + " HTTP/1.1\r\nHost: here\r\n\r\n");
}

std::unique_ptr<HttpEndpoint> endpoint_on(asio::io_context& loop, const std::string& listen = "127.0.0.1:0") {
  auto endpoint = HttpEndpoint::open(loop, listen, "127.0.0.1:0");
  if (!endpoint) throw std::runtime_error(endpoint.error().message);
  return std::move(*endpoint);
}

TEST(HttpEndpoint, PageIsAnsweredWithItsTypeAndBody) {
  TurningLoop turning;
  const auto endpoint = endpoint_on(turning.loop);
  endpoint->add("/a", [] { return HttpAnswer{200, "text/html", "<p>hello"}; });
  endpoint->add("/b", [] { return HttpAnswer{503, "text/plain", "not yet"}; });
  endpoint->serve();
  const std::string a = get(*endpoint, "/a");
  EXPECT_TRUE(a.starts_with("HTTP/1.1 200 ")) << a;
  EXPECT_NE(a.find("Content-Type: text/html\r\n"), std::string::npos) << a;
  EXPECT_TRUE(a.ends_with("\r\n\r\n<p>hello")) << a;
  const std::string b = get(*endpoint, "/b?with=query");
  EXPECT_TRUE(b.starts_with("HTTP/1.1 503 ")) << b;
  EXPECT_TRUE(b.ends_with("not yet")) << b;
}

TEST(HttpEndpoint, HeadIsAnsweredWithoutBody) {
  TurningLoop turning;
  const auto endpoint = endpoint_on(turning.loop);
  endpoint->add("/a", [] { return HttpAnswer{200, "text/plain", "hello"}; });
  endpoint->serve();
  const std::string answer = answer_to(*endpoint, "HEAD /a HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 ")) << answer;
  EXPECT_TRUE(answer.ends_with("\r\n\r\n")) << answer;
}

TEST(HttpEndpoint, OtherPathIs404AndNamesThoseThatAre) {
  TurningLoop turning;
  const auto endpoint = endpoint_on(turning.loop);
  endpoint->add("/metrics", [] { return HttpAnswer{}; });
  endpoint->serve();
  for (const char* path : {"/", "/metrics/", "/../etc/passwd", "/%2e%2e/metrics"}) {
    const std::string answer = get(*endpoint, path);
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 404 ")) << answer;
    EXPECT_NE(answer.find("/metrics"), std::string::npos) << answer;
  }
}

TEST(HttpEndpoint, OtherMethodIs405AlsoWithABody) {
  TurningLoop turning;
  const auto endpoint = endpoint_on(turning.loop);
  std::atomic<int> asked = 0;
  endpoint->add("/a", [&asked] {
    ++asked;
    return HttpAnswer{};
  });
  endpoint->serve();
  for (const char* method : {"POST", "PUT", "DELETE"}) {
    const std::string answer = answer_to(
        *endpoint, std::string(method) + " /a HTTP/1.1\r\nContent-Length: 100000\r\n\r\n" + std::string(100000, 'x'));
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 405 ")) << method << ": " << answer;
    EXPECT_NE(answer.find("Allow: GET, HEAD\r\n"), std::string::npos) << answer;
  }
  EXPECT_EQ(asked, 0);
}

TEST(HttpEndpoint, NonsenseIsAnsweredOrClosedAndOthersAreServed) {
  TurningLoop turning;
  const auto endpoint = endpoint_on(turning.loop);
  endpoint->add("/a", [] { return HttpAnswer{200, "text/plain", "well"}; });
  endpoint->serve();
  std::string zeros(100, '\0');
  zeros += "\r\n\r\n";
  const std::string long_path = "GET /" + std::string(9000, 'a') + " HTTP/1.1\r\n\r\n";
  for (const std::string& nonsense :
       {std::string("\r\n\r\n"), std::string("GET\r\n\r\n"), std::string("HELO there\r\n\r\n"), zeros, long_path}) {
    const std::string answer = answer_to(*endpoint, nonsense);
    EXPECT_TRUE(answer.empty() || answer.starts_with("HTTP/1.1 4")) << answer;
  }
  EXPECT_TRUE(get(*endpoint, "/a").ends_with("well"));
}

TEST(HttpEndpoint, RangesAreNotHeardOfAndThePageIsAnsweredOnce) {
  TurningLoop turning;
  const auto endpoint = endpoint_on(turning.loop);
  endpoint->add("/a", [] { return HttpAnswer{200, "text/plain", "the page"}; });
  endpoint->serve();
  std::string many = "bytes=0-";
  while (many.size() < 7000) many += ",0-";
  for (const std::string& headers :
       {"Range: " + many + "\r\n", std::string("X: y\r\nrANGE:bytes=1-3\r\nRange: bytes=2-\r\nHost: here\r\n"),
        std::string("Range: nonsense\r\n")}) {
    const std::string answer = answer_to(*endpoint, "GET /a HTTP/1.1\r\n" + headers + "\r\n");
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 ")) << answer.substr(0, 400);
    EXPECT_TRUE(answer.ends_with("\r\n\r\nthe page")) << answer.substr(0, 400);
  }
}

TEST(HttpEndpoint, RequestWithoutEndIsClosedOnceItIsTooBig) {
  TurningLoop turning;
  const auto endpoint = endpoint_on(turning.loop);
  endpoint->serve();
  const int fd = dial(*endpoint);
  say(fd, "GET /a HTTP/1.1\r\n");
  const std::string header = "X: " + std::string(4000, 'x') + "\r\n";
  bool is_closed = false;
  constexpr int kMany = 10'000;  // 40 MB: more than sockets hold
  for (int i = 0; i < kMany && !is_closed; ++i) is_closed = ::send(fd, header.data(), header.size(), MSG_NOSIGNAL) < 0;
  EXPECT_TRUE(is_closed);
  ::close(fd);
}

TEST(HttpEndpoint, AskedQuestionIsAnsweredOnTheLoop) {
  TurningLoop turning;
  const auto endpoint = endpoint_on(turning.loop);
  std::promise<std::thread::id> loops_thread;
  asio::post(turning.loop, [&loops_thread] { loops_thread.set_value(std::this_thread::get_id()); });
  std::optional<std::thread::id> asked_on;
  endpoint->add("/a", [&endpoint, &asked_on] {
    asked_on = endpoint->ask([] { return std::this_thread::get_id(); });
    return HttpAnswer{};
  });
  endpoint->serve();
  get(*endpoint, "/a");
  EXPECT_EQ(asked_on, loops_thread.get_future().get());
}

TEST(HttpEndpoint, LoopThatDoesNotTurnIsNoAnswer) {
  asio::io_context stuck(1);
  const auto endpoint = endpoint_on(stuck);
  endpoint->add("/a", [&endpoint] {
    return HttpAnswer{endpoint->ask([] { return 1; }) ? 200 : 503, "text/plain", ""};
  });
  endpoint->serve();
  EXPECT_TRUE(get(*endpoint, "/a").starts_with("HTTP/1.1 503 "));
}

TEST(DaemonPages, AnswerAsTheDaemonIs) {
  TurningLoop turning;
  const auto endpoint = endpoint_on(turning.loop);
  std::string what = "the chief at 127.0.0.1:7100";
  add_daemon_pages(*endpoint, {.collect = [](metrics::Page& page) { page.set(metrics::kLeader, 1); },
                               .waits_for = [&what] { return what; }});
  endpoint->serve();
  EXPECT_TRUE(get(*endpoint, "/healthz").starts_with("HTTP/1.1 200 "));
  const std::string unready = get(*endpoint, "/readyz");
  EXPECT_TRUE(unready.starts_with("HTTP/1.1 503 ")) << unready;
  EXPECT_TRUE(unready.ends_with("\r\n\r\nwaits for the chief at 127.0.0.1:7100\n")) << unready;
  what = "";
  EXPECT_TRUE(get(*endpoint, "/readyz").starts_with("HTTP/1.1 200 "));
  const std::string page = get(*endpoint, "/metrics");
  EXPECT_NE(page.find("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"), std::string::npos) << page;
  EXPECT_TRUE(page.ends_with("\ndisttrain_leader 1\n")) << page;
}

TEST(DaemonPages, LoopThatStandsStillIsNeitherHealthyNorReady) {
  asio::io_context stuck(1);
  const auto endpoint = endpoint_on(stuck);
  int collected = 0;
  add_daemon_pages(*endpoint,
                   {.collect = [&collected](metrics::Page&) { ++collected; }, .waits_for = [] { return ""; }});
  endpoint->serve();
  const auto ask = [&endpoint](const std::string& path) { return get(*endpoint, path); };
  std::vector<std::future<std::string>> answers;
  for (const char* path : {"/healthz", "/readyz", "/metrics"})
    answers.push_back(std::async(std::launch::async, ask, path));
  for (auto& answer : answers) EXPECT_TRUE(answer.get().starts_with("HTTP/1.1 503 "));
  EXPECT_GE(stuck.poll(), 3u);
  EXPECT_EQ(collected, 0) << "the asking page has ended";
}

// A file system that hangs until this object is destroyed, like NFS without its server. The thread that hangs in it may
// end later than this object, so the two share the data that the thread uses.
class HungDisk {
 public:
  ~HungDisk() { answers_.set_value(); }
  metrics::DiskQuestion question() {
    return [answers = answers_.get_future().share(), times = times_](const std::string&) {
      ++*times;
      answers.wait();
      return std::optional<metrics::DiskSize>();
    };
  }
  int times_asked() const { return *times_; }

 private:
  std::promise<void> answers_;
  const std::shared_ptr<std::atomic<int>> times_ = std::make_shared<std::atomic<int>>(0);
};

TEST(DaemonPages, DiskThatHangsIsLeftOutAndHoldsUpNobody) {
  HungDisk disk;
  TurningLoop turning;
  auto endpoint = endpoint_on(turning.loop);
  add_daemon_pages(*endpoint, {.collect =
                                   [](metrics::Page& page) {
                                     page.set(metrics::kLeader, 1);
                                     page.add_folder("ps/0", "checkpoints", "/nfs");
                                   },
                               .waits_for = [] { return ""; },
                               .disk_question = disk.question()});
  endpoint->serve();
  std::vector<std::future<std::string>> scrapes;
  for (int i = 0; i < 2 * HttpEndpoint::kThreads; ++i)
    scrapes.push_back(std::async(std::launch::async, [&endpoint] { return get(*endpoint, "/metrics"); }));
  for (auto& scrape : scrapes) {
    const std::string page = scrape.get();
    EXPECT_TRUE(page.ends_with("\ndisttrain_leader 1\n")) << page;
  }
  EXPECT_EQ(disk.times_asked(), 1);
  for (const char* path : {"/healthz", "/readyz"})
    EXPECT_TRUE(get(*endpoint, path).starts_with("HTTP/1.1 200 ")) << path;
  endpoint.reset();  // if this waited for the disk, the test would never end
}

TEST(HttpEndpoint, EndsWhileClientsAndPagesWait) {
  asio::io_context stuck(1);
  auto endpoint = endpoint_on(stuck);
  std::promise<void> is_asking;
  bool is_asked = false;
  endpoint->add("/a", [own = endpoint.get(), &is_asking, &is_asked] {
    is_asking.set_value();
    static_cast<void>(own->ask([&is_asked] { return is_asked = true; }));
    return HttpAnswer{};
  });
  endpoint->serve();
  const int silent = dial(*endpoint);
  const int asks = dial(*endpoint);
  say(asks, "GET /a HTTP/1.1\r\n\r\n");
  is_asking.get_future().wait();
  // If reset() waited for one of the deadlines (kDeadline, kLoopPatience), the test would take as long as that.
  endpoint.reset();
  EXPECT_EQ(read_all(silent), "");
  ::close(silent);
  ::close(asks);
  stuck.run();
  EXPECT_FALSE(is_asked);
}

TEST(HttpEndpoint, PortInUseIsAnErrorThatSaysWhatToDo) {
  asio::io_context loop(1);
  const auto first = endpoint_on(loop);
  const std::uint16_t port = port_of(first->address());
  const auto second = HttpEndpoint::open(loop, "127.0.0.1", "127.0.0.1:" + std::to_string(port - 1000));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kUnavailable);
  for (const std::string& word : {std::to_string(port), std::string("in use"), std::string("metrics.listen")})
    EXPECT_NE(second.error().message.find(word), std::string::npos) << second.error().message;
}

TEST(HttpEndpoint, AddressThatIsNotOursAndPortThatIsNone) {
  asio::io_context loop(1);
  const auto elsewhere = HttpEndpoint::open(loop, "192.0.2.1:0", "127.0.0.1:0");
  ASSERT_FALSE(elsewhere);
  EXPECT_EQ(elsewhere.error().code, ErrorCode::kConfig);
  const auto beyond = HttpEndpoint::open(loop, "127.0.0.1", "127.0.0.1:65000");
  ASSERT_FALSE(beyond);
  EXPECT_EQ(beyond.error().code, ErrorCode::kConfig);
  EXPECT_NE(beyond.error().message.find("66000"), std::string::npos) << beyond.error().message;
}

TEST(HttpEndpoint, Ipv6IsBracketed) {
  TurningLoop turning;
  for (const char* listen : {"::1", "[::1]:0"}) {
    const auto endpoint = HttpEndpoint::open(turning.loop, listen, "[::1]:0");
    if (!endpoint) GTEST_SKIP() << "no IPv6 here: " << endpoint.error().message;
    EXPECT_TRUE((*endpoint)->address().starts_with("[::1]:")) << (*endpoint)->address();
  }
}

TEST(HttpEndpoint, OffListensNowhere) {
  asio::io_context loop(1);
  const auto endpoint = endpoint_on(loop, "");
  endpoint->add("/a", [] { return HttpAnswer{}; });
  endpoint->serve();
  EXPECT_EQ(endpoint->address(), "");
}

}  // namespace
}  // namespace disttrain::daemon
