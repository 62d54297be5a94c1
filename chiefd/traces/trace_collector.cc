#include "chiefd/traces/trace_collector.h"

#include <algorithm>
#include <utility>

namespace disttrain::chiefd {

void TraceCollector::begin_anew() {
  traces_.clear();
  next_piece_.clear();
  events_ = 0;
  dropped_ = 0;
  ended_.reset();
}

void TraceCollector::watch(const RunningJob& job) {
  if (job.job != job_.job) {
    if (is_collecting(job_.job)) return;  // the trace of the job before is due soon after its end
    begin_anew();
    seen_.clear();
    written_ = Generation();
  } else if (job.generation != job_.generation) {
    begin_anew();
  }
  job_ = job;
  if (job.reached.value + 1 < job.steps[0]) seen_.clear();
  seen_.insert(job.members.begin(), job.members.end());
}

void TraceCollector::hear(Instant now, TaskId from, TraceEvents piece) {
  const bool is_wanted = job_.steps[1] != 0 && piece.job == job_.job && piece.generation == job_.generation;
  if (!is_wanted || piece.generation <= written_) return;
  // A task that sends its first piece again is another process of the same place.
  if (piece.piece == 0 && traces_.contains(from)) {
    events_ -= traces_[from].events.size();
    traces_.erase(from);
    next_piece_.erase(from);
  }
  TaskTrace& trace = traces_[from];
  trace.task = from;
  trace.clock = piece.clock;
  trace.dropped = piece.dropped;
  const bool is_next = next_piece_[from] == piece.piece;
  if (is_next) ++next_piece_[from];
  trace.is_whole = is_next && piece.last;
  if (ended_)
    deadline_ = std::min(now + kPatienceAtEnd, *ended_ + job_.patience);
  else if (events_ == 0)
    deadline_ = now + job_.patience;
  const std::size_t kept = std::min(piece.events.size(), kMaxEvents - events_);
  trace.events.insert(trace.events.end(), piece.events.begin(),
                      piece.events.begin() + static_cast<std::ptrdiff_t>(kept));
  events_ += kept;
  dropped_ += piece.events.size() - kept;
}

void TraceCollector::note(ChiefEvent event) {
  if (chief_.size() == kMaxChiefEvents) chief_.pop_front();
  chief_.push_back(std::move(event));
}

void TraceCollector::end(Instant now, JobId job) {
  if (job_.job != job || job_.steps[1] == 0 || ended_) return;
  const bool has_trace = written_ != Generation();
  if (events_ == 0 && (has_trace || job_.reached == Step())) return;
  ended_ = now;
  deadline_ = events_ == 0 ? now + kPatienceAtEnd : std::min(deadline_, now + kPatienceAtEnd);
}

bool TraceCollector::is_complete() const {
  const auto is_there = [this](TaskId task) {
    const auto trace = traces_.find(task);
    return trace != traces_.end() && trace->second.is_whole;
  };
  return std::all_of(job_.living.begin(), job_.living.end(), is_there) &&
         std::all_of(traces_.begin(), traces_.end(), [](const auto& entry) { return entry.second.is_whole; });
}

std::optional<TraceBook> TraceCollector::take(Instant now) {
  if (!is_collecting(job_.job) || (!is_complete() && now < deadline_)) return std::nullopt;
  written_ = job_.generation;
  return book();
}

TraceBook TraceCollector::book() {
  TraceBook book;
  book.job = job_.job;
  book.name = job_.name;
  book.mode = job_.mode;
  book.steps = job_.steps;
  book.folder = job_.folder;
  book.dropped = dropped_;
  for (const TaskId task : seen_)
    if (const auto trace = traces_.find(task); trace == traces_.end() || !trace->second.is_whole)
      book.missing.push_back(task);
  for (auto& [task, trace] : traces_) book.tasks.push_back(std::move(trace));
  book.chief.assign(chief_.begin(), chief_.end());
  begin_anew();
  return book;
}

}  // namespace disttrain::chiefd
