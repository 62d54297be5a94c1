// These tests check features that only TCP has: strangers that connect to the port, addresses, and inherited sockets.
#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/transport/ends.h"
#include "transport/control_link.h"
#include "transport/tcp/socket.h"
#include "transport/tcp/transport.h"
#include "transport/wire/frame_header.h"

namespace disttrain::transport {
namespace {

using wire::FrameType;

TEST(Addresses, AHostHasOneSpelling) {
  for (const std::string address : {"127.0.0.1:7100", "[::1]:7100"}) {
    const Endpoint endpoint = numeric_endpoint(*parse_address(address)).front();
    EXPECT_EQ(to_string(endpoint), address);
    EXPECT_EQ(host_of(endpoint) + ":7100", address);
    EXPECT_EQ(host_of(address), host_of(endpoint));
  }
}

class Tcp : public testing::Test {
 protected:
  void listen(const ListenerLimits& limits = {}, const std::string& address = "127.0.0.1:0") {
    auto made = transport.listen(loop, address, limits,
                                 [this](std::unique_ptr<Arrival> arrival) { arrivals.push_back(std::move(arrival)); });
    ASSERT_TRUE(made) << made.error().message;
    listener = std::move(*made);
  }

  // A stranger's socket, connected to the listener.
  Descriptor stranger() {
    const auto endpoint = numeric_endpoint(*parse_address(listener->address())).front();
    Descriptor fd(::socket(endpoint.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(fd.get(), endpoint.get(), endpoint.length), 0);
    return fd;
  }
  static void say(const Descriptor& fd, Bytes bytes) {
    ASSERT_EQ(::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  // Returns true if the other side has closed the socket.
  bool hung_up(const Descriptor& fd) {
    return run_until(loop, [&fd] {
      char c;
      const ssize_t n = ::recv(fd.get(), &c, 1, MSG_DONTWAIT);
      return n == 0 || (n < 0 && errno == ECONNRESET);
    });
  }
  static std::vector<std::byte> frame(FrameType type, Bytes control, Bytes payload, std::uint16_t version = 1) {
    wire::FrameHeader header;
    header.type = type;
    header.version = version;
    const auto bytes = wire::encode_header(header, control, payload, wire::ChecksumKind::kCrc32c);
    std::vector<std::byte> all(bytes.begin(), bytes.end());
    all.insert(all.end(), control.begin(), control.end());
    all.insert(all.end(), payload.begin(), payload.end());
    return all;
  }

  Result<std::unique_ptr<Connection>> dial(const std::string& address) {
    OutgoingFrame hello;
    hello.header.type = FrameType::kHello;
    std::optional<Result<std::unique_ptr<Connection>>> result;
    transport.dial(loop, address, hello, std::chrono::seconds(30), [&result](auto r) { result = std::move(r); });
    EXPECT_TRUE(run_until(loop, [&result] { return result.has_value(); }));
    return std::move(*result);
  }

  asio::io_context loop;
  TcpTransport transport;
  std::vector<std::unique_ptr<Arrival>> arrivals;
  std::unique_ptr<Listener> listener;
};

TEST_F(Tcp, StrangersWhoTalkNonsenseAreClosedAndCounted) {
  listen();
  const auto garbage = pattern(5000, 1);
  const std::vector<std::vector<std::byte>> nonsense = {
      garbage, bytes_of("GET / HTTP/1.1\r\n\r\n" + std::string(100, ' ')), frame(FrameType::kPush, bytes_of("x"), {}),
      frame(FrameType::kHello, bytes_of("x"), garbage)};
  for (std::size_t i = 0; i < nonsense.size(); ++i) {
    const Descriptor fd = stranger();
    say(fd, nonsense[i]);
    EXPECT_TRUE(hung_up(fd)) << i;
    EXPECT_EQ(listener->refused(), i + 1);
  }
  EXPECT_TRUE(arrivals.empty());
}

TEST_F(Tcp, ASilentStrangerIsClosedAfterTheHelloTimeout) {
  ListenerLimits limits;
  limits.hello_timeout = std::chrono::milliseconds(1);
  listen(limits);
  const Descriptor silent = stranger(), slow = stranger();
  say(slow, Bytes(frame(FrameType::kHello, bytes_of("hello"), {})).first(30));
  EXPECT_TRUE(hung_up(silent));
  EXPECT_TRUE(hung_up(slow));
  EXPECT_EQ(listener->refused(), 2u);
  EXPECT_TRUE(arrivals.empty());
  // Only the timeout closes the connection of a slow peer. If the timeout is an hour, the listener waits for the rest
  // of the hello, and accepts it.
  limits.hello_timeout = std::chrono::hours(1);
  listen(limits);
  const Descriptor patient = stranger(), quick = stranger();
  const auto hello = frame(FrameType::kHello, bytes_of("hello"), {});
  say(patient, Bytes(hello).first(30));
  say(quick, hello);
  ASSERT_TRUE(run_until(loop, [this] { return arrivals.size() == 1; }));
  say(patient, Bytes(hello).subspan(30));
  ASSERT_TRUE(run_until(loop, [this] { return arrivals.size() == 2; }));
  EXPECT_EQ(listener->refused(), 0u);
}

TEST_F(Tcp, SilentStrangersGiveTheirSeatsToThoseWhoSayHello) {
  ListenerLimits limits;
  limits.max_connections = 4;
  limits.hello_timeout = std::chrono::minutes(10);
  listen(limits);
  std::vector<Descriptor> silent;
  for (int i = 0; i < 20; ++i) silent.push_back(stranger());
  const Descriptor fd = stranger();
  say(fd, frame(FrameType::kHello, bytes_of("hello"), {}));
  EXPECT_TRUE(run_until(loop, [this] { return arrivals.size() == 1; }));
  EXPECT_TRUE(hung_up(silent.front()));
  EXPECT_EQ(listener->refused(), 17u);
}

TEST_F(Tcp, FirstFramesThatAreNoHelloCostNoMemory) {
  listen();
  const Descriptor fd = stranger();
  auto announced = frame(static_cast<FrameType>(99), {}, pattern(1 << 20, 1));
  say(fd, Bytes(announced).first(64));
  EXPECT_TRUE(hung_up(fd)) << "before its payload comes";
  EXPECT_EQ(listener->refused(), 1u);
}

TEST_F(Tcp, AHelloInManyPiecesArrives) {
  listen();
  const Descriptor fd = stranger();
  const auto hello = frame(FrameType::kHello, bytes_of(std::string(60'000, 'h')), {});
  for (std::size_t at = 0; at < hello.size(); at += 10'000) {
    say(fd, Bytes(hello).subspan(at, std::min<std::size_t>(10'000, hello.size() - at)));
    run_ready(loop);
  }
  ASSERT_TRUE(run_until(loop, [this] { return !arrivals.empty(); }));
  EXPECT_EQ(arrivals[0]->hello().size(), 60'000u);
}

TEST_F(Tcp, AHelloOfAnotherVersionArrivesSoThatItCanBeRefused) {
  listen();
  const Descriptor fd = stranger();
  say(fd, frame(FrameType::kHello, bytes_of("who knows"), {}, 9));
  ASSERT_TRUE(run_until(loop, [this] { return !arrivals.empty(); }));
  EXPECT_EQ(arrivals[0]->header().version, 9);
  EXPECT_TRUE(arrivals[0]->hello().empty());
  const auto connection = arrivals[0]->adopt(loop);
  OutgoingFrame refused;
  refused.header.type = FrameType::kRefused;
  connection->send(refused);
  std::byte answer[64];
  EXPECT_EQ(::recv(fd.get(), answer, sizeof answer, MSG_WAITALL), 64);
}

TEST_F(Tcp, WhatComesRightBehindTheHelloIsNotLost) {
  listen();
  const Descriptor fd = stranger();
  auto both = frame(FrameType::kHello, bytes_of("hello"), {});
  const auto next = frame(FrameType::kControl, bytes_of("next"), {});
  both.insert(both.end(), next.begin(), next.end());
  say(fd, both);
  ASSERT_TRUE(run_until(loop, [this] { return !arrivals.empty(); }));
  EXPECT_EQ(text_of(arrivals[0]->hello()), "hello");
  End end(arrivals[0]->adopt(loop));
  end.start();
  ASSERT_TRUE(run_until(loop, [&end] { return end.frames.size() == 1; }));
  EXPECT_EQ(text_of(end.frames[0].control), "next");
}

TEST_F(Tcp, DamageAndOversizedFramesCloseAnEstablishedConnection) {
  listen();
  auto damaged = frame(FrameType::kPush, {}, pattern(50'000, 2));
  damaged[40'000] ^= std::byte{1};
  auto oversized = frame(FrameType::kPush, {}, {});
  oversized[36] = std::byte{1};  // a payload of 4 GiB
  for (const auto& [bytes, reason] : {std::pair{damaged, "checksum of a payload"}, std::pair{oversized, "are allowed"},
                                      std::pair{pattern(100, 3), "isn't a disttrain frame"}}) {
    const Descriptor fd = stranger();
    say(fd, frame(FrameType::kHello, {}, {}));
    ASSERT_TRUE(run_until(loop, [this] { return !arrivals.empty(); }));
    End end(arrivals[0]->adopt(loop));
    arrivals.clear();
    end.start();
    say(fd, bytes);
    ASSERT_TRUE(run_until(loop, [&end] { return end.closed == 1; }));
    EXPECT_EQ(end.reason.code, ErrorCode::kData);
    EXPECT_NE(end.reason.message.find(reason), std::string::npos) << end.reason.message;
    EXPECT_TRUE(end.frames.empty());
    EXPECT_TRUE(hung_up(fd));
  }
}

TEST_F(Tcp, AVanishedPeerInMidFrameIsSaidSo) {
  listen();
  Descriptor fd = stranger();
  say(fd, frame(FrameType::kHello, {}, {}));
  ASSERT_TRUE(run_until(loop, [this] { return !arrivals.empty(); }));
  End end(arrivals[0]->adopt(loop));
  end.start();
  say(fd, Bytes(frame(FrameType::kPush, {}, pattern(50'000, 2))).first(30'000));
  run_ready(loop);
  fd = Descriptor();
  ASSERT_TRUE(run_until(loop, [&end] { return end.closed == 1; }));
  EXPECT_NE(end.reason.message.find("closed the connection in the middle of a frame"), std::string::npos);
}

TEST_F(Tcp, ListensOnASocketThatWasHandedOver) {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&any), sizeof any), 0);
  ASSERT_EQ(::listen(fd, 16), 0);
  listen({}, "fd:" + std::to_string(fd));
  EXPECT_EQ(listener->address(), to_string(local_endpoint(fd)));
  ASSERT_TRUE(dial(listener->address()));
  ASSERT_TRUE(run_until(loop, [this] { return !arrivals.empty(); }));
}

TEST_F(Tcp, WhatIsNoListeningSocketIsAConfigError) {
  for (const std::string address : {"fd:0", "fd:999", "fd:", "fd:x", "fd:-1"}) {
    const auto made = transport.listen(loop, address, {}, [](auto) {});
    ASSERT_FALSE(made) << address;
    EXPECT_EQ(made.error().code, ErrorCode::kConfig);
    EXPECT_NE(made.error().message.find("not a listening socket"), std::string::npos) << made.error().message;
  }
}

TEST_F(Tcp, AddressesAreReadOrRefused) {
  EXPECT_EQ(parse_address("10.0.0.7:7100")->host, "10.0.0.7");
  EXPECT_EQ(parse_address("[::1]:7100")->host, "::1");
  EXPECT_EQ(parse_address("node-1.example:0")->port, "0");
  for (const std::string bad : {"", "host", "host:", ":7100", "host:x", "host:70000", "::1:7100", "host:-1", "[]:1"})
    EXPECT_FALSE(parse_address(bad)) << bad;
}

TEST_F(Tcp, HostNamesAreDialled) {
  listen();
  const std::string port = parse_address(listener->address())->port;
  const auto dialled = dial("localhost:" + port);  // the name may have two addresses, and then one of them refuses
  ASSERT_TRUE(dialled) << dialled.error().message;
  EXPECT_EQ((*dialled)->peer(), "127.0.0.1:" + port);
}

TEST_F(Tcp, AnAddressThatIsNotOursIsAConfigError) {
  const auto made = transport.listen(loop, "192.0.2.1:0", {}, [](auto) {});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::kConfig);
}

TEST_F(Tcp, ADialThatNobodyAnswersEndsAtItsDeadlineAndProvesNothing) {
  // When the queue of a listening socket is full, the kernel drops new connections without an answer.
  const Descriptor full(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(full.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any), 0);
  ASSERT_EQ(::listen(full.get(), 0), 0);
  const std::string address = to_string(local_endpoint(full.get()));
  std::vector<Descriptor> queue;
  for (int i = 0; i < 4; ++i) {
    queue.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    const Endpoint to = local_endpoint(full.get());
    static_cast<void>(::connect(queue.back().get(), to.get(), to.length));
  }
  std::optional<Error> error;
  OutgoingFrame hello;
  hello.header.type = FrameType::kHello;
  transport.dial(loop, address, hello, std::chrono::milliseconds(20), [&error](auto dialled) {
    ASSERT_FALSE(dialled);
    error = dialled.error();
  });
  ASSERT_TRUE(run_until(loop, [&error] { return error.has_value(); }));
  EXPECT_NE(error->message.find("no answer in time"), std::string::npos) << error->message;
  EXPECT_FALSE(proves_nobody_listens(*error));
}

TEST_F(Tcp, UnknownCongestionControlsAreRefused) {
  TcpOptions options;
  EXPECT_TRUE(validate(options));
  options.congestion_control = "reno";  // in every kernel
  EXPECT_TRUE(validate(options));
  options.congestion_control = "warp";
  const Status bad = validate(options);
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code, ErrorCode::kConfig);
  EXPECT_NE(bad.error().message.find("\"warp\""), std::string::npos) << bad.error().message;
}

TEST_F(Tcp, OneHostIsTold) {
  const auto at = [](const char* address) { return numeric_endpoint(*parse_address(address)).front(); };
  EXPECT_TRUE(same_host(at("127.0.0.1:1"), at("127.0.0.2:2")));
  EXPECT_TRUE(same_host(at("[::1]:1"), at("[::1]:2")));
  EXPECT_TRUE(same_host(at("10.1.1.1:1"), at("10.1.1.1:2")));
  EXPECT_FALSE(same_host(at("10.1.1.1:1"), at("10.1.1.2:1")));
}

// Both ends of a control connection.
struct Recorder : ControlHandler {
  void on_answer(const wire::HelloAnswer& a) override { answers.push_back(a); }
  void on_message(wire::ControlMessage m) override { messages.push_back(std::move(m)); }
  void on_closed(const Error& why) override { reason = why.message; }
  std::vector<wire::HelloAnswer> answers;
  std::vector<wire::ControlMessage> messages;
  std::string reason;
};

TEST_F(Tcp, ControlLinksCarryMessagesOfAllSizesBothWays) {
  listen();
  auto dialled = dial(listener->address());
  ASSERT_TRUE(dialled);
  ASSERT_TRUE(run_until(loop, [this] { return !arrivals.empty(); }));
  Recorder task, chief;
  ControlLink up(std::move(*dialled), task);
  {
    ControlLink down(arrivals[0]->adopt(loop), chief);
    Welcome welcome;
    welcome.term = Term(5);
    down.answer(welcome);
    ASSERT_TRUE(down.send(StatusAnswer{std::string(10'000'000, 'j')}));
    ASSERT_TRUE(down.send(RequestDone{}));
    ASSERT_TRUE(up.send(JobClosed{JobId(3)}));
    EXPECT_FALSE(up.send(StatusAnswer{std::string(wire::kMaxBlobBytes, 'j')}));
    ASSERT_TRUE(run_until(loop, [&] { return task.messages.size() == 2 && chief.messages.size() == 1; }));
  }
  ASSERT_EQ(task.answers.size(), 1u);
  EXPECT_EQ(std::get<Welcome>(task.answers[0]).term, Term(5));
  EXPECT_EQ(std::get<StatusAnswer>(task.messages[0]).json.size(), 10'000'000u);
  EXPECT_EQ(std::get<JobClosed>(chief.messages[0]).job, JobId(3));
  ASSERT_TRUE(run_until(loop, [&] { return !task.reason.empty(); }));
}

TEST_F(Tcp, AControlLinkDropsWhatItDoesNotKnowAndGoesOn) {
  listen();
  const Descriptor fd = stranger();
  say(fd, frame(FrameType::kHello, {}, {}));
  ASSERT_TRUE(run_until(loop, [this] { return !arrivals.empty(); }));
  Recorder chief;
  ControlLink link(arrivals[0]->adopt(loop), chief);
  say(fd, frame(FrameType(777), {}, pattern(100, 1)));
  say(fd, frame(FrameType::kControl, pattern(100, 1), {}));
  say(fd, frame(FrameType::kControl, wire::encode(wire::ControlMessage(JobClosed{JobId(4)}))->bytes, {}));
  ASSERT_TRUE(run_until(loop, [&] { return chief.messages.size() == 1; }));
  EXPECT_EQ(link.dropped(), 2u);
}

}  // namespace
}  // namespace disttrain::transport
