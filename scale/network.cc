// A model in which all connections share a card fairly would need a calculation for all of a card's connections at each
// message, of which there are 1,000. The switch never loses a packet, so `bench scale` doesn't show what happens when a
// hundred ps tasks send to one worker at the same moment.
#include "scale/network.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace disttrain::scale {

HostId Network::add_host(TaskId task) {
  cards_.push_back(Card{task, {}, {}});
  return HostId(static_cast<std::uint32_t>(cards_.size() - 1));
}

Duration Network::time_of(std::uint64_t bytes) const {
  return Duration(std::llround(static_cast<double>(bytes) / speed_.bytes_per_second * 1e9));
}

// Returns when the direction begins to carry the message.
Instant Network::occupy(Direction& direction, Traffic traffic, Instant now, Duration takes) {
  const bool is_urgent = traffic != Traffic::kData;
  const Instant begin = std::max(now, is_urgent ? direction.urgent_free : direction.free);
  if (is_urgent) direction.urgent_free = begin + takes;
  direction.free = std::max(now, direction.free) + takes;
  return begin;
}

void Network::send(HostId from, HostId to, Traffic traffic, std::uint64_t bytes, std::function<void()> arrive) {
  if (from == to) return queue_.after(Duration(), std::move(arrive));
  const Duration takes = time_of(bytes);
  const Instant sent = occupy(cards_[from.value].out, traffic, queue_.now(), takes);
  queue_.at(sent + speed_.latency, [this, from, to, traffic, bytes, takes, arrive = std::move(arrive)]() mutable {
    Direction& in = cards_[to.value].in;
    const auto kind = static_cast<std::size_t>(traffic);
    cards_[from.value].out.carried[kind] += Carried{bytes, 1};
    in.carried[kind] += Carried{bytes, 1};
    queue_.at(occupy(in, traffic, queue_.now(), takes) + takes, std::move(arrive));
  });
}

void Network::connect(HostId from, HostId to, std::function<void()> done) {
  queue_.after(from == to ? Duration() : 2 * speed_.latency, std::move(done));
}

}  // namespace disttrain::scale
