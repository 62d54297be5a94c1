// The file is JSON and not Perfetto's protobuf, because chrome://tracing and simple scripts read it too. An arrow needs
// no number on the wire: a push frame has the worker's incarnation, the shard and a sequence, and answers say which
// frame they acknowledge. In sync the update of a frame is the sum of its bucket and step.
#include "chiefd/traces/trace_json.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "chiefd/traces/trace_rows.h"

namespace disttrain::chiefd {
namespace {

using nlohmann::json;

constexpr int kChiefPid = 1;
constexpr std::size_t kBufferBytes = 64 * 1024;

double microseconds(std::int64_t nanoseconds) {
  return static_cast<double>(nanoseconds) / 1000.0;
}

std::string bucket_name(const TraceEvent& event) {
  return "bucket " + std::to_string(event.bucket.value);
}

std::string worker_name(const TraceEvent& event) {
  return "worker/" + std::to_string(event.worker);
}

std::string name_of(const TraceEvent& event) {
  switch (event.kind) {
    case TraceKind::kInput:
      return "input wait";
    case TraceKind::kPull:
      return "pull";
    case TraceKind::kCompute:
      return "compute";
    case TraceKind::kPush:
      return "push";
    case TraceKind::kWait:
      return "wait for the ps";
    case TraceKind::kEvaluate:
      return "evaluate";
    case TraceKind::kPart:
      return "part " + std::to_string(event.sequence.value);
    case TraceKind::kReady:
      return "gradients ready";
    case TraceKind::kSend:
      return "send " + bucket_name(event);
    case TraceKind::kAnswer:
      return "parameters of " + bucket_name(event);
    case TraceKind::kReceive:
      return "receive " + bucket_name(event);
    case TraceKind::kHandle:
      return "frame of " + worker_name(event);
    case TraceKind::kApply:
      return "apply " + bucket_name(event);
    case TraceKind::kSum:
      return "sum and apply " + bucket_name(event);
    case TraceKind::kPrepare:
      return "sum and norms";
    case TraceKind::kReply:
      return "answer " + worker_name(event);
    case TraceKind::kStaged:
      return "report of another shard";
    case TraceKind::kCommit:
      return "commit";
    case TraceKind::kCommitted:
      return "step " + std::to_string(event.step) + " done";
    case TraceKind::kCut:
      return "checkpoint copy";
  }
  return "";
}

const char* category_of(TraceKind kind) {
  switch (kind) {
    case TraceKind::kSend:
    case TraceKind::kAnswer:
    case TraceKind::kReceive:
    case TraceKind::kReply:
      return "network";
    case TraceKind::kCompute:
    case TraceKind::kPart:
    case TraceKind::kReady:
    case TraceKind::kEvaluate:
      return "compute";
    case TraceKind::kApply:
    case TraceKind::kSum:
    case TraceKind::kPrepare:
      return "apply";
    case TraceKind::kHandle:
    case TraceKind::kStaged:
    case TraceKind::kCommit:
    case TraceKind::kCommitted:
      return "shard";
    case TraceKind::kCut:
      return "checkpoint";
    default:
      return "wait";
  }
}

bool has_frame(TraceKind kind) {
  return kind == TraceKind::kSend || kind == TraceKind::kAnswer || kind == TraceKind::kReceive ||
         kind == TraceKind::kHandle || kind == TraceKind::kApply || kind == TraceKind::kReply;
}

// In async and ssp the steps of these events are the worker's own steps, see TraceEvent::step.
bool is_own_step(TraceKind kind, Mode mode) {
  const bool is_global = kind == TraceKind::kAnswer || kind == TraceKind::kReply || kind == TraceKind::kCommitted ||
                         kind == TraceKind::kCut || kind == TraceKind::kCommit;
  return mode != Mode::kSync && !is_global;
}

json arguments_of(const TraceEvent& event, Mode mode) {
  json args = json::object();
  if (event.step != 0) args[is_own_step(event.kind, mode) ? "worker_step" : "step"] = event.step;
  if (has_frame(event.kind)) {
    const bool acknowledges = event.kind == TraceKind::kAnswer || event.kind == TraceKind::kReply;
    args["worker"] = worker_name(event);
    args["shard"] = event.shard.value;
    args["bucket"] = event.bucket.value;
    args["bytes"] = event.bytes;
    args[acknowledges ? "acknowledged" : "frame"] = event.sequence.value;
  } else if (event.kind == TraceKind::kSum) {
    args["bucket"] = event.bucket.value;
  } else if (event.kind == TraceKind::kReady) {
    args["bytes"] = event.bytes;
  }
  return args;
}

class Writer {
 public:
  Writer(const TraceBook& book, const TraceSink& sink) : book_(book), sink_(sink), rows_(place(book)) {
    origin_ = std::numeric_limits<std::int64_t>::max();
    std::int64_t last = 0;
    for (const TraceProcess& process : rows_.processes)
      for (const PlacedEvent& placed : process.events) {
        origin_ = std::min(origin_, placed.begin);
        last = std::max(last, placed.end);
      }
    if (origin_ > last) origin_ = last;
    for (const ChiefEvent& event : book.chief)
      if (event.end.time_since_epoch().count() >= origin_ && event.begin.time_since_epoch().count() <= last)
        chief_.push_back(&event);
    for (const ChiefEvent* event : chief_) origin_ = std::min(origin_, event->begin.time_since_epoch().count());
  }

