// Submits a job and follows it to its end, for `up`, `submit` and `bench`.
#pragma once

#include <asio/io_context.hpp>
#include <functional>
#include <optional>
#include <string>

#include "common/config/reader/reader.h"
#include "common/result.h"
#include "tools/disttrain/chief_client.h"
#include "tools/disttrain/follow/trainer_output.h"
#include "tools/disttrain/interrupts.h"
#include "tools/disttrain/json.h"

namespace disttrain::cli {

bool is_final_state(const std::string& state);

// The time limit of a request that the chief can answer at once.
inline constexpr Duration kAnswerDeadline = std::chrono::seconds(10);

// A client tries for this long to reconnect to a lost chief, because the chief may be restarting.
inline constexpr Duration kChiefPatience = std::chrono::seconds(15);

// Returns the status of a job (docs/json.md), or of all jobs. `job` is a number or a name; "" = the running job, else
// the job that ran last. While the job hasn't ended, the chief delays its answer for `wait`.
Result<Json> ask_status(ChiefClient& client, const std::string& job, bool all, Duration wait);

// How the watching of a job ended.
struct Outcome {
  Json status;                 // the job's final status, or the last status that was seen
  std::optional<Error> error;  // why the job couldn't be watched to its end
  int interrupted = 0;         // if a signal ended the watching, the exit code for it; else 0
};

// When the watching process gets a signal, it either stops the job or leaves the job running.
enum class OnInterrupt { kStopJob, kDetach };

struct FollowedJob {
  ChiefTarget target;
  std::string job;  // the job's number
  OnInterrupt on_interrupt = OnInterrupt::kStopJob;
  // Called after each answer, and when the chief is lost. If it returns an error, the watching ends. For example, `up`
  // knows that a daemon stays down, but the chief goes on waiting for it.
  std::function<std::optional<Error>(const Json& status)> judge;
  // The client tries for this long to reconnect to a lost chief, because the chief may be restarting. 0 = not at all.
  Duration chief_patience{};
  // Kills and restarts the chief of this `up` if it hasn't answered for `silence`. Meanwhile training goes on. Returns
  // false if the chief won't be restarted. The function is empty if this process didn't start the chief.
  std::function<bool(Duration silence)> end_silent_chief;
  // Whose output is shown. kNone if the job has no trainer.
  Output output = Output::kNone;
};

// The caller of submit_job() chooses one of these ways to treat another job of the same name that hasn't ended yet.
enum class Namesake {
  kRefused,
  kGoesOn,  // follow that job, if it was submitted with the same file
};

// Submits a job and returns its number. SubmitJob explains `awaited_workers`.
Result<std::string> submit_job(ChiefClient& client, const config::JobFile& job, std::uint64_t warmup_steps,
                               Namesake namesake = Namesake::kRefused, std::uint32_t awaited_workers = 0);

// Ends a job: at once with `kill`, otherwise when each worker has finished its current step. `job` as in ask_status().
// Returns the job's number and name, such as "3 (mnist)". Error kUsage: there is no such job, or it has ended already.
Result<std::string> end_job(ChiefClient& client, const std::string& job, bool kill);

// Reconnects to the chief after an error of the client, `why`, because the chief may be restarting. Prints a line about
// it on stderr. If a new connection can't help, returns `why`.
Status find_chief_again(ChiefClient& client, const ChiefTarget& target, Duration patience, const Error& why);

// Returns `answer`. But if `answer` is an error because the chief was lost, reconnects and returns the result of `ask`.
template <typename Answer, typename Ask>
Result<Answer> or_again(ChiefClient& client, const ChiefTarget& target, Result<Answer> answer, const Ask& ask) {
  // This is a loop, because the chief may die again before it answers.
  while (!answer && find_chief_again(client, target, kChiefPatience, answer.error())) answer = ask();
  return answer;
}

// Shows progress on stderr until the job has ended. If the chief submits the failed job again (job.on_failure), goes on
// with the next job. A second signal ends the watching at once.
Outcome follow(ChiefClient& client, Interrupts& interrupts, const FollowedJob& run);

}  // namespace disttrain::cli
