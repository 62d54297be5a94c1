#include "tests/sim/network.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <span>
#include <typeinfo>

#include "tests/sim/codec_trip.h"

namespace disttrain::sim {

void Node::after(Duration delay, std::function<void()> work) {
  const std::uint64_t life = network_.hosts_[host_]->life;
  world_.after(delay, [&network = network_, host = host_, life, work = std::move(work)]() mutable {
    network.run_on(host, life, std::move(work));
  });
}

void Node::dial(const std::string& address, const Hello& hello, Duration deadline,
                std::function<void(std::optional<ConnectionId>, bool)> done) {
  Network& network = network_;
  const std::size_t own = host_;
  const std::size_t other = network.number(address);
  const std::uint64_t life = network.hosts_[own]->life;
  auto answered = std::make_shared<bool>(false);
  auto finish = [&network, own, life, answered, done = std::move(done)](std::optional<ConnectionId> id, bool refused) {
    network.run_on(own, life, [answered, done, id, refused] {
      if (!std::exchange(*answered, true)) done(id, refused);
    });
  };
  world_.after(deadline, [finish] { finish(std::nullopt, false); });
  // A handshake needs both directions.
  if (network.is_cut(own, other)) return;
  Hello sent = hello;
  if (network.through_codec)
    if (auto problem = through_codec(sent)) network.on_bad_message(*problem);
  world_.after(world_.between(network.shortest, network.longest),
               [&network, own, life, other, sent, finish] { network.arrive_hello(own, life, other, sent, finish); });
}

void Network::arrive_hello(std::size_t from, std::uint64_t life, std::size_t to, const Hello& hello,
                           const std::function<void(std::optional<ConnectionId>, bool)>& finish) {
  Host& there = *hosts_[to];
  if (there.host_down) return;
  if (is_cut(from, to)) return;
  const bool refused = !there.node || !there.node->listens();
  const Duration back = world_.between(shortest, longest);
  if (refused) return world_.after(back, [finish] { finish(std::nullopt, true); });
  const std::uint64_t id = ++last_;
  Connection& connection = connections_[id];
  // The dialler learns of the connection after `back`. No message may reach it earlier.
  connection.sides[0] = {.host = from, .life = life, .last = world_.now() + back};
  connection.sides[1] = {.host = to, .life = there.life, .last = world_.now()};
  deliver(id, {1, [id, hello](Node& node) { node.on_arrival(end_of(id, 1), hello); }, false});
  if (ghosts != 0 && world_.chance(ghosts)) {
    world_.tell(hosts_[from]->address + " gets no answer to its hello to " + there.address);
    world_.count(Happening::kLostHello);
    harm.hit_link(hosts_[from]->address, there.address);
    connection.sides[0].closed = true;
    // The listener may learn of the connection's end only after the dialler has dialled again.
    world_.after(world_.between(std::chrono::milliseconds(1), std::chrono::seconds(2)),
                 [this, id] { break_connection(id, 2); });
    world_.after(world_.between(back, std::chrono::milliseconds(300)), [finish] { finish(std::nullopt, false); });
    return;
  }
  world_.after(back, [finish, id] { finish(end_of(id, 0), false); });
}

namespace {

// The name of the type without its namespaces, such as "LeaseGrant".
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
  const auto positions = [](std::span<const Interval> intervals) {
    std::string text;
    for (const Interval& interval : intervals)
      text += " [" + std::to_string(interval.begin) + ", " + std::to_string(interval.end) + ")";
    return text;
  };
  if (const auto* push = std::get_if<PushFrame>(&payload))
    return "PushFrame " + std::to_string(push->sequence.value) + ", clock " + std::to_string(push->push.clock.value) +
           ", from version " + std::to_string(push->push.pull_version.value) + ", lease " +
           std::to_string(push->push.lease.value) + ", epoch " + std::to_string(push->push.epoch) +
           positions(push->push.visited);
  if (const auto* frame = std::get_if<ParametersFrame>(&payload))
    return "ParametersFrame of version " + std::to_string(frame->parameters.version.value) + ", acknowledges " +
           std::to_string(frame->parameters.acknowledged.value) + ", roster " +
           std::to_string(frame->parameters.roster.value) + ", outcome " +
           std::to_string(static_cast<int>(frame->parameters.outcome));
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
    world_.whisper("  " + to_string(self_.task) + " > " + network_.hosts_[found->second.sides[1 - from].host]->address +
                   " " + name_of(payload));
  if (network_.through_codec)
    if (auto problem = through_codec(payload)) network_.on_bad_message(name_of(payload) + ": " + *problem);
  network_.deliver(
      end / 2,
      {1 - from, [other = end ^ 1, payload = std::move(payload)](Node& node) { node.on_message(other, payload); },
       false});
}

bool Node::hears(ConnectionId end) const {
  return network_.hears(end);
}

// Both directions must be open. As with TCP, a side stops sending new data after a short time if its data isn't
// acknowledged.
bool Network::hears(ConnectionId end) const {
  const auto found = connections_.find(end / 2);
  if (found == connections_.end()) return false;
  const Side& own = found->second.sides[end % 2];
  const Side& other = found->second.sides[1 - end % 2];
  const Host& there = *hosts_[other.host];
  return !own.stalled && !other.closed && there.node && there.life == other.life && !there.paused &&
         !is_cut(own.host, other.host);
}

void Node::close(ConnectionId end) {
  const auto found = network_.connections_.find(end / 2);
  if (found == network_.connections_.end()) return;
  const int from = static_cast<int>(end % 2);
  if (!std::exchange(found->second.sides[from].closed, true) && !found->second.broken)
    network_.tell_broken(end / 2, 1 - from);
  network_.forget_if_over(end / 2);
}

const std::string& Node::address() const {
  return network_.hosts_[host_]->address;
}

void Node::exit() {
  after(Duration(), [&network = network_, address = address()] { network.exit(address); });
}

void Network::exit(const std::string& address) {
  crash(address, false);
  if (on_exit) on_exit(address);
}

std::size_t Network::number(const std::string& address) {
  const auto [found, is_new] = numbers_.try_emplace(address, hosts_.size());
  if (is_new) {
    hosts_.push_back(std::make_unique<Host>());
    hosts_.back()->address = address;
  }
  return found->second;
}

void Network::run_on(std::size_t number, std::uint64_t life, std::function<void()> work) {
  Host& there = *hosts_[number];
  if (there.life != life || !there.node) return;
  if (there.paused)
    there.waiting.emplace_back(life, std::move(work));
  else
    work();
}

// A connection keeps the order of its messages. So if a message is blocked, all later messages in the same direction
// wait behind it.
void Network::deliver(std::uint64_t id, Message message) {
  Connection& connection = connections_.at(id);
  const int to = message.to;
  const bool waits_behind =
      std::any_of(connection.held.begin(), connection.held.end(), [to](const Message& held) { return held.to == to; });
  if (waits_behind || is_blocked(connection.sides[1 - to].host, connection.sides[to].host)) {
    world_.count(Happening::kMessageHeldBack);
    return connection.held.push_back(std::move(message)), void();
  }
  set_off(id, connection, std::move(message));
}

void Network::set_off(std::uint64_t id, Connection& connection, Message message) {
  Side& side = connection.sides[message.to];
  side.last = std::max(side.last + Duration(1), world_.now() + world_.between(shortest, longest));
  world_.after(side.last - world_.now(),
               [this, id, message = std::move(message)]() mutable { arrive(id, std::move(message)); });
}

void Network::arrive(std::uint64_t id, Message message) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  Connection& connection = found->second;
  if (!message.is_close && connection.broken && connection.loses) return;
  Side& side = connection.sides[message.to];
  if (side.stalled) return side.arrived.push_back(std::move(message)), void();
  run_on(side.host, side.life, [this, id, message = std::move(message)] { take(id, message); });
}