  Status write() {
    text_ = "{\"displayTimeUnit\":\"ms\",\"otherData\":" + other_data().dump() + ",\n\"traceEvents\":[\n";
    write_chief();
    for (std::size_t p = 0; p < rows_.processes.size(); ++p) write_process(p);
    for (std::size_t i = 0; i < rows_.flows.size(); ++i) write_flow(rows_.flows[i]);
    text_ += "\n]}\n";
    flush();
    return failed_;
  }

 private:
  static int pid_of(std::size_t process) { return kChiefPid + 1 + static_cast<int>(process); }

  json other_data() const {
    json clocks = json::array({{{"task", "chief/0"}, {"offset_us", 0.0}, {"uncertainty_us", 0.0}}});
    json dropped = json::object();
    for (const TaskTrace& trace : book_.tasks) {
      const auto number = [&](Duration part) { return trace.clock ? json(microseconds(part.count())) : json(nullptr); };
      clocks.push_back({{"task", to_string(trace.task)},
                        {"offset_us", number(trace.clock.value_or(ClockOffset()).offset)},
                        {"uncertainty_us", number(trace.clock.value_or(ClockOffset()).uncertainty)}});
      if (trace.dropped > 0) dropped[to_string(trace.task)] = trace.dropped;
    }
    if (book_.dropped > 0) dropped["chief/0"] = book_.dropped;
    json missing = json::array();
    for (const TaskId task : book_.missing) missing.push_back(to_string(task));
    const char* const modes[] = {"async", "sync", "ssp"};
    return {{"program", "disttrain"},       {"job", book_.name},
            {"id", book_.job.value},        {"mode", modes[static_cast<std::size_t>(book_.mode)]},
            {"profile_steps", book_.steps}, {"clocks", clocks},
            {"dropped", dropped},           {"missing", missing},
            {"frames", rows_.pushes},       {"flows", rows_.flows.size()}};
  }

  void write_name(const char* what, int pid, int tid, const std::string& name) {
    emit({{"ph", "M"}, {"name", what}, {"pid", pid}, {"tid", tid}, {"args", {{"name", name}}}});
  }
  void write_order(const char* what, int pid, int tid) {
    emit({{"ph", "M"}, {"name", what}, {"pid", pid}, {"tid", tid}, {"args", {{"sort_index", tid != 0 ? tid : pid}}}});
  }

