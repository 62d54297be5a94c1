// disttrain logs [JOB]: shows the log lines of all tasks, merged by time. The chief keeps the newest lines of each task
// in memory only. So a restarted chief has no lines from before, and lines that were on their way to a dying chief are
// lost.
#include <algorithm>
#include <asio/io_context.hpp>
#include <charconv>
#include <ctime>
#include <iostream>
#include <iterator>
#include <map>

#include "common/config/reader/schema.h"
#include "common/counted.h"
#include "common/daemon/clock.h"
#include "common/daemon/log/log.h"
#include "common/daemon/startup.h"
#include "tools/disttrain/follow/follow_job.h"
#include "tools/disttrain/follow/repeat_filter.h"
#include "tools/disttrain/interrupts.h"
#include "tools/disttrain/up/running_cluster.h"
#include "tools/disttrain/verbs.h"

namespace disttrain::cli {

namespace {

using namespace std::chrono_literals;

Result<TaskId> task_of(const std::string& text) {
  const std::optional<TaskId> task = parse_task_id(text);
  if (!task) return fail(ErrorCode::kUsage, "--task " + text + ": expected a task such as chief/0, ps/1 or worker/2");
  return *task;
}

// Converts the value of --since to Unix time in nanoseconds. "10m" means ten minutes ago. "2026-11-20T23:45:00" is a
// time in UTC, as in log lines. "" gives 0.
Result<std::int64_t> parse_since(const std::string& text) {
  if (text.empty()) return 0;
  if (const auto ago = config::parse_duration(text)) return daemon::wall_nanoseconds() - ago->count();
  for (const char* format : {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d"}) {
    std::tm utc{};
    const char* const end = strptime(text.c_str(), format, &utc);
    if (end != nullptr && *end == '\0') return std::int64_t{timegm(&utc)} * 1'000'000'000;
  }
  return fail(ErrorCode::kUsage,
              "--since " + text + ": expected an age such as 10m, or a time in UTC such as " + "2026-11-20T23:45:00");
}

Result<LogsRequest> make_request(const LogsOptions& options) {
  LogsRequest request;
  request.job = options.job;
  request.follow = options.follow;
  for (const std::string& text : options.tasks) {
    auto task = task_of(text);
    if (!task) return tl::unexpected<Error>(std::move(task.error()));
    request.tasks.push_back(*task);
  }
  auto since = parse_since(options.since);
  if (!since) return tl::unexpected<Error>(std::move(since.error()));
  request.since_wall_nanoseconds = *since;
  for (const daemon::Level level :
       {daemon::Level::kDebug, daemon::Level::kInfo, daemon::Level::kWarn, daemon::Level::kError})
    if (options.level == daemon::to_string(level)) request.level = static_cast<std::uint8_t>(level);
  return request;
}

// Removes lines that this process has printed before.
void drop_repeated(std::map<TaskId, RepeatFilter>& filters, std::vector<LogLine>& lines) {
  std::map<TaskId, std::vector<LogLine>> of_task;
  for (LogLine& line : lines) of_task[line.task].push_back(std::move(line));
  lines.clear();
  for (auto& [task, said] : of_task) {
    std::vector<std::string> texts;
    for (const LogLine& line : said) texts.push_back(std::to_string(line.wall_nanoseconds) + line.text);
    const std::size_t first = filters[task].first_new(std::move(texts));
    std::move(said.begin() + static_cast<std::ptrdiff_t>(first), said.end(), std::back_inserter(lines));
  }
}

void print(LogLines lines) {
  std::stable_sort(lines.lines.begin(), lines.lines.end(),
                   [](const LogLine& a, const LogLine& b) { return a.wall_nanoseconds < b.wall_nanoseconds; });
  for (const LogLine& line : lines.lines) std::cout << daemon::to_text(line) << '\n';
  if (lines.dropped > 0)
    std::cout << "(" << counted(lines.dropped, "line") << (lines.dropped == 1 ? " was" : " were") << " dropped)\n";
  std::cout << std::flush;
}

// Waits for the next lines.
Result<LogLines> next_lines(ChiefClient& client) {
  constexpr Duration kAnyLength = 24h * 365;  // long, because a quiet cluster may log nothing for days
  auto message = client.next(kAnyLength);
  if (!message) return tl::unexpected<Error>(std::move(message.error()));
  auto* more = std::get_if<LogLines>(&*message);
  return more != nullptr ? std::move(*more) : LogLines();
}

Status show(ChiefClient& client, const ChiefTarget& target, const LogsRequest& request) {
  std::map<TaskId, RepeatFilter> filters;
  const auto ask = [&client, &request] { return client.ask<LogLines>(request, kAnswerDeadline); };
  auto lines = ask();
  while (lines) {
    drop_repeated(filters, lines->lines);
    print(std::move(*lines));
    if (!request.follow || !std::cout) return {};
    lines = or_again(client, target, next_lines(client), ask);
  }
  return tl::unexpected<Error>(std::move(lines.error()));
}

}  // namespace

int logs(const LogsOptions& options) {
  const auto request = make_request(options);
  if (!request) return daemon::report("disttrain logs", request.error());
  const auto cluster = find_running_cluster(options.cluster);
  if (!cluster) return daemon::report("disttrain logs", cluster.error());
  asio::io_context loop;
  Interrupts interrupts(loop);
  ChiefClient client(loop, [&interrupts] { return interrupts.count() > 0; });
  Status shown = client.connect(cluster->target, cluster->dial);
  if (shown) shown = show(client, cluster->target, *request);
  if (interrupts.count() > 0) {
    std::cerr << "detached: nothing was stopped\n";
    return interrupts.exit_code();
  }
  if (!shown) return daemon::report("disttrain logs", shown.error());
  return 0;
}

}  // namespace disttrain::cli
