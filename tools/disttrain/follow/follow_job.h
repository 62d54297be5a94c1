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

// How long one request may take that the chief answers at once.
inline constexpr Duration kAnswerDeadline = std::chrono::seconds(10);

// A chief that is lost may be started anew: who follows something looks for it for so long.
inline constexpr Duration kChiefPatience = std::chrono::seconds(15);

// The status of a job (number, name, "" = current or last): docs/json.md. Waits up to `wait` for its end.
Result<Json> ask_status(ChiefClient& client, const std::string& job, bool all, Duration wait);

// How a run ended for the one who watches it.
struct Outcome {
  Json status;                 // the final one; the last that was seen where there is no final one
  std::optional<Error> error;  // no final status: the watching itself failed, or never began
  int interrupted = 0;         // exit code of the signal that ended the watching, 0 = none
};

// What the watcher does at a signal.
enum class OnInterrupt { kStopJob, kDetach };

struct FollowedJob {
  ChiefTarget target;
  std::string job;  // number
  OnInterrupt on_interrupt = OnInterrupt::kStopJob;
  // Asked after each answer; an error ends the watching (a daemon of `up` stays down and the chief can't tell).
  std::function<std::optional<Error>(const Json& status)> judge;
  // A chief that is lost is looked for again for so long: it may be starting anew. 0 = not at all.
  Duration chief_patience{};
  // Ends a chief that has said nothing for so long, to be started anew, after which it is looked for again: training
  // goes on without it. False: it won't be started. Empty: that is for somebody else to do.
  std::function<bool(Duration silence)> end_silent_chief;
};

// What to make of a job of that name that hasn't ended.
enum class Namesake {
  kRefused,
  kGoesOn,  // if it is the same job; the number is its
};

// The job's number. `awaited_workers` as in SubmitJob.
Result<std::string> submit_job(ChiefClient& client, const config::JobFile& job, std::uint64_t warmup_steps,
                               Namesake namesake = Namesake::kRefused, std::uint32_t awaited_workers = 0);

// After an error of the client: reaches the chief again, which may be starting anew. Tells of it on stderr. `why` where
// that makes no sense.
Status find_chief_again(ChiefClient& client, const ChiefTarget& target, Duration patience, const Error& why);

// What follows; where the chief is lost, what `ask` gets of the one that is found again.
template <typename Answer, typename Ask>
Result<Answer> or_again(ChiefClient& client, const ChiefTarget& target, Result<Answer> answer, const Ask& ask) {
  // It may die again before it has answered.
  while (!answer && find_chief_again(client, target, kChiefPatience, answer.error())) answer = ask();
  return answer;
}

// Shows progress on stderr until the job has ended. A second signal ends the watching at once.
Outcome follow(ChiefClient& client, Interrupts& interrupts, const FollowedJob& run);

}  // namespace disttrain::cli
