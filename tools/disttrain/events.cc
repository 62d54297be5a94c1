// disttrain events [JOB]: lists what happened to a job, and when. The chief keeps these events in its journal.
#include <algorithm>
#include <asio/io_context.hpp>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <iostream>
#include <vector>

#include "common/bounded_json.h"
#include "common/daemon/startup.h"
#include "common/printable.h"
#include "tools/disttrain/events.h"
#include "tools/disttrain/follow/follow_job.h"
#include "tools/disttrain/interrupts.h"
#include "tools/disttrain/json.h"
#include "tools/disttrain/up/running_cluster.h"
#include "tools/disttrain/verbs.h"

namespace disttrain::cli {

namespace {

using namespace std::chrono_literals;

// "2026-11-20 23:45:00.123", on this host's clock.
std::string local_time(double unix_seconds) {
  if (!std::isfinite(unix_seconds)) return "-";
  const auto milliseconds = static_cast<long long>(std::llround(unix_seconds * 1000));
  const auto whole = static_cast<std::time_t>(milliseconds / 1000);
  std::tm local{};
  localtime_r(&whole, &local);
  char text[40];
  const std::size_t length = std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &local);
  std::snprintf(text + length, sizeof(text) - length, ".%03lld", milliseconds % 1000);
  return text;
}

Result<Json> parse(const EventsAnswer& answer) {
  Json list = parse_bounded_json<Json>(answer.json);
  if (!list.is_array())
    return fail(ErrorCode::kSoftware, "the chief's events aren't a JSON list: " + answer.json.substr(0, 200));
  return list;
}

void print(const Json& list, const EventsOptions& options) {
  if (options.json && !options.follow) {
    std::cout << line_of(list) << '\n';
  } else {
    for (const Json& event : list) std::cout << (options.json ? line_of(event) : event_line(event)) << '\n';
  }
  std::cout << std::flush;
}

// Returns true if no more events can follow, because the job's final state is among them. With --all, events of other
// jobs can always follow.
bool is_over(const Json& list, const EventsOptions& options) {
  return !options.all && std::any_of(list.begin(), list.end(),
                                     [](const Json& event) { return is_final_state(text_of(event, "kind")); });
}

Result<Json> ask(ChiefClient& client, const EventsOptions& options) {
  const auto answer =
      client.ask<EventsAnswer>(EventsRequest{options.job, options.all, options.follow, 0}, kAnswerDeadline);
  return answer ? parse(*answer) : tl::unexpected<Error>(answer.error());
}

// Waits for the next events.
Result<Json> next_events(ChiefClient& client) {
  constexpr Duration kAnyLength = 24h * 365;  // long, because a healthy job may have no event for days
  const auto message = client.next(kAnyLength);
  if (!message) return tl::unexpected<Error>(message.error());
  const auto* more = std::get_if<EventsAnswer>(&*message);
  return more != nullptr ? parse(*more) : Json::array();
}

Status show(ChiefClient& client, const ChiefTarget& target, const EventsOptions& options) {
  RepeatFilter filter;
  auto list = ask(client, options);
  while (list) {
    const Json fresh = take_new(filter, *list);
    print(fresh, options);
    if (!options.follow || !std::cout || is_over(fresh, options)) return {};
    list = or_again(client, target, next_events(client), [&client, &options] { return ask(client, options); });
  }
  return tl::unexpected<Error>(list.error());
}

}  // namespace

std::string event_line(const Json& event) {
  constexpr std::size_t kTaskWidth = 9;
  std::string task = text_of(event, "task");
  if (task.empty()) task = "-";
  if (task.size() < kTaskWidth) task.resize(kTaskWidth, ' ');
  return local_time(number_of(event, "time")) + " " + task + " " + indented(unfolded(text_of(event, "text")));
}

Json take_new(RepeatFilter& filter, const Json& list) {
  std::vector<std::string> lines;
  for (const Json& event : list) lines.push_back(line_of(event));
  Json fresh = Json::array();
  for (std::size_t i = filter.first_new(std::move(lines)); i < list.size(); ++i) fresh.push_back(list[i]);
  return fresh;
}

int events(const EventsOptions& options) {
  const auto cluster = find_running_cluster(options.cluster, options.chief);
  if (!cluster) return daemon::report("disttrain events", cluster.error());
  asio::io_context loop;
  Interrupts interrupts(loop);
  ChiefClient client(loop, [&interrupts] { return interrupts.count() > 0; });
  Status shown = client.connect(cluster->target, cluster->dial);
  if (shown) shown = show(client, cluster->target, options);
  if (interrupts.count() > 0) {
    std::cerr << "detached: nothing was stopped\n";
    return interrupts.exit_code();
  }
  if (!shown) return daemon::report("disttrain events", shown.error());
  return 0;
}

}  // namespace disttrain::cli