void Network::take(std::uint64_t id, const Message& message) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  Side& side = found->second.sides[message.to];
  if (side.closed) return;
  if (message.is_close) side.closed = true;
  const std::size_t there = side.host;
  const bool is_trapped = trap_ && trap_->host == there && trap_->messages-- == 0;
  if (!is_trapped) {
    message.call(*hosts_[there]->node);
  } else {
    const Trap trap = std::move(*trap_);
    trap_.reset();
    world_.count(Happening::kTrapSprung);
    if (!trap.before) message.call(*hosts_[there]->node);
    trap.work();
  }
  if (message.is_close) forget_if_over(id);
}

void Network::forget_if_over(std::uint64_t id) {
  const auto found = connections_.find(id);
  if (found != connections_.end() && found->second.sides[0].closed && found->second.sides[1].closed)
    connections_.erase(found);
}

void Network::release(std::uint64_t id, int side) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  found->second.sides[side].stalled = false;
  // Before those that are still on their way.
  for (Message& message : std::exchange(found->second.sides[side].arrived, {})) arrive(id, std::move(message));
}

void Network::tell_broken(std::uint64_t id, int side) {
  deliver(id, {side, [end = end_of(id, side)](Node& node) { node.on_closed(end); }, true});
}

// `told` is a set of bits for the sides that learn of the break: 1 for side 0, 2 for side 1. Messages on their way to
// these sides either arrive before the news of the break, or are lost. Or one of these sides gets the messages and the
// news, but up to a second late.
void Network::break_connection(std::uint64_t id, int told) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  Connection& connection = found->second;
  if (std::exchange(connection.broken, true)) return;
  connection.held.clear();
  const bool is_late = late_breaks != 0 && world_.chance(late_breaks);
  connection.loses = !is_late && world_.chance(500);
  if (is_late) {
    world_.count(Happening::kLateBreak);
    const int side = told == 3 ? static_cast<int>(world_.random().below(2)) : told == 2 ? 1 : 0;
    connection.sides[side].stalled = true;
    world_.after(world_.between(std::chrono::milliseconds(1), std::chrono::milliseconds(1000)),
                 [this, id, side] { release(id, side); });
  }
  for (const int side : {0, 1})
    if ((told & (1 << side)) != 0) tell_broken(id, side);
  forget_if_over(id);
}

