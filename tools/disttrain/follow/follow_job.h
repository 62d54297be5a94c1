// A job from its submission to its end, as `up`, `submit` and `bench` see it.
#pragma once

#include <asio/io_context.hpp>
#include <functional>
#include <optional>
#include <string>

#include "common/config/reader/reader.h"
#include "common/result.h"
#include "tools/disttrain/chief_client.h"
#include "tools/disttrain/interrupts.h"
#include "tools/disttrain/json.h"

namespace disttrain::cli {

bool is_final_state(const std::string& state);

// Limit for requests that the chief answers at once.
inline constexpr Duration kAnswerDeadline = std::chrono::seconds(10);

// How long a follower tries to reach a lost chief again, which may be restarting.
inline constexpr Duration kChiefPatience = std::chrono::seconds(15);

// The status of a job (number, name, "" = current or last): docs/json.md. Waits up to `wait` for its end.
Result<Json> ask_status(ChiefClient& client, const std::string& job, bool all, Duration wait);

// How the watching of a job ended.
struct Outcome {
  Json status;                 // the final status, else the last one seen
  std::optional<Error> error;  // why there is no final status: the watching failed
  int interrupted = 0;         // exit code of the signal that ended the watching; 0 = none
};

// What the watcher does at a signal.
enum class OnInterrupt { kStopJob, kDetach };

struct FollowedJob {
  ChiefTarget target;
  std::string job;  // number
  OnInterrupt on_interrupt = OnInterrupt::kStopJob;
  // Asked after each answer. An error ends the watching: a daemon of `up` stays down, which the chief can't know.
  std::function<std::optional<Error>(const Json& status)> judge;
  // How long to try to reach a lost chief again, which may be restarting. 0 = not at all.
  Duration chief_patience{};
  // Kills a chief that hasn't answered for `silence`, to restart it and reach it again; training goes on without it.
  // False: it won't be restarted. Empty: somebody else supervises the chief.
  std::function<bool(Duration silence)> end_silent_chief;
};

// What to do where a job of that name hasn't ended.
enum class Namesake {
  kRefused,
  kGoesOn,  // follow it if it is the same job
};

// Submits a job and returns its number. `awaited_workers` as in SubmitJob.
Result<std::string> submit_job(ChiefClient& client, const config::JobFile& job, std::uint64_t warmup_steps,
                               Namesake namesake = Namesake::kRefused, std::uint32_t awaited_workers = 0);

// After the error `why` of the client: reconnects to the chief, which may be restarting, and says so on stderr. Returns
// `why` where that can't help.
Status find_chief_again(ChiefClient& client, const ChiefTarget& target, Duration patience, const Error& why);

// `answer`; where the chief was lost, reconnects and returns what `ask` gets.
template <typename Answer, typename Ask>
Result<Answer> or_again(ChiefClient& client, const ChiefTarget& target, Result<Answer> answer, const Ask& ask) {
  // The chief may die again before it answers.
  while (!answer && find_chief_again(client, target, kChiefPatience, answer.error())) answer = ask();
  return answer;
}

// Shows progress on stderr until the job has ended. A second signal ends the watching at once.
Outcome follow(ChiefClient& client, Interrupts& interrupts, const FollowedJob& run);

}  // namespace disttrain::cli
