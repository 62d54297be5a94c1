// The promises of transport/connection.h, on every transport.
#include <algorithm>
#include <asio/post.hpp>
#include <thread>

#include "tests/transport/ends.h"
#include "transport/memory/transport.h"
#include "transport/rdma/device.h"
#include "transport/rdma/transport.h"
#include "transport/shm/transport.h"
#include "transport/tcp/transport.h"

namespace disttrain::transport {
namespace {

using wire::FrameType;

std::unique_ptr<Transport> make_shm(bool is_required) {
  return std::make_unique<ShmTransport>(ShmOptions{.cluster = "test", .is_required = is_required, .tcp = {}});
}

std::unique_ptr<Transport> make_rdma(bool is_required) {
  return std::make_unique<RdmaTransport>(RdmaOptions{.cluster = "test", .is_required = is_required, .tcp = {}});
}

// A transport to test, and addresses for the tests.
struct Kind {
  const char* name;
  std::unique_ptr<Transport> (*make)(MemoryNetwork& network);
  const char* address;
  const char* nobody;  // an address on which nobody listens
  bool needs_rdma = false;
};

void PrintTo(const Kind& kind, std::ostream* out) {
  *out << kind.name;
}

const Kind kKinds[] = {
    {"memory", [](MemoryNetwork& n) -> std::unique_ptr<Transport> { return std::make_unique<MemoryTransport>(n); },
     "memory:a", "memory:nobody"},
    {"adversary",
     [](MemoryNetwork& n) -> std::unique_ptr<Transport> {
       return std::make_unique<MemoryTransport>(n, MemoryOptions{.late_turns = 5, .piece_bytes = 70'001});
     },
     "memory:a", "memory:nobody"},
    {"tcp", [](MemoryNetwork&) -> std::unique_ptr<Transport> { return std::make_unique<TcpTransport>(); },
     "127.0.0.1:0", "127.0.0.1:1"},
    {"tcp_checksums",
     [](MemoryNetwork&) -> std::unique_ptr<Transport> {
       TcpOptions options;
       options.checksum_on_one_host = true;
       return std::make_unique<TcpTransport>(options);
     },
     "[::1]:0", "[::1]:1"},
    {"shm", [](MemoryNetwork&) -> std::unique_ptr<Transport> { return make_shm(true); }, "127.0.0.1:0", "127.0.0.1:1"},
    {"shm_or_tcp", [](MemoryNetwork&) -> std::unique_ptr<Transport> { return make_shm(false); }, "[::]:0", "[::1]:1"},
    // The virtual machine of tests/rdma gives its two devices 10.77.0.1 and 10.77.0.2.
    {"rdma", [](MemoryNetwork&) -> std::unique_ptr<Transport> { return make_rdma(true); }, "10.77.0.2:0", "10.77.0.2:1",
     true},
    {"rdma_or_others", [](MemoryNetwork&) -> std::unique_ptr<Transport> { return make_rdma(false); }, "[::]:0",
     "[::1]:1"},
};

class Contract : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    if (GetParam().needs_rdma && !has_rdma_devices()) GTEST_SKIP() << "this host has no RDMA device";
  }

  void listen(const ListenerLimits& limits = {}) {
    auto made = transport->listen(loop, GetParam().address, limits,
                                  [this](std::unique_ptr<Arrival> arrival) { arrivals.push_back(std::move(arrival)); });
    ASSERT_TRUE(made) << made.error().message;
    listener = std::move(*made);
  }

  OutgoingFrame hello(const std::string& text = "hello") {
    hello_text_ = bytes_of(text);
    OutgoingFrame frame;
    frame.header.type = FrameType::kHello;
    frame.header.job = JobId(7);
    frame.control = hello_text_;
    return frame;
  }

  // The result of one dial.
  Result<std::unique_ptr<Connection>> dial(const std::string& address) {
    std::optional<Result<std::unique_ptr<Connection>>> result;
    transport->for_steps().dial(loop, address, hello(), std::chrono::seconds(30),
                                [&result](auto r) { result = std::move(r); });
    EXPECT_FALSE(result.has_value()) << "called from within dial()";
    EXPECT_TRUE(run_until(loop, [&result] { return result.has_value(); }));
    return std::move(*result);
  }

  // Two connected ends, not yet started.
  void connect() {
    if (!listener) listen();
    auto dialled = dial(listener->address());
    ASSERT_TRUE(dialled) << dialled.error().message;
    client = std::make_unique<End>(std::move(*dialled));
    ASSERT_TRUE(run_until(loop, [this] { return !arrivals.empty(); }));
    server = std::make_unique<End>(arrivals.back()->adopt(loop));
    arrivals.pop_back();
  }
  void connect_and_start() {
    connect();
    client->start();
    server->start();
  }

  bool run_until_true(const std::function<bool()>& done) { return run_until(loop, done); }

  MemoryNetwork network;
  asio::io_context loop;
  std::unique_ptr<Transport> transport = GetParam().make(network);
  std::vector<std::unique_ptr<Arrival>> arrivals;
  std::unique_ptr<Listener> listener;
  std::unique_ptr<End> client, server;

 private:
  std::vector<std::byte> hello_text_;
};

INSTANTIATE_TEST_SUITE_P(Transports, Contract, testing::ValuesIn(kKinds),
                         [](const auto& kind) { return std::string(kind.param.name); });

TEST_P(Contract, AnArrivalShowsTheHello) {
  listen();
  auto dialled = dial(listener->address());
  ASSERT_TRUE(dialled);
  ASSERT_TRUE(run_until_true([this] { return !arrivals.empty(); }));
  EXPECT_EQ(arrivals[0]->header().type, FrameType::kHello);
  EXPECT_EQ(arrivals[0]->header().job, JobId(7));
  EXPECT_EQ(text_of(arrivals[0]->hello()), "hello");
  EXPECT_FALSE(arrivals[0]->peer().empty());
}

TEST_P(Contract, TrafficCountsTheBytesOfAllConnections) {
  constexpr std::size_t kBytes = 100'003;
  for (std::uint64_t i = 1; i <= 2; ++i) {
    connect_and_start();
    const auto payload = pattern(kBytes, 1);
    OutgoingFrame frame;
    frame.header.type = FrameType::kPush;
    frame.payload = payload;
    client->send(frame);
    ASSERT_TRUE(run_until_true([this] { return server->frames.size() == 1; }));
    client.reset();
    server.reset();
    EXPECT_GE(transport->traffic().sent, i * kBytes);
    EXPECT_GE(transport->traffic().received, i * kBytes);
  }
}

TEST_P(Contract, FramesComeWholeInOrderWithAllTheirParts) {
  connect_and_start();
  const auto control = bytes_of("control part");
  const auto payload = pattern(100'003, 1);
  for (std::uint64_t i = 1; i <= 300; ++i) {
    OutgoingFrame frame;
    frame.header.type = i % 3 == 0 ? FrameType::kControl : FrameType::kPush;
    frame.header.job = JobId(static_cast<std::uint32_t>(i));
    frame.header.generation = Generation(i + 1);
    frame.header.sequence = Sequence(i);
    frame.control = Bytes(control).first(i % control.size());
    frame.payload = i % 3 == 0 ? Bytes() : Bytes(payload).first(i * 333);
    client->send(frame);
  }
  ASSERT_TRUE(run_until_true([this] { return server->frames.size() == 300; }));
  for (std::uint64_t i = 1; i <= 300; ++i) {
    const ReceivedFrame& frame = server->frames[i - 1];
    EXPECT_EQ(frame.header.type, i % 3 == 0 ? FrameType::kControl : FrameType::kPush);
    EXPECT_EQ(frame.header.job.value, i);
    EXPECT_EQ(frame.header.generation.value, i + 1);
    EXPECT_EQ(frame.header.sequence.value, i);
    EXPECT_EQ(text_of(frame.control), text_of(Bytes(control).first(i % control.size())));
    EXPECT_TRUE(std::equal(frame.payload.begin(), frame.payload.end(), payload.begin())) << i;
    EXPECT_EQ(frame.payload.size(), i % 3 == 0 ? 0 : i * 333);
  }
  EXPECT_EQ(client->connection->bytes_sent(), server->connection->bytes_received());
  EXPECT_EQ(client->connection->queued_bytes(), 0u);
}

TEST_P(Contract, PayloadsLandWhereTheHandlerSaysUpToTheLargestBlob) {
  connect_and_start();
  const auto payload = pattern(wire::kMaxBlobBytes, 2);
  client->send(FrameType::kBlob, 1, payload);
  ASSERT_TRUE(run_until_true([this] { return server->frames.size() == 1; }));
  EXPECT_EQ(server->landing, payload);
}

TEST_P(Contract, ManyFramesTravelBothWaysAtOnce) {
  connect_and_start();
  const auto payload = pattern(wire::kMaxPayloadBytes, 3);
  for (std::uint64_t i = 1; i <= 40; ++i) {
    client->send(FrameType::kPush, i, payload);
    server->send(FrameType::kParameters, i, payload);
  }
  ASSERT_TRUE(run_until_true([this] { return server->frames.size() == 40 && client->frames.size() == 40; }));
  ASSERT_TRUE(run_until_true([this] { return server->sent.size() == 40 && client->sent.size() == 40; }));
  for (const ReceivedFrame& frame : server->frames) EXPECT_EQ(frame.payload, payload);
  for (const ReceivedFrame& frame : client->frames) EXPECT_EQ(frame.payload, payload);
  for (std::uint64_t i = 1; i <= 40; ++i) EXPECT_EQ(client->sent[i - 1], i);
}

TEST_P(Contract, AnAnswerMayBeSentFromWithinAHandler) {
  connect_and_start();
  const auto payload = pattern(318'040, 4);
  server->then = [&] { server->send(FrameType::kParameters, server->frames.size(), payload, Payload::kCopied); };
  client->then = [&] {
    if (client->frames.size() < 20) client->send(FrameType::kPush, client->frames.size() + 1, payload);
  };
  client->send(FrameType::kPush, 1, payload);
  ASSERT_TRUE(run_until_true([this] { return client->frames.size() == 20; }));
  EXPECT_EQ(server->frames.size(), 20u);
  EXPECT_TRUE(server->sent.empty()) << "on_sent isn't called for copied payloads";
}

TEST_P(Contract, FrozenBytesMayChangeFromOnSentOn) {
  connect_and_start();
  std::vector<std::vector<std::byte>> sources;
  for (unsigned i = 0; i < 24; ++i) sources.push_back(pattern(wire::kMaxPayloadBytes, i));
  client->then_sent = [&](std::uint64_t cookie) { std::ranges::fill(sources[cookie - 1], std::byte{0xee}); };
  for (unsigned i = 0; i < sources.size(); ++i) client->send(FrameType::kPush, i + 1, sources[i]);
  ASSERT_TRUE(run_until_true([&] { return server->frames.size() == sources.size(); }));
  ASSERT_TRUE(run_until_true([&] { return client->sent.size() == sources.size(); }));
  for (unsigned i = 0; i < sources.size(); ++i)
    EXPECT_EQ(server->frames[i].payload, pattern(wire::kMaxPayloadBytes, i)) << i;
}

TEST_P(Contract, NobodyHearsThatAFrameWithoutACookieIsSent) {
  connect_and_start();
  const auto payload = pattern(wire::kMaxPayloadBytes, 5);
  for (std::uint64_t i = 0; i < 24; ++i) client->send(FrameType::kPush, i % 2, payload);
  ASSERT_TRUE(run_until_true([&] { return server->frames.size() == 24 && client->sent.size() == 12; }));
  run_ready(loop);
  EXPECT_EQ(client->sent, std::vector<std::uint64_t>(12, 1));
}

TEST_P(Contract, CopiedBytesMayChangeWhenSendReturns) {
  connect_and_start();
  for (unsigned i = 0; i < 24; ++i) {
    auto source = pattern(wire::kMaxPayloadBytes, i);
    client->send(FrameType::kPush, i, source, Payload::kCopied);
    std::ranges::fill(source, std::byte{0xee});
  }
  ASSERT_TRUE(run_until_true([this] { return server->frames.size() == 24; }));
  for (unsigned i = 0; i < 24; ++i) EXPECT_EQ(server->frames[i].payload, pattern(wire::kMaxPayloadBytes, i)) << i;
  EXPECT_TRUE(client->sent.empty());
}

TEST_P(Contract, QueuedBytesShowWhatTheOtherEndDoesNotTake) {
  connect_and_start();
  server->connection->pause_receiving();
  const auto payload = pattern(wire::kMaxPayloadBytes, 5);
  for (std::uint64_t i = 0; i < 64; ++i) client->send(FrameType::kPush, i, payload);
  run_ready(loop);
  EXPECT_GT(client->connection->queued_bytes(), 0u);
  server->connection->resume_receiving();
  ASSERT_TRUE(run_until_true([this] { return server->frames.size() == 64; }));
  EXPECT_EQ(client->connection->queued_bytes(), 0u);
}

TEST_P(Contract, WhilePausedNothingIsDeliveredAndNothingIsLost) {
  connect_and_start();
  server->then = [this] {
    if (server->frames.size() == 3) server->connection->pause_receiving();
  };
  const auto payload = pattern(1000, 6);
  for (std::uint64_t i = 1; i <= 10; ++i) client->send(FrameType::kPush, i, payload);
  ASSERT_TRUE(run_until_true([this] { return server->frames.size() == 3; }));
  run_ready(loop);
  EXPECT_EQ(server->frames.size(), 3u);
  server->connection->resume_receiving();
  ASSERT_TRUE(run_until_true([this] { return server->frames.size() == 10; }));
}

TEST_P(Contract, UnknownTypesArePassedOnWithTheirPayload) {
  connect_and_start();
  server->refuse_landing = true;  // it isn't called
  const auto payload = pattern(200'000, 7);
  client->send(FrameType(1234), 1, payload);
  client->send(FrameType::kControl, 2, {});
  ASSERT_TRUE(run_until_true([this] { return server->frames.size() == 2; }));
  EXPECT_EQ(server->frames[0].header.type, FrameType(1234));
  EXPECT_EQ(server->frames[0].payload, payload);
}

TEST_P(Contract, ARefusedLandingClosesWithItsError) {
  connect_and_start();
  server->refuse_landing = true;
  client->send(FrameType::kPush, 1, pattern(10, 8), Payload::kCopied);
  ASSERT_TRUE(run_until_true([this] { return server->closed == 1 && client->closed == 1; }));
  EXPECT_EQ(server->reason.message, "no place for this");
  EXPECT_TRUE(server->frames.empty());
}

TEST_P(Contract, ClosingInMidPayloadLeavesNoHalfFrameBehind) {
  connect_and_start();
  server->connection->pause_receiving();
  std::vector<std::vector<std::byte>> sources;
  for (unsigned i = 0; i < 32; ++i) sources.push_back(pattern(wire::kMaxPayloadBytes, i));
  for (unsigned i = 0; i < sources.size(); ++i) client->send(FrameType::kPush, i, sources[i]);
  run_ready(loop);
  server->connection->resume_receiving();
  for (int i = 0; i < 3; ++i) loop.run_one_for(std::chrono::milliseconds(100));
  client->close();
  for (auto& source : sources) std::ranges::fill(source, std::byte{0xee});
  ASSERT_TRUE(run_until_true([this] { return server->closed == 1; }));
  EXPECT_LT(server->frames.size(), sources.size());
  for (unsigned i = 0; i < server->frames.size(); ++i)
    EXPECT_EQ(server->frames[i].payload, pattern(wire::kMaxPayloadBytes, i)) << i;
  EXPECT_EQ(server->reason.code, ErrorCode::kUnavailable);
}

TEST_P(Contract, WhatWasSentBeforeACloseStillArrives) {
  connect_and_start();
  OutgoingFrame last;
  last.header.type = FrameType::kRefused;
  const auto reason = bytes_of("the reason");
  last.control = reason;
  server->send(last);
  server->close();
  ASSERT_TRUE(run_until_true([this] { return client->closed == 1; }));
  ASSERT_EQ(client->frames.size(), 1u);
  EXPECT_EQ(text_of(client->frames[0].control), "the reason");
}

TEST_P(Contract, WhatWasSentBeforeACloseIsReadEvenIfSendingFails) {
  connect();
  client->start();
  OutgoingFrame last;
  last.header.type = FrameType::kControl;
  const auto reason = bytes_of("the reason");
  last.control = reason;
  server->send(last);
  server->connection.reset();
  for (int i = 0; i < 20; ++i) client->send(FrameType::kControl, 1, {});
  ASSERT_TRUE(run_until_true([this] { return client->closed == 1; }));
  ASSERT_EQ(client->frames.size(), 1u);
}

TEST_P(Contract, DroppingAConnectionTellsThePeerOnce) {
  connect_and_start();
  server->connection.reset();
  ASSERT_TRUE(run_until_true([this] { return client->closed == 1; }));
  EXPECT_EQ(client->reason.code, ErrorCode::kUnavailable);
  EXPECT_NE(client->reason.message.find("closed the connection"), std::string::npos) << client->reason.message;
  client->send(FrameType::kControl, 1, {});
  run_ready(loop);
}

TEST_P(Contract, AHandlerMayDropItsConnection) {
  connect_and_start();
  server->then = [this] { server->connection.reset(); };
  for (std::uint64_t i = 1; i <= 5; ++i) client->send(FrameType::kControl, i, {});
  ASSERT_TRUE(run_until_true([this] { return client->closed == 1; }));
  EXPECT_EQ(server->frames.size(), 1u);
  EXPECT_EQ(server->closed, 0);
}

TEST_P(Contract, AfterCloseNoHandlerIsCalled) {
  connect_and_start();
  const auto payload = pattern(wire::kMaxPayloadBytes, 9);
  for (std::uint64_t i = 0; i < 8; ++i) client->send(FrameType::kPush, i, payload);
  client->close();
  client->close();
  ASSERT_TRUE(run_until_true([this] { return server->closed == 1; }));
  EXPECT_TRUE(client->sent.empty());
  EXPECT_EQ(client->closed, 0);
}

TEST_P(Contract, DroppingAnArrivalClosesIt) {
  listen();
  auto dialled = dial(listener->address());
  ASSERT_TRUE(dialled);
  client = std::make_unique<End>(std::move(*dialled));
  client->start();
  ASSERT_TRUE(run_until_true([this] { return !arrivals.empty(); }));
  arrivals.clear();
  ASSERT_TRUE(run_until_true([this] { return client->closed == 1; }));
}

TEST_P(Contract, ADialToNobodyProvesIt) {
  const auto dialled = dial(GetParam().nobody);
  ASSERT_FALSE(dialled);
  EXPECT_EQ(dialled.error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(proves_nobody_listens(dialled.error())) << dialled.error().message;
}

TEST_P(Contract, ADroppedListenerIsNobody) {
  listen();
  const std::string address = listener->address();
  listener.reset();
  run_ready(loop);
  const auto dialled = dial(address);
  ASSERT_FALSE(dialled);
  EXPECT_TRUE(proves_nobody_listens(dialled.error())) << dialled.error().message;
}

TEST_P(Contract, AnAddressIsListenedOnOnce) {
  listen();
  const auto second = transport->listen(loop, listener->address(), {}, [](auto) {});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(second.error().message.find("in use"), std::string::npos) << second.error().message;
}

TEST_P(Contract, AnAddressThatMakesNoSenseIsAConfigError) {
  const auto made = transport->listen(loop, "nonsense", {}, [](auto) {});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::kConfig);
}

TEST_P(Contract, ConnectionsBeyondTheLimitAreClosedAndSeatsComeBack) {
  ListenerLimits limits;
  limits.max_connections = 8;
  limits.hello_timeout = std::chrono::minutes(10);
  listen(limits);
  std::vector<std::unique_ptr<End>> clients;
  // With TCP, the listener may close a connection before the dialler has written its hello. Then either dial() fails,
  // or the connection closes later.
  int failed = 0;
  for (int i = 0; i < 300; ++i) {
    transport->dial(loop, listener->address(), hello(), std::chrono::seconds(30), [&](auto dialled) {
      if (!dialled) {
        ++failed;
        return;
      }
      clients.push_back(std::make_unique<End>(std::move(*dialled)));
      clients.back()->start();
    });
  }
  const auto closed = [&] {
    return failed + std::ranges::count_if(clients, [](const auto& end) { return end->closed == 1; });
  };
  ASSERT_TRUE(run_until_true([&] { return closed() == 292 && arrivals.size() == 8; }));
  EXPECT_EQ(listener->refused(), 292u);
  {
    const auto adopted = arrivals.back()->adopt(loop);
    arrivals.pop_back();
  }
  arrivals.clear();
  connect_and_start();
  client->send(FrameType::kControl, 1, {});
  ASSERT_TRUE(run_until_true([this] { return server->frames.size() == 1; }));
}

TEST_P(Contract, AnArrivalIsAdoptedByALoopOfAnotherThread) {
  connect();  // sets the client up; the test replaces its server end by one on another thread
  auto dialled = dial(listener->address());
  ASSERT_TRUE(dialled);
  client = std::make_unique<End>(std::move(*dialled));
  client->start();
  ASSERT_TRUE(run_until_true([this] { return !arrivals.empty(); }));
  auto arrival = std::make_shared<std::unique_ptr<Arrival>>(std::move(arrivals.back()));
  arrivals.clear();

  asio::io_context other(1);
  auto guard = asio::make_work_guard(other);
  const auto payload = pattern(wire::kMaxPayloadBytes, 10);
  std::unique_ptr<End> echo;
  asio::post(other, [&, arrival] {
    echo = std::make_unique<End>((*arrival)->adopt(other));
    echo->then = [&] { echo->send(FrameType::kParameters, echo->frames.size(), payload, Payload::kCopied); };
    echo->start();
  });
  std::thread thread([&other] { other.run(); });
  for (std::uint64_t i = 1; i <= 50; ++i) client->send(FrameType::kPush, i, payload);
  EXPECT_TRUE(run_until_true([this] { return client->frames.size() == 50 && client->sent.size() == 50; }));
  asio::post(other, [&] {
    echo.reset();
    guard.reset();
  });
  thread.join();
  for (const ReceivedFrame& frame : client->frames) EXPECT_EQ(frame.payload, payload);
  EXPECT_TRUE(run_until_true([this] { return client->closed == 1; }));
}

}  // namespace
}  // namespace disttrain::transport
