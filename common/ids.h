// The numbers of the protocol ("Numbers" in ARCHITECTURE.md). Each has its own type, so that the compiler refuses to
// mix two of them.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <ostream>
#include <string>

namespace disttrain {

// An integer with a type of its own. It can be compared and printed. For arithmetic, use `value`.
template <typename Tag, typename Integer>
struct StrongId {
  Integer value = 0;

  constexpr StrongId() = default;
  constexpr explicit StrongId(Integer v) : value(v) {}
  auto operator<=>(const StrongId&) const = default;
  constexpr StrongId next() const { return StrongId(value + 1); }
  friend std::ostream& operator<<(std::ostream& out, StrongId id) { return out << id.value; }
};

// The number of a job. The chief assigns it, writes it to its journal, and never reuses it. 0 means no job.
using JobId = StrongId<struct JobIdTag, std::uint32_t>;
// The term of a chief. It grows with each start of the chief, and is in the journal before any task learns it.
using Term = StrongId<struct TermTag, std::uint64_t>;
// The generation of a job. It grows each time the job's shards are created: at the beginning and at each rollback.
using Generation = StrongId<struct GenerationTag, std::uint64_t>;
// The version of a job's roster (its list of workers). It grows when a worker joins or leaves.
using RosterVersion = StrongId<struct RosterVersionTag, std::uint64_t>;
// 64 random bits that a process draws when it starts, and again when it rejoins after a removal. 0 means none.
using Incarnation = StrongId<struct IncarnationTag, std::uint64_t>;
// The number of a shard in its job, from 0. Shard 0 is the pacer.
using ShardId = StrongId<struct ShardIdTag, std::uint32_t>;
// The place of a worker in a roster, from 0.
using Rank = StrongId<struct RankTag, std::uint32_t>;
// A number of applied updates. The version of a shard is such a number; the pacer's version is the global step. After
// the first update it is 1.
using Step = StrongId<struct StepTag, std::uint64_t>;
// The number of a frame on a channel. It counts from 1 and continues as long as the worker's incarnation lives.
using Sequence = StrongId<struct SequenceTag, std::uint64_t>;
// An index into Layout::buckets.
using BucketId = StrongId<struct BucketIdTag, std::uint32_t>;
// The number of a lease of training records. 0 means none.
using LeaseId = StrongId<struct LeaseIdTag, std::uint64_t>;
// A random number that identifies a chief's journal. A task that connects to a chief with another journal drops its
// job.
using JournalId = StrongId<struct JournalIdTag, std::uint64_t>;
// A hash of a model and of the placement of its variables.
using LayoutHash = StrongId<struct LayoutHashTag, std::uint64_t>;

enum class Role : std::uint8_t { kChief = 0, kPs = 1, kWorker = 2, kEvaluator = 3 };

// A place for a process in the cluster, such as chief/0, ps/1, worker/2 or evaluator/0.
struct TaskId {
  Role role = Role::kChief;
  std::uint32_t index = 0;

  auto operator<=>(const TaskId&) const = default;
};

// "chief", "ps", "worker", "evaluator".
std::string to_string(Role role);
// "ps/1".
std::string to_string(TaskId task);
// Returns the task with this name, or none if the text isn't a task's name.
std::optional<TaskId> parse_task_id(const std::string& text);
inline std::ostream& operator<<(std::ostream& out, TaskId task) {
  return out << to_string(task);
}

// A process of a task. A later process of the same task has another incarnation.
struct Member {
  TaskId task;
  Incarnation incarnation;

  auto operator<=>(const Member&) const = default;
};

}  // namespace disttrain

template <typename Tag, typename Integer>
struct std::hash<disttrain::StrongId<Tag, Integer>> {
  std::size_t operator()(disttrain::StrongId<Tag, Integer> id) const { return std::hash<Integer>{}(id.value); }
};
