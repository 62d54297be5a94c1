#include "tools/disttrain/follow/follow_job.h"

#include <cmath>
#include <iostream>

#include "common/bounded_json.h"
#include "common/format_duration.h"
#include "tools/disttrain/follow/progress.h"
#include "tools/disttrain/follow/summary.h"

namespace disttrain::cli {

namespace {

using namespace std::chrono_literals;

constexpr Duration kFollowInterval = 200ms;
constexpr Duration kParentHears = 1s;
constexpr Duration kStopPatience = 30s;   // how long a stopped job may take to drain, evaluate and close
constexpr Duration kTracePatience = 60s;  // how long the chief may take to write the trace of a job that has ended

std::optional<Error> ask_judge(const FollowedJob& run, const Outcome& outcome) {
  return run.judge ? run.judge(outcome.status) : std::nullopt;
}

// Asks `run.judge` repeatedly, for at most kParentHears. When a daemon dies, its connections close a moment before its
// parent, this process, hears of the death. So `run.judge` may not know of the death yet.
std::optional<Error> ask_judge_patiently(ChiefClient& client, const FollowedJob& run, const Outcome& outcome) {
  const auto end = std::chrono::steady_clock::now() + kParentHears;
  auto verdict = ask_judge(run, outcome);
  while (run.judge && !verdict && std::chrono::steady_clock::now() < end) {
    client.turn_until(end);
    verdict = ask_judge(run, outcome);
  }
  return verdict;
}

// Reconnects to a lost chief. Gives up after `run.chief_patience`. But if this process started the chief, the function
// keeps trying as long as the chief is restarted.
bool reach_chief_again(ChiefClient& client, const Interrupts& interrupts, const FollowedJob& run, const Error& why) {
  if (why.code == ErrorCode::kUnavailable && client.is_connected() && run.end_silent_chief)
    run.end_silent_chief(kAnswerDeadline);
  Status reached = find_chief_again(client, run.target, run.chief_patience, why);
  while (!reached && reached.error().code == ErrorCode::kUnavailable && interrupts.count() == 0 &&
         run.end_silent_chief && run.end_silent_chief(run.chief_patience)) {
    const Error error = std::move(reached.error());
    reached = find_chief_again(client, run.target, run.chief_patience, error);
  }
  return reached.has_value();
}

// The job has ended. Asks for its status until the chief has written its trace. On a busy machine, or if the file
// system is slow, this takes longer than the job's end. A signal, and the loss of the chief, end the waiting.
void await_trace(ChiefClient& client, const Interrupts& interrupts, const std::string& job, Json& status) {
  const int heeded = interrupts.count();
  const auto end = std::chrono::steady_clock::now() + kTracePatience;
  while (flag_of(status, "trace_pending") && interrupts.count() == heeded && std::chrono::steady_clock::now() < end) {
    // While the trace is pending, the chief delays its answer.
    auto newer = ask_status(client, job, false, kFollowInterval);
    if (!newer) break;
    status = std::move(*newer);
  }
  if (flag_of(status, "trace_pending"))
    std::cerr << "the job has ended, but the chief hasn't written its trace yet (train.profile_steps); look for it in "
                 "the folder events of the job's checkpoints\n";
}

}  // namespace

Status find_chief_again(ChiefClient& client, const ChiefTarget& target, Duration patience, const Error& why) {
  const bool is_full = why.code == ErrorCode::kTemporary;
  if (patience == Duration::zero() || (why.code != ErrorCode::kUnavailable && !is_full))
    return tl::unexpected<Error>(why);
  // The chief serves too many clients, so it dropped this one. If this client reconnected at once, the chief would drop
  // another client to make room.
  constexpr Duration kFullPause = std::chrono::seconds(1);
  if (is_full)
    if (Status rested = client.rest(kFullPause); !rested) return tl::unexpected<Error>(why);
  std::cerr << why.message << "; trying to reconnect for " << format_duration(patience) << "\n";
  return client.connect(target, patience);
}

bool is_final_state(const std::string& state) {
  return state == "finished" || state == "failed" || state == "stopped";
}

Result<Json> ask_status(ChiefClient& client, const std::string& job, bool all, Duration wait) {
  auto answer = client.ask<StatusAnswer>(StatusRequest{job, all, wait}, wait + kAnswerDeadline);
  if (!answer) return tl::unexpected<Error>(std::move(answer.error()));
  Json json = parse_bounded_json<Json>(answer->json);
  if (json.is_discarded())
    return fail(ErrorCode::kSoftware, "the chief's status isn't JSON: " + answer->json.substr(0, 200));
  return json;
}

Result<std::string> submit_job(ChiefClient& client, const config::JobFile& job, std::uint64_t warmup_steps,
                               Namesake namesake, std::uint32_t awaited_workers) {
  const SubmitJob request{job.toml, warmup_steps, namesake == Namesake::kGoesOn, awaited_workers};
  auto submitted = client.ask<JobSubmitted>(request, kAnswerDeadline);
  if (!submitted) return tl::unexpected<Error>(std::move(submitted.error()));
  const std::string number = std::to_string(submitted->job.value);
  if (submitted->was_there)
    std::cerr << "job " << number << " (" << job.config.job.name << ") exists already: following it\n";
  if (submitted->ahead > 0)
    std::cerr << "job " << number << " (" << job.config.job.name
              << ") is queued; jobs ahead of it: " << submitted->ahead << "\n";
  return number;
}

// The request has the job's number. If the job ends before the request arrives, the chief refuses the request, and the
// next job of the queue goes on.
Result<std::string> end_job(ChiefClient& client, const std::string& job, bool kill) {
  const auto status = ask_status(client, job, false, {});
  if (!status) return tl::unexpected<Error>(status.error());
  const double id = number_of(*status, "id");
  if (!std::isfinite(id)) return fail(ErrorCode::kUsage, "no job runs");
  const std::string number = std::to_string(static_cast<std::uint32_t>(id));
  const auto done = client.ask<RequestDone>(StopRequest{number, kill}, kAnswerDeadline);
  if (!done) return tl::unexpected<Error>(done.error());
  return number + " (" + text_of(*status, "job") + ")";
}

Outcome follow(ChiefClient& client, Interrupts& interrupts, const FollowedJob& followed) {
  FollowedJob run = followed;
  Outcome outcome;
  Progress progress(std::cerr);
  TrainerOutput trainers(
      run.output, [&client](const LogsRequest& request) { return client.ask<LogLines>(request, kAnswerDeadline); },
      [&progress](const std::string& line) { progress.say(line); });
  int heeded = 0;  // signals
  auto give_up_at = std::chrono::steady_clock::time_point::max();
  while (true) {
    auto status = ask_status(client, run.job, false, kFollowInterval);
    if (status) {
      outcome.status = std::move(*status);
      const std::string state = text_of(outcome.status, "state");
      trainers.show(run.job, outcome.status);
      // print_root_cause() prints why a job failed.
      if (state != "failed") progress.show(outcome.status);
      const double next = number_of(outcome.status, "resubmitted_as");
      if (state == "failed" && std::isfinite(next)) {
        progress.end();
        print_root_cause(std::cerr, outcome.status);
        run.job = std::to_string(static_cast<std::uint32_t>(next));
        std::cerr << "the chief has submitted the job again (job.on_failure) as job " << run.job << ": following it\n";
        continue;
      }
      if (is_final_state(state)) {
        progress.end();
        await_trace(client, interrupts, run.job, outcome.status);
        break;
      }
    }
    if (!status && interrupts.count() == 0) {
      progress.end();
      if (reach_chief_again(client, interrupts, run, status.error())) continue;
    }
    // If the chief doesn't answer, `run.judge` may know why.
    if (auto verdict = status ? ask_judge(run, outcome) : ask_judge_patiently(client, run, outcome)) {
      outcome.error = std::move(verdict);
      break;
    }
    if (!status) {
      outcome.interrupted = interrupts.exit_code();  // 0 unless a signal ended the waiting
      outcome.error = std::move(status.error());
      break;
    }
    if (interrupts.count() > heeded) {
      outcome.interrupted = interrupts.exit_code();
      if (run.on_interrupt == OnInterrupt::kDetach || ++heeded > 1) break;
      progress.end();
      std::cerr << "stopping the job; press Ctrl-C again to end it at once\n";
      if (auto stopped = client.ask<RequestDone>(StopRequest{run.job, false}, kAnswerDeadline); !stopped) {
        outcome.error = std::move(stopped.error());
        break;
      }
      give_up_at = std::chrono::steady_clock::now() + kStopPatience;
    }
    if (std::chrono::steady_clock::now() >= give_up_at) {
      outcome.error = Error{ErrorCode::kUnavailable, "the job didn't stop within 30 s"};
      break;
    }
  }
  progress.end();
  return outcome;
}

}  // namespace disttrain::cli