void Network::start(const std::string& address, std::unique_ptr<Node> node) {
  const std::size_t index = number(address);
  Host& there = *hosts_[index];
  there.node = std::move(node);
  there.node->host_ = index;
  ++there.life;
  there.paused = false;
  there.host_down = false;
  there.waiting.clear();
  there.node->start();
}

void Network::crash(const std::string& address, bool with_host) {
  const std::size_t index = number(address);
  Host& there = *hosts_[index];
  if (!there.node) return;
  world_.tell(address + (with_host ? " loses its host" : " is killed"));
  world_.count(with_host ? Happening::kHostLost : Happening::kCrash);
  harm.hit(address);
  std::vector<std::pair<std::uint64_t, int>> ends;
  for (const auto& [id, connection] : connections_)
    for (const int side : {0, 1})
      if (connection.sides[side].host == index && connection.sides[side].life == there.life)
        ends.emplace_back(id, side);
  for (const auto& [id, side] : ends) {
    const auto found = connections_.find(id);
    if (found == connections_.end()) continue;
    Connection& connection = found->second;
    connection.sides[side].closed = true;
    const int other = 1 - side;
    if (!with_host) {
      break_connection(id, 1 << other);
      continue;
    }
    // If a host vanishes, nothing resets its connections. So the other ends learn of this only after a while.
    std::erase_if(connection.held, [other](const Message& held) { return held.to == other; });
    world_.after(std::chrono::seconds(20), [this, broken = id, other] { break_connection(broken, 1 << other); });
  }
  there.node.reset();
  ++there.life;
  there.host_down = with_host;
  there.paused = false;
  there.waiting.clear();
}

void Network::rename(const std::string& from, const std::string& to) {
  harm.hit(from);
  host(from).address = to;
  auto entry = numbers_.extract(from);
  // The trap would kill the successor at `from`, and drop a message to the process that lives.
  if (trap_ && trap_->host == entry.mapped()) trap_.reset();
  entry.key() = to;
  numbers_.insert(std::move(entry));
}

void Network::pause(const std::string& address) {
  if (!is_alive(address)) return;
  world_.tell(address + " is paused");
  harm.hit(address);
  host(address).paused = true;
}

void Network::resume(const std::string& address) {
  Host& there = host(address);
  if (!there.paused) return;
  world_.tell(address + " runs again");
  there.paused = false;
  while (!there.paused && !there.waiting.empty()) {
    auto [life, work] = std::move(there.waiting.front());
    there.waiting.pop_front();
    if (life == there.life && there.node) work();
  }
}

void Network::part(const Links& links, Duration heals_after) {
  const std::uint64_t id = ++last_partition_;
  for (const auto& [from, to] : links) {
    partitions_[id].emplace_back(number(from), number(to));
    ++blocked_[partitions_[id].back()];
    harm.hit_link(from, to);
  }
  world_.after(heals_after, [this, id] { heal(id); });
}

void Network::heal(std::uint64_t partition) {
  const auto links = partitions_.extract(partition);
  if (links.empty()) return;
  for (const auto& link : links.mapped())
    if (--blocked_[link] == 0) blocked_.erase(link);
  for (auto& [id, connection] : connections_) let_through(id, connection);
}

void Network::heal_all() {
  while (!partitions_.empty()) heal(partitions_.begin()->first);
}

// Sends the held messages. If the link is still blocked for a message, this message stays held, in order.
void Network::let_through(std::uint64_t id, Connection& connection) {
  for (Message& message : std::exchange(connection.held, {})) {
    if (is_blocked(connection.sides[1 - message.to].host, connection.sides[message.to].host))
      connection.held.push_back(std::move(message));
    else
      set_off(id, connection, std::move(message));
  }
}

void Network::cut_one() {
  std::vector<std::uint64_t> open;
  for (const auto& [id, connection] : connections_)
    if (!connection.broken && !connection.sides[0].closed && !connection.sides[1].closed) open.push_back(id);
  if (open.empty()) return;
  const std::uint64_t id = open[world_.random().below(open.size())];
  const Connection& connection = connections_.at(id);
  world_.count(Happening::kConnectionCut);
  world_.tell("the connection of " + hosts_[connection.sides[0].host]->address + " and " +
              hosts_[connection.sides[1].host]->address + " breaks");
  harm.hit_link(hosts_[connection.sides[0].host]->address, hosts_[connection.sides[1].host]->address);
  break_connection(id, 3);
}

void Network::trap(const std::string& address, std::uint64_t messages, bool before, std::function<void()> work) {
  trap_ = Trap{number(address), messages, before, std::move(work)};
}

}  // namespace disttrain::sim
