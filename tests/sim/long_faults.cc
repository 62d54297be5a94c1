#include "tests/sim/long_faults.h"

#include <algorithm>

#include "tests/sim/chief_node.h"

namespace disttrain::sim {

using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr Duration kShortest = milliseconds(1200);
constexpr Duration kLongest = seconds(60);
// Longer than every time limit of work in a job's folder.
constexpr Duration kForEver = seconds(200);

std::string seconds_of(Duration duration) {
  return std::to_string(std::chrono::duration_cast<milliseconds>(duration).count()) + " ms";
}

}  // namespace

LongFaults::LongFaults(std::uint64_t seed, World& world, Network& network, Storage& storage, ChiefDisk& journal)
    : world_(world), network_(network), storage_(storage), journal_(journal), random_(seed, stream_of("long faults")) {
  if (random_.below(4) != 0) return;
  for (std::uint64_t times = between(1, 2); times > 0; --times)
    kinds_.push_back(static_cast<Kind>(random_.below(static_cast<std::uint64_t>(Kind::kKinds))));
}

bool LongFaults::wants_long_job() const {
  return std::any_of(kinds_.begin(), kinds_.end(), [](Kind kind) { return kind >= Kind::kBeside; });
}

void LongFaults::begin(Duration within, Cluster cluster) {
  cluster_ = std::move(cluster);
  for (const Kind kind : kinds_) {
    // Most jobs train only for a short part of a run. So with a probability of 3/4, a fault waits until the job trains.
    if (random_.below(4) != 0)
      later(within / 2, [this, kind] { once_it_trains([this, kind] { one(kind); }); });
    else
      later(within, [this, kind] { one(kind); });
  }
}

void LongFaults::later(Duration within, std::function<void()> work) {
  const Duration when(static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(within.count()))));
  world_.after(when, [this, work = std::move(work)] {
    if (!is_over_) work();
  });
}

void LongFaults::once_it_trains(std::function<void()> work) {
  if (is_over_) return;
  if (cluster_.trains()) return later(milliseconds(300), std::move(work));
  world_.after(milliseconds(20), [this, work = std::move(work)]() mutable { once_it_trains(std::move(work)); });
}

// Draws a duration of at most 60 s. The range from 1.2 s to 2.4 s is doubled 0 to 5 times, so short durations are as
// likely as long ones.
Duration LongFaults::how_long() {
  Duration most = kShortest;
  for (std::uint64_t doublings = random_.below(6); doublings > 0; --doublings) most *= 2;
  const auto least = static_cast<std::uint64_t>(most.count());
  return std::min(kLongest, Duration(static_cast<std::int64_t>(between(least, 2 * least))));
}

void LongFaults::lasts(Duration duration) {
  over_at_ = std::max(over_at_, world_.now() + duration);
}

TaskId LongFaults::some(Role role) {
  std::vector<TaskId> all = cluster_.tasks;
  std::erase_if(all, [role](TaskId task) { return task.role != role; });
  return all[random_.below(all.size())];
}

void LongFaults::part(Happening what, const std::string& words, const std::vector<std::pair<TaskId, TaskId>>& pairs,
                      bool both_ways) {
  if (pairs.empty()) return;
  const Duration duration = how_long();
  world_.tell(words + " for " + seconds_of(duration));
  world_.count(what);
  Network::Links links;
  for (const auto& [one, other] : pairs) {
    links.emplace_back(cluster_.address(one), cluster_.address(other));
    if (both_ways) links.emplace_back(cluster_.address(other), cluster_.address(one));
  }
  network_.part(links, duration);
  lasts(duration);
}

