#include "chiefd/traces/trace_rows.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

namespace disttrain::chiefd {
namespace {

using Point = TraceFlow::Point;
// The most rows of one name. A channel has as many frames under way as the cluster has credits, and that are few.
constexpr std::size_t kMaxRowsOfAName = 64;
// A frame on its channel.
using FrameKey = std::tuple<Incarnation, ShardId, Sequence>;
// An update of a bucket in sync.
using SumKey = std::tuple<ShardId, BucketId, std::uint64_t>;
// The answers of a channel that bring one bucket.
using AnswerKey = std::tuple<Incarnation, ShardId, BucketId>;

// The row of an event. Spans of a row that isn't exclusive come from one thread, so they nest.
struct RowName {
  std::string name;
  bool is_exclusive = false;  // its spans may overlap, and are laid out in several rows of this name
};

RowName row_of(const TaskTrace& trace, const TraceEvent& event, bool is_staged) {
  const std::string shard = "shard " + std::to_string(event.shard.value);
  const std::string worker = "worker/" + std::to_string(event.worker);
  if (is_staged) return {"staged of " + worker + ", " + shard, true};
  switch (event.kind) {
    case TraceKind::kSend:
      return {"push to " + shard, true};
    case TraceKind::kAnswer:
      return {"parameters of " + shard, true};
    case TraceKind::kReceive:
      return {"frames of " + worker + ", " + shard, true};
    default:
      return {trace.task.role == Role::kWorker ? "step" : shard, false};
  }
}

FrameKey frame_of(const TraceEvent& event) {
  return {event.incarnation, event.shard, event.sequence};
}

// The events of all tasks by what they belong to.
struct Index {
  std::vector<Point> pushes;
  std::map<FrameKey, Point> handled;
  std::map<FrameKey, Point> applied;                // async, ssp
  std::map<SumKey, Point> summed;                   // sync
  std::map<AnswerKey, std::vector<Point>> answers;  // in the order of their arrival
};

class Placing {
 public:
  explicit Placing(const TraceBook& book) : book_(book), is_sync_(book.mode == Mode::kSync) {}

  TraceRows place() {
    for (const TaskTrace& trace : book_.tasks) add(trace);
    for (auto& [key, answers] : index_.answers)
      std::ranges::stable_sort(answers, {}, [this](const Point& point) { return at(point).begin; });
    rows_.pushes = index_.pushes.size();
    for (const Point& push : index_.pushes) add_flow(push);
    if (is_sync_) add_staged();
    for (std::size_t p = 0; p < rows_.processes.size(); ++p) lay_out(book_.tasks[p], rows_.processes[p]);
    return std::move(rows_);
  }

 private:
  PlacedEvent& at(const Point& point) { return rows_.processes[point.process].events[point.event]; }

  void add(const TaskTrace& trace) {
    const std::int64_t offset = trace.clock ? trace.clock->offset.count() : 0;
    TraceProcess process;
    process.name = to_string(trace.task);
    const std::size_t p = rows_.processes.size();
    for (const TraceEvent& event : trace.events) {
      const Point point{p, process.events.size()};
      process.events.push_back({.begin = event.begin.time_since_epoch().count() + offset,
                                .end = event.end.time_since_epoch().count() + offset,
                                .event = &event});
      if (event.kind == TraceKind::kSend) index_.pushes.push_back(point);
      if (event.kind == TraceKind::kHandle) index_.handled.emplace(frame_of(event), point);
      if (event.kind == TraceKind::kApply) index_.applied.emplace(frame_of(event), point);
      if (event.kind == TraceKind::kSum) index_.summed.emplace(SumKey{event.shard, event.bucket, event.step}, point);
      if (event.kind == TraceKind::kAnswer)
        index_.answers[{event.incarnation, event.shard, event.bucket}].push_back(point);
    }
    rows_.processes.push_back(std::move(process));
  }

