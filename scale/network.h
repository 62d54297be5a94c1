// The hosts of a cluster and the links between them. Each host has one network card, which sends and receives at the
// same time, each at the full bandwidth. Between the cards is a switch that loses nothing and never blocks. So a
// message waits only for its sender's card and for its receiver's card:
//
//   1. It waits until the sender's card has sent the messages before it, and is then sent for bytes / bandwidth.
//   2. Its first byte arrives `latency` after it was sent.
//   3. It waits until the receiver's card has received the messages whose first byte came before, and is then received
//      for bytes / bandwidth.
//
// A lone message arrives after latency + bytes / bandwidth, because sending and receiving overlap. A card handles
// messages one after the other, whereas TCP shares it among all connections. This matters for small messages that would
// wait behind megabytes on other connections. So messages of kControl and kPeer overtake those of kData, and delay
// them. Messages of the same kind between the same two hosts stay in order.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/time.h"
#include "scale/event_queue.h"

namespace disttrain::scale {

using HostId = StrongId<struct HostIdTag, std::uint32_t>;

// kData: channels of workers to shards. kPeer: connections of shards to the pacer. kControl: connections to the chief.
enum class Traffic : std::uint8_t { kData, kPeer, kControl };
inline constexpr std::size_t kTraffics = 3;

struct LinkSpeed {
  double bytes_per_second = 1.25e9;
  Duration latency = std::chrono::microseconds(50);
};

// What one direction of a card has carried. A message counts at both ends when its first byte arrives.
struct Carried {
  std::uint64_t bytes = 0;
  std::uint64_t messages = 0;

  Carried& operator+=(const Carried& other) {
    bytes += other.bytes;
    messages += other.messages;
    return *this;
  }
  friend Carried operator-(Carried a, const Carried& b) {
    a.bytes -= b.bytes;
    a.messages -= b.messages;
    return a;
  }
  friend Carried operator+(Carried a, const Carried& b) { return a += b; }
  bool operator==(const Carried&) const = default;
};

struct Direction {
  std::array<Carried, kTraffics> carried{};  // by Traffic
  Instant free;                              // when it has carried all messages so far
  Instant urgent_free;                       // when it has carried those of kPeer and kControl

  Carried total() const {
    Carried sum;
    for (const Carried& kind : carried) sum += kind;
    return sum;
  }
};

struct Card {
  TaskId task;
  Direction out;
  Direction in;
};

class Network {
 public:
  Network(EventQueue& queue, const LinkSpeed& speed) : queue_(queue), speed_(speed) {}

  HostId add_host(TaskId task);
  // Sends `bytes` bytes and calls `arrive` when the last of them has been received. `from` and `to` may be the same
  // host: then the message arrives at once and isn't counted.
  void send(HostId from, HostId to, Traffic traffic, std::uint64_t bytes, std::function<void()> arrive);
  // Calls `done` when a handshake of TCP would be over: after twice the latency.
  void connect(HostId from, HostId to, std::function<void()> done);

  const std::vector<Card>& cards() const { return cards_; }  // by HostId
  // The time in which a card sends or receives so many bytes.
  Duration time_of(std::uint64_t bytes) const;

 private:
  static Instant occupy(Direction& direction, Traffic traffic, Instant now, Duration takes);

  EventQueue& queue_;
  const LinkSpeed speed_;
  std::vector<Card> cards_;
};

}  // namespace disttrain::scale
