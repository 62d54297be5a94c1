// disttrain status [JOB]: shows a job and its tasks, once or, with --watch, again and again until the job ends.
#include <unistd.h>

#include <asio/io_context.hpp>
#include <cmath>
#include <iostream>

#include "common/daemon/startup.h"
#include "common/printable.h"
#include "tools/disttrain/follow/follow_job.h"
#include "tools/disttrain/follow/progress.h"
#include "tools/disttrain/follow/summary.h"
#include "tools/disttrain/interrupts.h"
#include "tools/disttrain/printable_output.h"
#include "tools/disttrain/table.h"
#include "tools/disttrain/units.h"
#include "tools/disttrain/up/running_cluster.h"
#include "tools/disttrain/verbs.h"

namespace disttrain::cli {

namespace {

using namespace std::chrono_literals;

constexpr Duration kRefresh = 1s;

void print_jobs(const Json& all) {
  Table table({"ID", "JOB", "STATE", "STEP", "EXAMPLES/S", "LOSS"});
  for (const Json& job : list_of(all, "jobs")) {
    const double loss = number_of(job, "loss");
    table.add({with_commas(number_of(job, "id")), text_of(job, "job"), text_of(job, "state"),
               with_commas(number_of(job, "global_step")), with_commas(number_of(job, "examples_per_second")),
               std::isfinite(loss) ? std::to_string(loss) : "-"});
  }
  std::cout << table.text();
}

void print_tasks(const Json& status) {
  // The table fits into 80 columns, except for long reasons. So it lacks pid and address, which --json prints.
  Table table({"TASK", "STATE", "STEP", "EXAMPLES/S", "LOSS", "LAG", "PHASE", "HEARTBEAT", "REASON"});
  for (const Json& task : list_of(status, "tasks")) {
    table.add({text_of(task, "task"), text_of(task, "state"), with_commas(number_of(task, "step")),
               with_commas(number_of(task, "examples_per_second")), loss_text(number_of(task, "loss")),
               with_commas(number_of(task, "lag")), text_of(task, "phase"),
               seconds_text(number_of(task, "heartbeat_age_seconds")), headline(text_of(task, "reason"))});
  }
  std::cout << table.text();
}

void print(const Json& status, bool is_all) {
  if (is_all) return print_jobs(status);
  const std::string state = text_of(status, "state");
  if (state.empty()) {
    std::cout << "no job was submitted yet\n";
  } else if (is_final_state(state)) {
    print_summary(std::cout, status);
    print_root_cause(std::cout, status);
  } else {
    std::cout << "job " << text_of(status, "job") << ": " << progress_line(status) << '\n';
    if (const std::string reason = text_of(status, "reason"); !reason.empty())
      std::cout << "  " << indented(unfolded(reason), 2) << '\n';
    print_checkpoint(std::cout, status);
  }
  print_tasks(status);
}

Status show(ChiefClient& client, const ChiefTarget& target, Interrupts& interrupts, const StatusOptions& options) {
  Duration wait{};
  while (true) {
    const auto ask = [&client, &options, &wait] { return ask_status(client, options.job, options.all, wait); };
    auto status = ask();
    if (options.watch) status = or_again(client, target, std::move(status), ask);
    if (!status) return tl::unexpected<Error>(std::move(status.error()));
    const bool is_redrawn = options.watch && !options.json && isatty(STDOUT_FILENO) != 0;
    if (is_redrawn) write_codes(std::cout, "\x1b[H\x1b[2J");
    if (options.json)
      std::cout << line_of(*status) << '\n';
    else
      print(*status, options.all);
    std::cout << std::flush;
    const std::string state = text_of(*status, "state");
    // While a job runs, the chief delays each answer for `wait`. In all other cases it answers at once, so another
    // request would make this a busy loop.
    if (!options.watch || options.all || state.empty() || is_final_state(state) || interrupts.count() > 0) return {};
    wait = kRefresh;
  }
}

}  // namespace

int status(const StatusOptions& options) {
  const auto cluster = find_running_cluster(options.cluster, options.chief);
  if (!cluster) return daemon::report("disttrain status", cluster.error());
  asio::io_context loop;
  Interrupts interrupts(loop);
  ChiefClient client(loop, [&interrupts] { return interrupts.count() > 0; });
  Status shown = client.connect(cluster->target, cluster->dial);
  if (shown) shown = show(client, cluster->target, interrupts, options);
  if (interrupts.count() > 0) return interrupts.exit_code();
  if (!shown) return daemon::report("disttrain status", shown.error());
  return 0;
}

}  // namespace disttrain::cli
