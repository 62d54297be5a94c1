#include "tools/disttrain/doctor/ports.h"

#include <sys/socket.h>

#include <algorithm>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>
#include <cerrno>
#include <memory>
#include <variant>

#include "common/daemon/host.h"
#include "common/daemon/http/endpoint.h"
#include "tools/disttrain/doctor/host.h"
#include "transport/factory/factory.h"
#include "transport/tcp/socket.h"
#include "transport/wire/codec.h"

namespace disttrain::cli {

namespace {

// How many connections are open at the same time. This is below every usual limit of open files.
constexpr std::size_t kAtOnce = 128;
// What is read of a page of metrics. What says whose page it is stands at its begin.
constexpr std::size_t kMostPageBytes = std::size_t{1} << 20;

std::string port_of(const std::string& address) {
  return address.substr(address.rfind(':') + 1);
}

// Sends one hello and keeps the answer. The loop calls the Greeting's handlers, so the Greeting must live until the
// loop has ended.
class Greeting final : private transport::ConnectionHandler {
 public:
  Greeting(asio::io_context& loop, transport::Transport& transport, const std::string& address,
           const std::vector<std::byte>& hello)
      : timer_(loop) {
    transport::OutgoingFrame frame;
    frame.header.type = wire::FrameType::kHello;
    frame.control = hello;
    transport.dial(loop, address, frame, kPortPatience, [this](auto connection) { dialled(std::move(connection)); });
  }

  const PortAnswer& answer() const { return answer_; }

 private:
  void dialled(Result<std::unique_ptr<transport::Connection>> connection) {
    if (!connection) {
      const bool is_nobody = transport::proves_nobody_listens(connection.error());
      answer_.listening = is_nobody ? Listening::kNobody : Listening::kUnreachable;
      answer_.said = connection.error().message;
      return;
    }
    answer_.listening = Listening::kSilent;
    connection_ = std::move(*connection);
    connection_->start(*this);
    timer_.expires_after(kPortPatience);
    timer_.async_wait([this](const asio::error_code& error) {
      if (!error) connection_->close();
    });
  }

  Result<transport::MutableBytes> payload_landing(const wire::FrameHeader&, transport::Bytes) override {
    return fail(ErrorCode::kData, "the answer to a hello must not have a payload");
  }

  void on_frame(const wire::FrameHeader& header, transport::Bytes control, transport::Bytes) override {
    if (const auto heard = wire::decode_hello_answer(header.type, control)) {
      answer_.listening = Listening::kOurs;
      if (const auto* refused = std::get_if<Refused>(&*heard)) {
        answer_.is_busy = refused->code == ErrorCode::kTemporary;
        answer_.said = refused->reason;
      } else {
        answer_.is_welcome = true;
      }
    }
    connection_->close();
    timer_.cancel();
  }

  void on_sent(std::uint64_t) override {}
  void on_closed(const Error&) override { timer_.cancel(); }

  asio::steady_timer timer_;
  std::unique_ptr<transport::Connection> connection_;
  PortAnswer answer_;
};

// Binds a socket to the address for a moment, and returns why no daemon can listen there. "": a daemon can. A daemon
// that starts at this moment isn't disturbed, because the socket has SO_REUSEADDR and never listens.
std::string why_unbindable(const std::string& address) {
  const auto parsed = transport::parse_address(address);
  if (!parsed) return parsed.error().message;
  const auto endpoints = transport::resolve(*parsed);
  if (!endpoints) return endpoints.error().message;
  for (const transport::Endpoint& endpoint : *endpoints) {
    const Descriptor fd(::socket(endpoint.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int on = 1;
    ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (fd && ::bind(fd.get(), endpoint.get(), endpoint.length) != 0 && errno != EADDRNOTAVAIL)
      return transport::system_words(errno);
  }
  return "";
}

}  // namespace

std::vector<PortAnswer> say_hello(const ClusterConfig& cluster, const std::vector<std::string>& addresses) {
  Hello hello;
  hello.cluster = cluster.name;
  hello.cluster_hash = cluster.hash;
  hello.who = ClientHello{"doctor"};
  const std::vector<std::byte> bytes = wire::encode(hello);
  std::vector<PortAnswer> answers;
  for (std::size_t first = 0; first < addresses.size(); first += kAtOnce) {
    asio::io_context loop;
    const std::unique_ptr<transport::Transport> transport = transport::make_client_transport();
    std::vector<std::unique_ptr<Greeting>> greetings;
    for (std::size_t i = first; i < std::min(first + kAtOnce, addresses.size()); ++i)
      greetings.push_back(std::make_unique<Greeting>(loop, *transport, addresses[i], bytes));
    loop.run_for(3 * kPortPatience);
    for (const auto& greeting : greetings) answers.push_back(greeting->answer());
  }
  return answers;
}

std::string metrics_address(const ClusterConfig& cluster, const std::string& task_address) {
  const std::string& listen = cluster.metrics.listen;
  if (listen.empty() || listen.ends_with(":0")) return "";
  const int port = std::stoi(port_of(task_address)) + kMetricsPortDistance;
  if (port > 65535) return "";
  const bool is_ipv6 = listen.find(':') != std::string::npos;
  return (is_ipv6 ? "[" + listen + "]" : listen) + ":" + std::to_string(port);
}

PortAnswer ask_for_metrics(const std::string& address) {
  const std::string host = daemon::host_part(address);
  const std::string reached = host == "0.0.0.0" ? "127.0.0.1" : host == "::" ? "::1" : host;
  asio::ip::tcp::iostream stream;
  stream.expires_after(kPortPatience);
  stream.connect(reached, port_of(address));
  PortAnswer answer;
  if (!stream) {
    const bool is_nobody = stream.error() == asio::error::connection_refused;
    answer.listening = is_nobody ? Listening::kNobody : Listening::kUnreachable;
    answer.said = stream.error().message();
    return answer;
  }
  stream << "GET /metrics HTTP/1.0\r\nHost: " << reached << "\r\n\r\n" << std::flush;
  std::string page(kMostPageBytes, '\0');
  stream.read(page.data(), static_cast<std::streamsize>(page.size()));
  page.resize(static_cast<std::size_t>(stream.gcount()));
  answer.said_task = task_of_metrics(page);
  answer.said_hash = hash_of_metrics(page);
  answer.listening = answer.said_task.empty() ? Listening::kSilent : Listening::kOurs;
  return answer;
}

void look_behind(PortAnswer& answer, const std::string& address) {
  if (answer.listening == Listening::kNobody) answer.unbindable = why_unbindable(address);
  if (answer.listening == Listening::kSilent || !answer.unbindable.empty())
    answer.holder = find_holder(static_cast<std::uint16_t>(std::stoi(port_of(address))));
}

}  // namespace disttrain::cli
