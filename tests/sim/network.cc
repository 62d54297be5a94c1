#include "tests/sim/network.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <typeinfo>

namespace disttrain::sim {

void Node::after(Duration delay, std::function<void()> work) {
  const std::string address = network_.address_of(*this);
  const std::uint64_t life = network_.seats_.at(address).life;
  world_.after(delay, [&network = network_, address, life, work = std::move(work)]() mutable {
    network.run_on(address, life, std::move(work));
  });
}

void Node::dial(const std::string& address, const Hello& hello, Duration deadline,
                std::function<void(std::optional<ConnectionId>, bool)> done) {
  Network& network = network_;
  const std::string own = network.address_of(*this);
  const std::uint64_t life = network.seats_.at(own).life;
  auto answered = std::make_shared<bool>(false);
  auto finish = [&network, own, life, answered, done = std::move(done)](std::optional<ConnectionId> id, bool refused) {
    network.run_on(own, life, [answered, done, id, refused] {
      if (!std::exchange(*answered, true)) done(id, refused);
    });
  };
  world_.after(deadline, [finish] { finish(std::nullopt, false); });
  if (network.blocked_.count({own, address}) != 0) return;
  world_.after(world_.between(network.shortest, network.longest), [&network, own, life, address, hello, finish] {
    Network::Seat& seat = network.seats_[address];
    if (seat.host_down) return;
    const bool refused = !seat.node || (!seat.paused && !seat.node->listens());
    const Duration back = network.world_.between(network.shortest, network.longest);
    if (refused) {
      if (network.blocked_.count({address, own}) == 0)
        network.world_.after(back, [finish] { finish(std::nullopt, true); });
      return;
    }
    const std::uint64_t id = ++network.last_;
    Network::Connection& connection = network.connections_[id];
    // Nothing arrives over it before the dialler knows that it has it.
    connection.sides[0] = {own, life, false, network.world_.now() + back};
    connection.sides[1] = {address, seat.life, false, network.world_.now()};
    network.world_.after(back, [finish, id] { finish(Network::end_of(id, 0), false); });
    network.deliver(id, 1, [id, hello](Node& node) { node.on_arrival(Network::end_of(id, 1), hello); });
  });
}

namespace {

// "LeaseGrant": the type's name.
template <typename T>
std::string name_of_type() {
  int status = 0;
  char* name = abi::__cxa_demangle(typeid(T).name(), nullptr, nullptr, &status);
  const std::string whole = name != nullptr ? name : typeid(T).name();
  std::free(name);
  return whole.find("variant") != std::string::npos ? "HelloAnswer" : whole.substr(whole.rfind(':') + 1);
}
std::string name_of(const Payload& payload) {
  const auto of = [](const auto& message) { return name_of_type<std::decay_t<decltype(message)>>(); };
  const auto* control = std::get_if<wire::ControlMessage>(&payload);
  const auto positions = [](const std::vector<Interval>& intervals) {
    std::string text;
    for (const Interval& interval : intervals)
      text += " [" + std::to_string(interval.begin) + ", " + std::to_string(interval.end) + ")";
    return text;
  };
  if (const auto* push = std::get_if<PushFrame>(&payload))
    return "PushFrame " + std::to_string(push->sequence.value) + ", lease " + std::to_string(push->push.lease.value) +
           ", epoch " + std::to_string(push->push.epoch) + positions(push->push.visited);
  if (const auto* grant = control != nullptr ? std::get_if<LeaseGrant>(control) : nullptr; grant && grant->lease)
    return "LeaseGrant " + std::to_string(grant->lease->id.value) + ", epoch " + std::to_string(grant->lease->epoch) +
           positions(grant->lease->positions);
  return control != nullptr ? std::visit(of, *control) : std::visit(of, payload);
}

}  // namespace

void Node::send(ConnectionId end, Payload payload) {
  const auto found = network_.connections_.find(end / 2);
  const int from = static_cast<int>(end % 2);
  if (found == network_.connections_.end() || found->second.broken || found->second.sides[from].closed) return;
  if (world_.keeps_words())
    world_.whisper("  " + to_string(self_.task) + " > " + found->second.sides[1 - from].address + " " +
                   name_of(payload));
  network_.deliver(end / 2, 1 - from,
                   [other = end ^ 1, payload = std::move(payload)](Node& node) { node.on_message(other, payload); });
}

void Node::close(ConnectionId end) {
  const auto found = network_.connections_.find(end / 2);
  if (found == network_.connections_.end()) return;
  const int from = static_cast<int>(end % 2);
  if (std::exchange(found->second.sides[from].closed, true) || found->second.broken) return;
  network_.deliver(
      end / 2, 1 - from, [other = end ^ 1](Node& node) { node.on_closed(other); }, true);
}

void Network::run_on(const std::string& address, std::uint64_t life, std::function<void()> work) {
  Seat& seat = seats_[address];
  if (seat.life != life || !seat.node) return;
  if (seat.paused)
    seat.waiting.emplace_back(life, std::move(work));
  else
    work();
}

// In order; what is blocked waits, and all behind it.
void Network::deliver(std::uint64_t id, int to, std::function<void(Node&)> call, bool is_close) {
  Connection& connection = connections_.at(id);
  const auto arrive = [this, id, to, is_close, call = std::move(call)] {
    const Connection& now = connections_.at(id);
    if (!is_close && now.broken && now.loses) return;
    const Side& side = now.sides[to];
    run_on(side.address, side.life, [this, id, to, call] {
      const Side& receiver = connections_.at(id).sides[to];
      if (!receiver.closed) call(*seats_.at(receiver.address).node);
    });
  };
  const bool is_blocked = blocked_.count({connection.sides[1 - to].address, connection.sides[to].address}) != 0;
  const bool waits_behind =
      std::any_of(connection.held.begin(), connection.held.end(), [to](const auto& held) { return held.first == to; });
  if (is_blocked || waits_behind) return connection.held.emplace_back(to, arrive), void();
  Side& side = connection.sides[to];
  side.last = std::max(side.last + Duration(1), world_.now() + world_.between(shortest, longest));
  world_.after(side.last - world_.now(), arrive);
}

// What is under way to the sides that are told arrives before they are, or is lost.
void Network::break_connection(std::uint64_t id, int told) {
  Connection& connection = connections_.at(id);
  if (std::exchange(connection.broken, true)) return;
  connection.held.clear();
  connection.loses = world_.chance(500);
  for (const int side : {0, 1})
    if ((told & (1 << side)) != 0)
      deliver(
          id, side,
          [id, this, side](Node& node) {
            connections_.at(id).sides[side].closed = true;
            node.on_closed(end_of(id, side));
          },
          true);
}

void Network::start(const std::string& address, std::unique_ptr<Node> node) {
  Seat& seat = seats_[address];
  seat.node = std::move(node);
  seat.node->address_ = address;
  ++seat.life;
  seat.paused = false;
  seat.host_down = false;
  seat.waiting.clear();
  seat.node->start();
}

void Network::crash(const std::string& address, bool with_host) {
  Seat& seat = seats_[address];
  if (!seat.node) return;
  world_.tell(address + (with_host ? " loses its host" : " is killed"));
  for (auto& [id, connection] : connections_)
    for (const int side : {0, 1})
      if (connection.sides[side].address == address && connection.sides[side].life == seat.life) {
        connection.sides[side].closed = true;
        // A host that vanishes resets nothing; its peers hear of it when they try to reach it, after a while.
        if (with_host) {
          std::erase_if(connection.held, [side](const auto& held) { return held.first == 1 - side; });
          const std::uint64_t broken = id;
          const int other = 1 - side;
          world_.after(std::chrono::seconds(20), [this, broken, other] { break_connection(broken, 1 << other); });
        } else {
          break_connection(id, 1 << (1 - side));
        }
      }
  seat.node.reset();
  ++seat.life;
  seat.host_down = with_host;
  seat.paused = false;
  seat.waiting.clear();
}

void Network::pause(const std::string& address) {
  if (!is_alive(address)) return;
  world_.tell(address + " is paused");
  seats_[address].paused = true;
}

void Network::resume(const std::string& address) {
  Seat& seat = seats_[address];
  if (!seat.paused) return;
  world_.tell(address + " goes on");
  seat.paused = false;
  while (!seat.paused && !seat.waiting.empty()) {
    auto [life, work] = std::move(seat.waiting.front());
    seat.waiting.pop_front();
    if (life == seat.life && seat.node) work();
  }
}

void Network::unblock_all() {
  blocked_.clear();
  for (auto& [id, connection] : connections_) {
    auto held = std::exchange(connection.held, {});
    for (auto& [to, arrive] : held) {
      Side& side = connection.sides[to];
      side.last = std::max(side.last + Duration(1), world_.now() + world_.between(shortest, longest));
      world_.after(side.last - world_.now(), arrive);
    }
  }
}

void Network::cut_one() {
  std::vector<std::uint64_t> open;
  for (const auto& [id, connection] : connections_)
    if (!connection.broken && !connection.sides[0].closed && !connection.sides[1].closed) open.push_back(id);
  if (open.empty()) return;
  const std::uint64_t id = open[world_.random().below(open.size())];
  const Connection& connection = connections_.at(id);
  world_.tell("the connection of " + connection.sides[0].address + " and " + connection.sides[1].address + " breaks");
  break_connection(id, 3);
}

}  // namespace disttrain::sim
