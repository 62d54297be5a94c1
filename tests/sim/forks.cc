#include "tests/sim/forks.h"

namespace disttrain::sim {
namespace {

constexpr char kAddress[] = "chief/copy";

// The second chief. It welcomes each task, and sends no further message.
class CopiedChief final : public Node {
 public:
  CopiedChief(World& world, Network& network, Welcome welcome)
      : Node(world, network, TaskId{Role::kChief, 0}, welcome.chief), welcome_(std::move(welcome)) {}

  void start() override {}
  void on_arrival(ConnectionId connection, const Hello& hello) override {
    if (!std::holds_alternative<TaskHello>(hello.who)) return close(connection);
    world_.count(Happening::kCopiedChiefMet);
    send(connection, wire::HelloAnswer(welcome_));
  }
  void on_message(ConnectionId, const Payload&) override {}
  void on_closed(ConnectionId) override {}

 private:
  const Welcome welcome_;
};

}  // namespace

void Forks::begin(Duration within, Cluster cluster) {
  cluster_ = std::move(cluster);
  if (random_.below(8) != 0) return;
  const Duration when(static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(within.count()))));
  world_.after(when, [this] {
    if (!is_over_) fork();
  });
}

void Forks::fork() {
  ChiefNode* const chief = cluster_.chief();
  if (chief == nullptr || cluster_.tasks.size() < 2) return;
  Welcome welcome = chief->make_welcome();
  welcome.chief = Incarnation(1'000'000 + random_.below(1'000'000));
  world_.tell("a second chief begins on a copy of the journal, with term " + std::to_string(welcome.term.value));
  network_.start(kAddress, std::make_unique<CopiedChief>(world_, network_, std::move(welcome)));
  network_.taken_over[chief->address()] = kAddress;
  // At least one task meets the second chief before it knows the first.
  cluster_.restart_task(cluster_.tasks[1 + random_.below(cluster_.tasks.size() - 1)], draw(1, 50));
  for (std::uint64_t cuts = random_.below(4); cuts > 0; --cuts) network_.cut_one();
  world_.after(draw(100, 3000), [this] { join(); });
}

// An operator has read in the log: "two chiefs run on copies of one journal; stop one of them, and restart the other".
void Forks::join() {
  if (network_.taken_over.empty()) return;
  world_.tell("the second chief is ended, and the first is restarted");
  network_.taken_over.clear();
  network_.crash(kAddress, false);
  cluster_.restart_task(cluster_.tasks.front(), draw(1, 100));
}

void Forks::end() {
  is_over_ = true;
  join();
}

}  // namespace disttrain::sim
