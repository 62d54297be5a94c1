// Payloads that are moved between the memories of both ends, on each transport that does so.
#include <algorithm>

#include "tests/transport/two_ends.h"
#include "transport/rdma/device.h"
#include "transport/rdma/transport.h"
#include "transport/shm/transport.h"

namespace disttrain::transport {
namespace {

struct Kind {
  const char* wire;
  std::unique_ptr<Transport> (*make)();
  const char* address;
  bool needs_rdma;
};

const Kind kKinds[] = {
    {"shm",
     []() -> std::unique_ptr<Transport> {
       return std::make_unique<ShmTransport>(ShmOptions{.cluster = "test", .is_required = true, .tcp = {}});
     },
     "127.0.0.1:0", false},
    // The address is that of a device in the virtual machine of tests/rdma.
    {"rdma",
     []() -> std::unique_ptr<Transport> {
       return std::make_unique<RdmaTransport>(RdmaOptions{.cluster = "test", .is_required = true, .tcp = {}});
     },
     "10.77.0.2:0", true},
};

class Places : public TwoEnds, public testing::WithParamInterface<Kind> {
 protected:
  void SetUp() override {
    if (GetParam().needs_rdma && !has_rdma_devices()) GTEST_SKIP() << "this host has no RDMA device";
    listen(*transport, GetParam().address);
  }
  void TearDown() override {
    client.reset();
    server.reset();
    TwoEnds::TearDown();
  }

  // Connects two ends, and starts them. The client shares its arena.
  void connect_and_start() {
    auto [dialled, accepted] = connect();
    dialled->share(arena);
    client = std::make_unique<End>(std::move(dialled));
    server = std::make_unique<End>(std::move(accepted));
    client->start();
    server->start();
  }