  void write_chief() {
    write_name("process_name", kChiefPid, 0, "chief/0");
    write_order("process_sort_index", kChiefPid, 0);
    write_name("thread_name", kChiefPid, 1, "decisions");
    write_name("thread_name", kChiefPid, 2, "checkpoints");
    for (const ChiefEvent* event : chief_) {
      const std::int64_t begin = event->begin.time_since_epoch().count();
      const std::int64_t end = event->end.time_since_epoch().count();
      json line = {{"name", event->name},
                   {"cat", "chief"},
                   {"ts", microseconds(begin - origin_)},
                   {"pid", kChiefPid},
                   {"args", {{"step", event->step}}}};
      if (!event->text.empty()) line["args"]["text"] = event->text;
      if (begin == end) {
        line.update({{"ph", "i"}, {"s", "p"}, {"tid", 1}});
      } else {
        line.update({{"ph", "X"}, {"dur", microseconds(end - begin)}, {"tid", 2}});
      }
      emit(line);
    }
  }

  void write_process(std::size_t p) {
    const TraceProcess& process = rows_.processes[p];
    const int pid = pid_of(p);
    write_name("process_name", pid, 0, process.name);
    write_order("process_sort_index", pid, 0);
    for (std::size_t row = 0; row < process.rows.size(); ++row) {
      write_name("thread_name", pid, static_cast<int>(row) + 1, process.rows[row]);
      write_order("thread_sort_index", pid, static_cast<int>(row) + 1);
    }
    for (const PlacedEvent& placed : process.events) {
      const TraceEvent& event = *placed.event;
      const bool is_moment = event.kind == TraceKind::kReady || event.kind == TraceKind::kCommitted;
      json line = {{"name", placed.is_staged ? "staged step " + std::to_string(event.step) : name_of(event)},
                   {"cat", placed.is_staged ? "queue" : category_of(event.kind)},
                   {"ph", is_moment ? "i" : "X"},
                   {"ts", microseconds(placed.begin - origin_)},
                   {"pid", pid},
                   {"tid", placed.row + 1},
                   {"args", arguments_of(event, book_.mode)}};
      if (is_moment)
        line["s"] = "t";
      else
        line["dur"] = microseconds(placed.end - placed.begin);
      emit(line);
    }
  }

  void write_flow(const TraceFlow& flow) {
    const TraceEvent& push = *rows_.processes[flow.push.process].events[flow.push.event].event;
    const std::string id = std::to_string(push.incarnation.value) + "/" + std::to_string(push.shard.value) + "/" +
                           std::to_string(push.sequence.value);
    const auto point = [&](const char* phase, const TraceFlow::Point& where) {
      const PlacedEvent& placed = rows_.processes[where.process].events[where.event];
      json line = {{"ph", phase},
                   {"cat", "frame"},
                   {"name", "frame"},
                   {"id", id},
                   {"ts", microseconds(placed.begin - origin_)},
                   {"pid", pid_of(where.process)},
                   {"tid", placed.row + 1}};
      if (*phase != 's') line["bp"] = "e";
      emit(line);
    };
    point("s", flow.push);
    point("t", flow.update);
    point("f", flow.answer);
  }

  void emit(const json& line) {
    if (!failed_) return;
    if (!is_first_) text_ += ",\n";
    is_first_ = false;
    text_ += line.dump(-1, ' ', false, json::error_handler_t::replace);
    if (text_.size() >= kBufferBytes) flush();
  }
  void flush() {
    if (failed_) failed_ = sink_(text_);
    text_.clear();
  }

  const TraceBook& book_;
  const TraceSink& sink_;
  const TraceRows rows_;
  std::vector<const ChiefEvent*> chief_;
  std::int64_t origin_ = 0;
  std::string text_;
  bool is_first_ = true;
  Status failed_;
};

}  // namespace

Status write_trace(const TraceBook& book, const TraceSink& sink) {
  return Writer(book, sink).write();
}

}  // namespace disttrain::chiefd
