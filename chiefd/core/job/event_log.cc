#include "chiefd/core/job/event_log.h"

#include <utility>

namespace disttrain::chiefd {
namespace {

// The status keeps only this many warnings, because a job that runs for weeks may lose many workers. `disttrain events`
// shows all losses.
constexpr std::size_t kMaxWarnings = 100;

}  // namespace

void EventLog::tell(Turn& turn, const std::string& kind, std::uint8_t level, const std::string& text,
                    std::optional<TaskId> task, const std::string& cause) {
  const std::uint64_t step = reached().value;
  turn.persist(EventRecord{0, setup_.id, kind, task ? to_string(*task) : "", step, text, cause});
  turn.actions.push_back(Note{level, "job " + setup_.name() + " (" + std::to_string(setup_.id.value) + "): " + text,
                              kind, setup_.name(), step});
}

void EventLog::warn(std::string text) {
  if (warnings_.size() >= kMaxWarnings) warnings_.erase(warnings_.begin());
  warnings_.push_back(std::move(text));
}

}  // namespace disttrain::chiefd