  std::unique_ptr<Transport> transport = GetParam().make();
  std::unique_ptr<End> client, server;
};

INSTANTIATE_TEST_SUITE_P(Transports, Places, testing::ValuesIn(kKinds),
                         [](const auto& kind) { return std::string(kind.param.wire); });

// ---- Payloads that the sender lends.

TEST_P(Places, ALentPayloadComesIntoItsLanding) {
  connect_and_start();
  EXPECT_STREQ(client->connection->wire(), GetParam().wire);
  std::ranges::copy(pattern(kBytes, 1), memory.bytes().begin());
  for (std::size_t i = 1; i <= 40; ++i) {
    const Bytes payload = Bytes(memory.bytes()).subspan(4 * i, 4096 + i);
    client->send(push(payload));
    ASSERT_TRUE(run_until_true([&] { return server->frames.size() == i; }));
    EXPECT_TRUE(std::ranges::equal(server->frames.back().payload, payload)) << i;
  }
  EXPECT_EQ(client->connection->bytes_sent(), server->connection->bytes_received());
  EXPECT_TRUE(server->sent.empty());
}

TEST_P(Places, ManyLentPayloadsComeInOrder) {
  constexpr std::size_t kPiece = 64 * 1024, kPieces = 32;
  Memory gradients(arena, kPiece * kPieces, Paging::kTouched);
  std::ranges::copy(pattern(kPiece * kPieces, 5), gradients.bytes().begin());
  connect_and_start();
  for (std::size_t i = 0; i < kPieces; ++i) {
    client->send(push(Bytes(gradients.bytes()).subspan(i * kPiece, kPiece)));
    client->send(wire::FrameType::kControl, 0, {});
  }
  ASSERT_TRUE(run_until_true([&] { return server->frames.size() == 2 * kPieces; }));
  for (std::size_t i = 0; i < kPieces; ++i)
    EXPECT_TRUE(std::ranges::equal(server->frames[2 * i].payload, Bytes(gradients.bytes()).subspan(i * kPiece, kPiece)))
        << i;
}

TEST_P(Places, APausedConnectionKeepsALentPayload) {
  connect_and_start();
  std::ranges::copy(pattern(kBytes, 3), memory.bytes().begin());
  server->then = [&] { server->connection->pause_receiving(); };
  for (int i = 0; i < 3; ++i) client->send(push(Bytes(memory.bytes())));
  for (std::size_t i = 1; i <= 3; ++i) {
    ASSERT_TRUE(run_until_true([&] { return server->frames.size() == i; }));
    run_ready(loop);
    EXPECT_EQ(server->frames.size(), i);
    EXPECT_EQ(server->frames.back().payload, pattern(kBytes, 3));
    server->connection->resume_receiving();
  }
}

TEST_P(Places, ALentPayloadOfAnUnknownFrameIsDropped) {
  connect_and_start();
  server->refuse_landing = true;  // it isn't called
  OutgoingFrame frame = push(Bytes(memory.bytes()));
  frame.header.type = wire::FrameType(1234);
  client->send(frame);
  ASSERT_TRUE(run_until_true([&] { return server->frames.size() == 1; }));
  EXPECT_EQ(server->frames[0].payload.size(), kBytes);
}

TEST_P(Places, MemoryOfAnotherArenaTravelsAsBytes) {
  connect_and_start();
  const auto elsewhere = pattern(kBytes, 3);
  client->send(push(elsewhere));
  ASSERT_TRUE(run_until_true([&] { return server->frames.size() == 1; }));
  EXPECT_EQ(server->landing, elsewhere);
}

// ---- Answers into memory that the receiver offers.

TEST_P(Places, AnswersAreWrittenIntoTheOfferedMemory) {
  constexpr std::size_t kAt = 4096;
  connect_and_start();
  client->place = memory.bytes().subspan(kAt);
  client->send(push(Bytes(memory.bytes()).first(64), memory.bytes()));
  ASSERT_TRUE(run_until_true([&] { return server->frames.size() == 1; }));
  for (unsigned i = 1; i <= 100; ++i) {  // more than RDMA writes at once
    const auto values = pattern(kBytes - kAt, i);
    server->send(answer(values, kAt));
  }
  ASSERT_TRUE(run_until_true([&] { return client->frames.size() == 100; }));
  EXPECT_EQ(client->frames.back().payload, pattern(kBytes - kAt, 100));
  EXPECT_TRUE(std::ranges::equal(memory.bytes().subspan(kAt), pattern(kBytes - kAt, 100)));
  EXPECT_EQ(client->connection->bytes_received(), server->connection->bytes_sent());
}

// If too many answers are under way, RDMA sends some in their frames. A later one that is written must not come before
// them. The test has most to find if packets are delayed (tests/rdma/vm_test.py).
TEST_P(Places, TheLastAnswerForAPlaceStaysThere) {
  constexpr unsigned kAnswers = 100;
  connect_and_start();
  client->place = memory.bytes();
  client->send(push(Bytes(memory.bytes()).first(64), memory.bytes()));
  ASSERT_TRUE(run_until_true([&] { return server->frames.size() == 1; }));
  for (unsigned i = 1; i <= kAnswers; ++i) {
    server->send(answer(pattern(kBytes, i), 0));
    loop.restart();
    loop.run_one_for(std::chrono::milliseconds(1));
  }
  ASSERT_TRUE(run_until_true([&] { return client->frames.size() == kAnswers; }));
  EXPECT_TRUE(client->frames.back().payload == pattern(kBytes, kAnswers));
}

TEST_P(Places, AnAnswerWithoutOfferedMemoryTravelsAsBytes) {
  connect_and_start();
  const auto values = pattern(5000, 5);
  server->send(answer(values, 0));
  ASSERT_TRUE(run_until_true([&] { return client->frames.size() == 1; }));
  EXPECT_EQ(client->landing, values);
}

TEST_P(Places, AnAnswerBeyondTheOfferedMemoryTravelsAsBytes) {
  connect_and_start();
  client->send(push(Bytes(memory.bytes()).first(64), memory.bytes().first(4096)));
  ASSERT_TRUE(run_until_true([&] { return server->frames.size() == 1; }));
  const auto values = pattern(64, 7);
  server->send(answer(values, 4096 - 60));
  ASSERT_TRUE(run_until_true([&] { return client->frames.size() == 1; }));
  EXPECT_EQ(client->landing, values);
}

TEST_P(Places, AnAnswerAtAWrongPlaceClosesTheConnection) {
  connect_and_start();
  client->place = memory.bytes().subspan(4096);
  client->send(push(Bytes(memory.bytes()).first(64), memory.bytes()));
  ASSERT_TRUE(run_until_true([&] { return server->frames.size() == 1; }));
  server->send(answer(pattern(100, 6), 0));
  ASSERT_TRUE(run_until_true([&] { return client->closed == 1; }));
  EXPECT_EQ(client->reason.code, ErrorCode::kData);
  EXPECT_NE(client->reason.message.find("in memory that isn't offered for it"), std::string::npos)
      << client->reason.message;
}

}  // namespace
}  // namespace disttrain::transport