  // The update with the gradients of this frame. In sync a frame that came after the commit of its step is in no sum.
  std::optional<Point> update_of(const TraceEvent& push) {
    if (!is_sync_) {
      const auto applied = index_.applied.find(frame_of(push));
      return applied == index_.applied.end() ? std::nullopt : std::optional(applied->second);
    }
    const auto handled = index_.handled.find(frame_of(push));
    const auto summed = index_.summed.find({push.shard, push.bucket, push.step});
    if (handled == index_.handled.end() || summed == index_.summed.end()) return std::nullopt;
    if (at(handled->second).begin > at(summed->second).begin) return std::nullopt;
    return summed->second;
  }

  // The first frame of parameters that brings the updated bucket.
  std::optional<Point> answer_of(const TraceEvent& push) {
    const auto answers = index_.answers.find({push.incarnation, push.shard, push.bucket});
    if (answers == index_.answers.end()) return std::nullopt;
    for (const Point& point : answers->second) {
      const TraceEvent& answer = *at(point).event;
      if (answer.sequence >= push.sequence && (!is_sync_ || answer.step >= push.step)) return point;
    }
    return std::nullopt;
  }

  void add_flow(const Point& push) {
    const std::optional<Point> update = update_of(*at(push).event);
    const std::optional<Point> answer = answer_of(*at(push).event);
    if (update && answer) rows_.flows.push_back({push, *update, *answer});
  }

  // The time in which a worker's whole push is staged: from the arrival of its last frame until the shard begins to sum
  // up the step. A span for each frame would overlap with those of all other buckets.
  void add_staged() {
    using PushKey = std::tuple<Incarnation, ShardId, std::uint64_t>;
    std::map<std::pair<ShardId, std::uint64_t>, std::int64_t> begun;  // by shard and step, when the first sum began
    for (const auto& [key, point] : index_.summed) {
      const PlacedEvent& sum = at(point);
      const auto [first, is_new] = begun.try_emplace({sum.event->shard, sum.event->step}, sum.begin);
      first->second = std::min(first->second, sum.begin);
    }
    for (TraceProcess& process : rows_.processes) {
      std::map<PushKey, std::size_t> last;  // the index of a push's last frame
      for (std::size_t i = 0; i < process.events.size(); ++i) {
        const TraceEvent& event = *process.events[i].event;
        if (event.kind == TraceKind::kReceive) last[{event.incarnation, event.shard, event.step}] = i;
      }
      for (const auto& [key, i] : last) {
        const PlacedEvent frame = process.events[i];
        const auto sum = begun.find({frame.event->shard, frame.event->step});
        if (sum == begun.end() || sum->second < frame.end) continue;
        process.events.push_back({.begin = frame.end, .end = sum->second, .event = frame.event, .is_staged = true});
      }
    }
  }

  // Gives each event its row. An exclusive span goes into the first row of its name that is free.
  void lay_out(const TaskTrace& trace, TraceProcess& process) {
    struct Lane {
      std::uint32_t row;
      std::int64_t free_at;
    };
    std::vector<std::size_t> order(process.events.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(order, {},
                             [&](std::size_t i) { return std::pair(process.events[i].begin, -process.events[i].end); });
    std::map<std::string, std::vector<Lane>> lanes;
    for (const std::size_t i : order) {
      PlacedEvent& placed = process.events[i];
      const auto [name, is_exclusive] = row_of(trace, *placed.event, placed.is_staged);
      std::vector<Lane>& of_name = lanes[name];
      auto lane = std::ranges::find_if(of_name, [&, exclusive = is_exclusive](const Lane& free) {
        return !exclusive || free.free_at <= placed.begin;
      });
      if (lane == of_name.end() && of_name.size() == kMaxRowsOfAName) lane = of_name.end() - 1;
      if (lane == of_name.end()) {
        of_name.push_back({static_cast<std::uint32_t>(process.rows.size()), 0});
        process.rows.push_back(name);
        lane = of_name.end() - 1;
      }
      placed.row = lane->row;
      lane->free_at = placed.end;
    }
  }

  const TraceBook& book_;
  const bool is_sync_;
  TraceRows rows_;
  Index index_;
};

}  // namespace

TraceRows place(const TraceBook& book) {
  return Placing(book).place();
}

}  // namespace disttrain::chiefd
