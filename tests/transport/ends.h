// For the tests of transports: a handler that records what it receives, and a loop that runs until a condition holds.
#pragma once

#include <gtest/gtest.h>

#include <asio/io_context.hpp>
#include <memory>
#include <string>
#include <vector>

#include "tests/run_until.h"
#include "transport/connection.h"

namespace disttrain::transport {

struct ReceivedFrame {
  wire::FrameHeader header;
  std::vector<std::byte> control;
  std::vector<std::byte> payload;
};

inline std::vector<std::byte> bytes_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

inline std::string text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Bytes that depend on their position and on `seed`.
inline std::vector<std::byte> pattern(std::size_t size, unsigned seed) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>((i * 31 + seed * 97 + (i >> 8)) & 0xff);
  return bytes;
}

// One end: a connection, and what its handler has received.
class End : public ConnectionHandler {
 public:
  explicit End(std::unique_ptr<Connection> c) : connection(std::move(c)) {}

  void start() { connection->start(*this); }

  void send(const OutgoingFrame& frame) {
    inside_call_ = true;
    connection->send(frame);
    inside_call_ = false;
  }
  void send(wire::FrameType type, std::uint64_t sequence, Bytes payload, Payload lifetime = Payload::kFrozenUntilSent) {
    OutgoingFrame frame;
    frame.header.type = type;
    frame.header.sequence = Sequence(sequence);
    frame.payload = payload;
    frame.lifetime = lifetime;
    frame.cookie = sequence;
    send(frame);
  }
  void close() {
    inside_call_ = true;
    connection->close();
    inside_call_ = false;
    closed_by_us_ = true;
  }

  Result<MutableBytes> payload_landing(const wire::FrameHeader& header, Bytes) override {
    expect_call_allowed();
    ++asked;
    if (refuse_landing) return fail(ErrorCode::kData, "no place for this");
    if (!place.empty()) return place.first(header.payload_bytes);
    landing.assign(header.payload_bytes, std::byte{0});
    return MutableBytes(landing);
  }
  void on_frame(const wire::FrameHeader& header, Bytes control, Bytes payload) override {
    expect_call_allowed();
    if (!payload.empty() && wire::FrameType::kHello < header.type && header.type < wire::FrameType(1000)) {
      EXPECT_EQ(payload.data(), place.empty() ? landing.data() : place.data())
          << "the payload isn't where it was asked to land";
    }
    frames.push_back({header, {control.begin(), control.end()}, {payload.begin(), payload.end()}});
    if (then) then();
  }
  void on_sent(std::uint64_t cookie) override {
    expect_call_allowed();
    sent.push_back(cookie);
    if (then_sent) then_sent(cookie);
  }
  void on_closed(const Error& why) override {
    expect_call_allowed();
    ++closed;
    reason = why;
  }

  std::unique_ptr<Connection> connection;
  std::vector<ReceivedFrame> frames;
  std::vector<std::uint64_t> sent;
  std::vector<std::byte> landing;
  MutableBytes place;                            // where payloads land; empty: in `landing`
  int asked = 0;                                 // how often this end has said where a payload lands
  std::function<void()> then;                    // after each frame
  std::function<void(std::uint64_t)> then_sent;  // after each on_sent
  bool refuse_landing = false;
  int closed = 0;
  Error reason;

 private:
  void expect_call_allowed() {
    EXPECT_FALSE(inside_call_) << "a handler was called from within send() or close()";
    EXPECT_FALSE(closed_by_us_) << "a handler was called after close()";
    EXPECT_EQ(closed, 0) << "a handler was called after on_closed()";
  }
  bool inside_call_ = false;
  bool closed_by_us_ = false;
};

// Runs all ready handlers.
inline void run_ready(asio::io_context& loop) {
  loop.restart();
  while (loop.poll() > 0) loop.restart();
}

}  // namespace disttrain::transport
