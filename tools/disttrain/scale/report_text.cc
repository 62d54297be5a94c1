#include "tools/disttrain/scale/report_text.h"

#include <algorithm>
#include <cstdio>
#include <ostream>
#include <string>

#include "common/format_duration.h"
#include "tools/disttrain/follow/progress.h"
#include "tools/disttrain/table.h"
#include "tools/disttrain/units.h"

namespace disttrain::cli {
namespace {

using scale::Carried;
using scale::HostLoad;
using scale::RunOptions;
using scale::RunReport;

// The load of one kind of tasks in one step of each worker.
struct RoleLoad {
  double sent_bytes = 0.0;
  double received_bytes = 0.0;
  double sent_messages = 0.0;
  double received_messages = 0.0;
};

RoleLoad per_step(const Carried& sent, const Carried& received, double count) {
  return {static_cast<double>(sent.bytes) / count, static_cast<double>(received.bytes) / count,
          static_cast<double>(sent.messages) / count, static_cast<double>(received.messages) / count};
}

RoleLoad mean_of(const RunReport& report, Role role) {
  Carried sent;
  Carried received;
  std::size_t tasks = 0;
  for (const HostLoad& load : report.loads) {
    if (load.task.role != role) continue;
    sent += load.total_sent();
    received += load.total_received();
    ++tasks;
  }
  return per_step(sent, received, static_cast<double>(report.steps * std::max<std::size_t>(1, tasks)));
}

// The load of the task that sends and receives most.
RoleLoad most_of(const RunReport& report, Role role) {
  const HostLoad* most = nullptr;
  const auto bytes = [](const HostLoad& load) { return load.total_sent().bytes + load.total_received().bytes; };
  for (const HostLoad& load : report.loads)
    if (load.task.role == role && (most == nullptr || bytes(load) > bytes(*most))) most = &load;
  if (most == nullptr) return {};
  return per_step(most->total_sent(), most->total_received(), static_cast<double>(report.steps));
}

double per_second(double per_step, const RunReport& report) {
  const double seconds = to_seconds(report.measured);
  return seconds > 0.0 ? per_step * static_cast<double>(report.steps) / seconds : 0.0;
}

double ratio_of(const RunReport& report) {
  return report.bound > Duration::zero() ? to_seconds(report.step_median) / to_seconds(report.bound) : 0.0;
}

const char* name_of(Mode mode) {
  return mode == Mode::kSync ? "sync" : mode == Mode::kSsp ? "ssp" : "async";
}

Json load_json(const RoleLoad& load) {
  return {{"sent_bytes", load.sent_bytes},
          {"received_bytes", load.received_bytes},
          {"sent_messages", load.sent_messages},
          {"received_messages", load.received_messages}};
}

Json spent_json(const scale::Spent& spent) {
  return {{"events", spent.events}, {"seconds", to_seconds(spent.time)}};
}

std::string number_text(const char* format, double number) {
  char text[64];
  std::snprintf(text, sizeof(text), format, number);
  return text;
}

std::string bits_text(double bytes_per_second) {
  const double bits = bytes_per_second * 8;
  if (bits >= 1e9) return number_text("%.4g Gbit/s", bits / 1e9);
  return number_text("%.4g Mbit/s", bits / 1e6);
}

std::string percent_text(double share) {
  return number_text("%.1f %%", share * 100);
}

std::string size_text(double bytes) {
  return bytes_text(static_cast<std::uint64_t>(bytes));
}

std::string time_of(const scale::Spent& spent) {
  if (spent.events == 0) return "-";
  return number_text("%.2f us", to_seconds(spent.time) * 1e6 / static_cast<double>(spent.events));
}

void add_core(Table& table, const char* name, const scale::Spent& spent, const RunReport& report, double tasks) {
  const double steps = static_cast<double>(report.steps);
  table.add({name, with_commas(static_cast<double>(spent.events) / steps / tasks), time_of(spent),
             seconds_text(to_seconds(spent.time) / steps / tasks),
             percent_text(to_seconds(spent.time) / tasks / std::max(1e-9, to_seconds(report.measured)))});
}

}  // namespace

Json to_json(const RunOptions& options, const RunReport& report) {
  Json links;
  for (const Role role : {Role::kWorker, Role::kPs, Role::kChief})
    links[to_string(role)] = {{"mean", load_json(mean_of(report, role))}, {"most", load_json(most_of(report, role))}};
  const RoleLoad chief = mean_of(report, Role::kChief);
  return {{"workers", options.workers},
          {"ps", options.ps_threads.size()},
          {"mode", name_of(options.job.train.mode)},
          {"bandwidth", options.speed.bytes_per_second * 8},
          {"latency", to_seconds(options.speed.latency)},
          {"compute", to_seconds(options.compute)},
          {"records", options.records},
          {"shards", report.shards},
          {"buckets", report.buckets},
          {"parameter_bytes", report.parameter_bytes},
          {"steps", report.steps},
          {"global_steps", report.global_steps},
          {"step", {{"median", to_seconds(report.step_median)}, {"p90", to_seconds(report.step_p90)}}},
          {"bound",
           {{"step", to_seconds(report.bound)},
            {"worker", to_seconds(report.worker_bound)},
            {"ps", to_seconds(report.ps_bound)}}},
          {"ratio", ratio_of(report)},
          {"parts",
           {{"compute", to_seconds(report.parts.computing)},
            {"send", to_seconds(report.parts.sending)},
            {"others", to_seconds(report.parts.others)},
            {"receive", to_seconds(report.parts.receiving)}}},
          {"busiest",
           {{"task", to_string(report.loads.at(report.busiest).task)},
            {"direction", report.is_busiest_sending ? "send" : "receive"},
            {"share", report.busiest_share}}},
          {"links", links},
          {"chief",
           {{"messages_per_second", per_second(chief.sent_messages + chief.received_messages, report)},
            {"share", report.chief_share}}},
          {"cores",
           {{"chief", spent_json(report.cores.chief_core)},
            {"chief_codec", spent_json(report.cores.chief_codec)},
            {"ps", spent_json(report.cores.ps_cores)},
            {"worker", spent_json(report.cores.worker_cores)}}},
          {"startup", to_seconds(report.startup)},
          {"measured", to_seconds(report.measured)},
          {"events", report.events}};
}

void print_step(std::ostream& out, const RunOptions& options, const RunReport& report) {
  out << "a step takes " << seconds_text(to_seconds(report.step_median)) << " (p90 "
      << seconds_text(to_seconds(report.step_p90)) << "), " << number_text("%.2f", ratio_of(report))
      << " times the bound of " << seconds_text(to_seconds(report.bound)) << '\n'
      << "the bound: a worker alone would need " << seconds_text(to_seconds(report.worker_bound))
      << ", and the card of the busiest ps allows " << seconds_text(to_seconds(report.ps_bound)) << '\n';
  if (options.job.train.pipeline == 0)
    out << "a worker computes for " << seconds_text(to_seconds(report.parts.computing)) << ", sends its gradients for "
        << seconds_text(to_seconds(report.parts.sending)) << ", waits for other workers for "
        << seconds_text(to_seconds(report.parts.others)) << ", and receives parameters for "
        << seconds_text(to_seconds(report.parts.receiving)) << '\n';
  out << "the busiest card: " << to_string(report.loads.at(report.busiest).task)
      << (report.is_busiest_sending ? " sends " : " receives ") << percent_text(report.busiest_share)
      << " of the time\n";
}

void print(std::ostream& out, const RunOptions& options, const RunReport& report) {
  out << options.workers << (options.workers == 1 ? " worker, " : " workers, ") << options.ps_threads.size() << " ps, "
      << name_of(options.job.train.mode) << ", " << bytes_text(report.parameter_bytes) << " of parameters in "
      << report.buckets << (report.buckets == 1 ? " bucket on " : " buckets on ") << report.shards
      << (report.shards == 1 ? " shard, " : " shards, ") << bits_text(options.speed.bytes_per_second) << ", "
      << seconds_text(to_seconds(options.speed.latency)) << "\n\n";
  print_step(out, options, report);
  out << '\n';
  Table links({"EACH STEP", "SENT", "RECEIVED", "MESSAGES OUT", "IN"});
  const auto add = [&links](const std::string& name, const RoleLoad& load) {
    links.add({name, size_text(load.sent_bytes), size_text(load.received_bytes),
               number_text("%.1f", load.sent_messages), number_text("%.1f", load.received_messages)});
  };
  add("a worker", mean_of(report, Role::kWorker));
  add("a ps", mean_of(report, Role::kPs));
  add("the busiest ps", most_of(report, Role::kPs));
  add("the chief", mean_of(report, Role::kChief));
  out << links.text() << '\n';
  Table cores({"CORE, ON THIS MACHINE", "EVENTS PER STEP", "EACH", "TIME PER STEP", "OF ONE CPU"});
  add_core(cores, "the chief", report.cores.chief_core, report, 1.0);
  add_core(cores, "the chief's codec", report.cores.chief_codec, report, 1.0);
  add_core(cores, "a ps", report.cores.ps_cores, report, static_cast<double>(options.ps_threads.size()));
  add_core(cores, "a worker", report.cores.worker_cores, report, options.workers);
  const RoleLoad chief = mean_of(report, Role::kChief);
  out << cores.text() << '\n'
      << "the chief handles " << with_commas(per_second(chief.sent_messages + chief.received_messages, report))
      << " messages per second, for " << percent_text(report.chief_share) << " of one CPU\n"
      << "the first step was done " << seconds_text(to_seconds(report.startup)) << " after the tasks began to start\n";
}

}  // namespace disttrain::cli
