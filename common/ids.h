// The numbers of the protocol, each with one purpose ("Numbers" in ARCHITECTURE.md). Each has a type of its own, so
// that two of them are never mixed up unnoticed.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <ostream>
#include <string>

namespace disttrain {

// An integer with a name. Compared and printed; arithmetic goes through `value`.
template <typename Tag, typename Integer>
struct StrongId {
  Integer value = 0;

  constexpr StrongId() = default;
  constexpr explicit StrongId(Integer v) : value(v) {}
  auto operator<=>(const StrongId&) const = default;
  constexpr StrongId next() const { return StrongId(value + 1); }
  friend std::ostream& operator<<(std::ostream& out, StrongId id) { return out << id.value; }
};

// Given by the chief, durable, never reused; 0 is no job.
using JobId = StrongId<struct JobIdTag, std::uint32_t>;
// The chief's: grows with each start, and is durable before any task hears of it.
using Term = StrongId<struct TermTag, std::uint64_t>;
// A job's: grows when shard owners, layout or history change.
using Generation = StrongId<struct GenerationTag, std::uint64_t>;
// A job's: version of the list of workers, grows with each join and leave.
using RosterVersion = StrongId<struct RosterVersionTag, std::uint64_t>;
// Random 64 bits that a process draws at start; 0 is none.
using Incarnation = StrongId<struct IncarnationTag, std::uint64_t>;
// A shard of a job, 0 <= value < number of shards; shard 0 is the pacer.
using ShardId = StrongId<struct ShardIdTag, std::uint32_t>;
// Place in a roster, 0 <= value < members.
using Rank = StrongId<struct RankTag, std::uint32_t>;
// Number of updates applied: a shard's version; at the pacer, the global step. The first push makes 1.
using Step = StrongId<struct StepTag, std::uint64_t>;
// Frames of a channel, from 1, for the life of the worker's incarnation.
using Sequence = StrongId<struct SequenceTag, std::uint64_t>;
// Index into Layout::buckets.
using BucketId = StrongId<struct BucketIdTag, std::uint32_t>;
// A lease of training records; 0 is none.
using LeaseId = StrongId<struct LeaseIdTag, std::uint64_t>;
// Identity of a chief's journal, random. A task that meets another journal drops its job state.
using JournalId = StrongId<struct JournalIdTag, std::uint64_t>;
// Hash of a model spec and its placement.
using LayoutHash = StrongId<struct LayoutHashTag, std::uint64_t>;

enum class Role : std::uint8_t { kChief = 0, kPs = 1, kWorker = 2 };

// A place in the cluster: chief/0, ps/1, worker/2.
struct TaskId {
  Role role = Role::kChief;
  std::uint32_t index = 0;

  auto operator<=>(const TaskId&) const = default;
};

// "chief", "ps", "worker".
std::string to_string(Role role);
// "ps/1".
std::string to_string(TaskId task);
// The task with this name; none: not a task's name.
std::optional<TaskId> parse_task_id(const std::string& text);
inline std::ostream& operator<<(std::ostream& out, TaskId task) {
  return out << to_string(task);
}

// One process in its place. Another process in the same place has another incarnation.
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
