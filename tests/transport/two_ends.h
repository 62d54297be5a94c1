// For the tests of transports that move payloads between the memories of both ends: two connected ends, and the frames
// that lend, offer and answer.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "common/os/arena.h"
#include "tests/transport/ends.h"

namespace disttrain::transport {

inline OutgoingFrame hello_frame() {
  OutgoingFrame frame;
  frame.header.type = wire::FrameType::kHello;
  return frame;
}

// A frame that lends a payload, and offers memory for answers.
inline OutgoingFrame push(Bytes payload, MutableBytes answers = {}) {
  OutgoingFrame frame;
  frame.header.type = wire::FrameType::kPush;
  frame.payload = payload;
  frame.lifetime = Payload::kFrozenUntilAnswered;
  frame.answers = answers;
  return frame;
}

inline OutgoingFrame answer(Bytes payload, std::uint64_t at) {
  OutgoingFrame frame;
  frame.header.type = wire::FrameType::kParameters;
  frame.payload = payload;
  frame.lifetime = Payload::kCopied;
  frame.answer_at = at;
  return frame;
}

using Pair = std::pair<std::unique_ptr<Connection>, std::unique_ptr<Connection>>;

// A listener of a transport, and connections with it.
class TwoEnds : public testing::Test {
 protected:
  static constexpr std::size_t kBytes = 3 * 4096 + 64;

  // The transport is a member of the test's class, so it goes before those of this class.
  void TearDown() override {
    arrivals.clear();
    listener.reset();
  }

  void listen(Transport& transport, const std::string& address) {
    transport_ = &transport;
    // A test that waits for a refusal must not take this one for it.
    constexpr Duration kLongerThanATest = std::chrono::hours(1);
    auto made = transport.listen(loop, address, {.hello_timeout = kLongerThanATest}, on_arrival());
    ASSERT_TRUE(made) << made.error().message;
    listener = std::move(*made);
  }

  std::function<void(std::unique_ptr<Arrival>)> on_arrival() {
    return [this](std::unique_ptr<Arrival> arrival) { arrivals.push_back(std::move(arrival)); };
  }

  Result<std::unique_ptr<Connection>> dial(const std::string& address) {
    std::optional<Result<std::unique_ptr<Connection>>> result;
    transport_->for_steps().dial(loop, address, hello_frame(), std::chrono::seconds(30),
                                 [&result](auto r) { result = std::move(r); });
    EXPECT_TRUE(run_until(loop, [&result] { return result.has_value(); }));
    return std::move(*result);
  }

  // Two connected ends: the one that has dialled, and the other one.
  Pair connect() {
    auto dialled = dial(listener->address());
    EXPECT_TRUE(dialled) << dialled.error().message;
    return {std::move(*dialled), accepted()};
  }

  // The other end of the connection that was dialled last.
  std::unique_ptr<Connection> accepted() {
    EXPECT_TRUE(run_until(loop, [this] { return !arrivals.empty(); }));
    auto connection = arrivals.back()->adopt(loop);
    arrivals.pop_back();
    return connection;
  }

  bool run_until_true(const std::function<bool()>& done) { return run_until(loop, done); }

  asio::io_context loop;
  std::vector<std::unique_ptr<Arrival>> arrivals;
  std::unique_ptr<Listener> listener;
  Arena arena{ArenaKind::kShared};
  Memory memory{arena, kBytes, Paging::kTouched};

 private:
  Transport* transport_ = nullptr;
};

}  // namespace disttrain::transport
