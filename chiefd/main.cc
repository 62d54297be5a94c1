// chiefd: the chief of a cluster. main() reads the options and the cluster file, opens the journal, and then runs the
// chief's loop until the chief is told to end.
#include <asio/io_context.hpp>
#include <cstdint>
#include <iostream>
#include <map>
#include <memory>
#include <optional>

#include "chiefd/chief.h"
#include "chiefd/crash_book.h"
#include "chiefd/journal/disk.h"
#include "chiefd/status_page/status_page.h"
#include "common/counted.h"
#include "common/daemon/clock.h"
#include "common/daemon/crash.h"
#include "common/daemon/end_deadline.h"
#include "common/daemon/http/pages.h"
#include "common/daemon/log/log.h"
#include "common/daemon/random.h"
#include "common/daemon/reload.h"
#include "common/daemon/service.h"
#include "common/daemon/signals.h"
#include "common/daemon/startup.h"
#include "common/daemon/threads.h"
#include "common/metrics/process.h"
#include "transport/factory/factory.h"

using namespace disttrain;

namespace {

// chiefd --salvage: replaces a damaged journal by a journal with the records before the damage, and prints how many
// records are lost.
int salvage(const std::string& directory) {
  const char* const program = "chiefd";
  Result<std::unique_ptr<chiefd::JournalDisk>> disk = chiefd::open_journal_disk(directory);
  if (!disk) return daemon::report(program, disk.error());
  const Result<chiefd::JournalFile::Salvaged> done =
      chiefd::JournalFile::salvage(std::move(*disk), JournalId(daemon::draw_number()));
  if (!done) return daemon::report(program, done.error());
  if (done->damage.empty()) {
    std::cout << "the journal in " << directory << " isn't damaged; nothing was changed\n";
    return 0;
  }
  std::cout << done->damage << '\n';
  for (const std::string& path : done->set_aside) std::cout << "kept " << path << '\n';
  std::cout
      << "the new journal has the " << counted(done->kept, "record") << " before the damage; "
      << (done->lost ? std::to_string(*done->lost) : "an unknown number of") << " later records are lost\n"
      << "now start the chief: jobs that were running go back to their newest checkpoint. Then submit again each job "
      << "that `disttrain status --all` doesn't list\n";
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  int exit_code = 0;
  std::optional<daemon::Startup> startup = daemon::start_daemon(Role::kChief, argc, argv, exit_code);
  if (!startup) return exit_code;
  const ClusterConfig& cluster = startup->cluster;
  if (startup->is_salvage) return salvage(cluster.chief.state_directory);
  daemon::Log log(startup->task, cluster.log);
  daemon::report_crashes(startup->task, log.form());

  // The chief takes no part in a step, so it needs no shared memory.
  TransportConfig transport_config = cluster.transport;
  transport_config.kind = "tcp";
  const Result<std::unique_ptr<transport::Transport>> made = transport::make_transport(transport_config, cluster.name);
  if (!made) return daemon::report(log, made.error());
  transport::Transport& transport = **made;

  // Retry without end, because a full disk may have room again soon.
  Result<chiefd::JournalFile::Opened> journal = fail(ErrorCode::kSoftware, "");
  const Status opened = daemon::try_patiently(
      [&]() -> Status {
        journal = chiefd::JournalFile::open(cluster.chief.state_directory);
        return journal ? Status() : tl::unexpected(journal.error());
      },
      daemon::kTriesWithoutEnd);
  if (!opened) return daemon::report(log, opened.error());
  JournalId& journal_id = journal->state.journal;
  if (journal_id.value == 0) journal_id = JournalId(daemon::draw_number());

  const Result<chiefd::CrashBook> crashes = chiefd::CrashBook::open(cluster.chief.state_directory, journal_id);
  if (crashes)
    daemon::note_crashes_in(crashes->file());
  else
    log.warn("the chief can't count its crashes, so it can't set aside a job that crashes it: " +
             crashes.error().message);

  asio::io_context loop(1);
  Result<std::unique_ptr<daemon::HttpEndpoint>> http = daemon::open_endpoint(
      loop, *startup, [&] { return transport::try_to_listen(loop, transport, startup->listen_address); });
  if (!http) return daemon::report(log, http.error());
  metrics::ProcessMetrics process(to_string(startup->task), daemon::kVersion, transport.name(), cluster.hash,
                                  daemon::wall_nanoseconds());
  // Limits the time that the destructors of the objects below may take. It is destroyed after them, because it is
  // declared before them.
  std::optional<daemon::EndDeadline> deadline;
  chiefd::Chief chief(loop, transport, log,
                      chiefd::Chief::Setup{.cluster = cluster,
                                           .listen_address = startup->listen_address,
                                           .metrics_address = daemon::reachable_address(**http, startup->address),
                                           .journal = std::move(*journal),
                                           .seed = daemon::draw_number(),
                                           .incarnation = startup->incarnation,
                                           .crashes = crashes ? crashes->crashes() : std::map<JobId, std::uint32_t>(),
                                           .on_listening = {},
                                           .on_failed = [&loop, &log, &exit_code](const Error& error) {
                                             exit_code = daemon::report(log, error);
                                             loop.stop();
                                           }});
  daemon::add_daemon_pages(**http, {.collect =
                                        [&](metrics::Page& page) {
                                          process.collect(page, {.log_messages = log.counts(),
                                                                 .bytes_received = transport.traffic().received,
                                                                 .bytes_sent = transport.traffic().sent});
                                          chief.collect(page);
                                        },
                                    .waits_for = [&chief] { return chief.waits_for(); }});
  chiefd::add_status_page(**http, [&chief] { return chief.page_json(); });
  (*http)->serve();
  daemon::Service service(loop, log, {}, [&chief] { return chief.state(); });
  const daemon::ReloadSignal reload(loop, *startup, log, service, [&chief, &process](const ClusterConfig& changed) {
    chief.change(changed);
    process.reloaded(changed.hash, daemon::wall_nanoseconds());
  });
  // The chief can stop at any time, because its journal holds all that the next chief needs.
  const daemon::StopSignals signals(loop, [&loop, &log, &service](int) {
    log.info("told to end");
    service.stopping();
    loop.stop();
  });
  loop.run();
  deadline.emplace(log, daemon::kEndPatience, exit_code);
  http->reset();  // destroys the pages before the objects that they use
  return exit_code;
}