void LongFaults::one(Kind kind) {
  const TaskId chief{Role::kChief, 0};
  const TaskId task = cluster_.tasks[random_.below(cluster_.tasks.size())];
  const TaskId ps = some(Role::kPs);
  const TaskId worker = some(Role::kWorker);
  const bool both = random_.below(3) != 0;
  std::vector<std::pair<TaskId, TaskId>> pairs;
  switch (kind) {
    case Kind::kPause: {
      if (!network_.is_alive(cluster_.address(task))) return;
      const Duration duration = how_long();
      world_.tell(to_string(task) + " is paused for " + seconds_of(duration));
      world_.count(Happening::kLongPause);
      network_.pause(cluster_.address(task));
      lasts(duration);
      return world_.after(duration, [this, address = cluster_.address(task)] { network_.resume(address); });
    }
    case Kind::kIsolation:
      for (const TaskId other : cluster_.tasks)
        if (other != task) pairs.emplace_back(task, other);
      return part(Happening::kLongIsolation, to_string(task) + " can't reach any task", pairs, true);
    case Kind::kOneWay: {
      const bool hears = random_.below(2) == 0;
      for (const TaskId other : cluster_.tasks) {
        if (other == task) continue;
        if (hears)
          pairs.emplace_back(task, other);
        else
          pairs.emplace_back(other, task);
      }
      return part(Happening::kLongOneWay, (hears ? "nothing arrives from " : "nothing arrives at ") + to_string(task),
                  pairs, false);
    }
    case Kind::kSplit: {
      std::vector<TaskId> sides[2];
      for (const TaskId one : cluster_.tasks) sides[random_.below(2)].push_back(one);
      for (const TaskId one : sides[0])
        for (const TaskId other : sides[1]) pairs.emplace_back(one, other);
      std::string words = "the network splits:";
      for (const TaskId one : sides[0]) words += " " + to_string(one);
      return part(Happening::kLongSplit, words + " can't reach the others", pairs, true);
    }
    case Kind::kChiefFromPs:
      return part(Happening::kLongChiefFromPs, "the chief and " + to_string(ps) + " can't reach each other",
                  {{chief, ps}}, true);
    case Kind::kChiefFromWorker:
      return part(Happening::kLongChiefFromWorker, "the chief and " + to_string(worker) + " can't reach each other",
                  {{chief, worker}}, true);
    case Kind::kPsFromPs:
      for (const TaskId other : cluster_.tasks)
        if (other.role == Role::kPs && other != ps) pairs.emplace_back(ps, other);
      return part(Happening::kLongPsFromPs, to_string(ps) + " can't reach the other ps tasks", pairs, both);
    case Kind::kWorkerFromPs:
      return part(Happening::kLongWorkerFromPs, to_string(worker) + " can't reach " + to_string(ps), {{worker, ps}},
                  both);
    case Kind::kHalfFromPs:
      for (const TaskId other : cluster_.tasks)
        if (other.role == Role::kWorker && other.index % 2 == worker.index % 2) pairs.emplace_back(other, ps);
      return part(Happening::kLongHalfFromPs, "half of the workers can't reach " + to_string(ps), pairs, both);
    case Kind::kBeside:
    case Kind::kBesideToo:
      if (!network_.is_alive(cluster_.address(ps))) return;
      // The chief loses this ps and some workers at once. These workers still train with the ps.
      pairs.emplace_back(chief, ps);
      for (const TaskId other : cluster_.tasks)
        if (other == worker || (other.role == Role::kWorker && random_.below(2) == 0)) pairs.emplace_back(chief, other);
      part(Happening::kPsBesideSuccessor,
           "the chief can't reach " + to_string(ps) + " and " + std::to_string(pairs.size() - 1) + " workers", pairs,
           true);
      return later(seconds(10), [this, ps] { cluster_.start_beside(ps); });
    case Kind::kDisk: {
      const Duration duration = random_.below(4) == 0 ? kForEver : how_long();
      storage_.hang(world_.now() + duration);
      return lasts(duration);
    }
    case Kind::kJournal: {
      const Duration duration = how_long();
      world_.tell("the chief's own disk hangs for " + seconds_of(duration));
      world_.count(Happening::kJournalHung);
      journal_.hung_until = std::max(journal_.hung_until, world_.now() + duration);
      return lasts(duration);
    }
    case Kind::kKinds:
      return;
  }
}

}  // namespace disttrain::sim
