// Bounds and reports the time for which a job waits for tasks that are away: ps tasks, or workers that it lacks.
//
// job.ps_timeout and job.workers_timeout say after how long the job fails. Without such a limit the job waits until the
// tasks are back, or until a user stops or kills it. In both cases the chief reports the wait as an event: after half
// of the limit, or after half of Timeouts::setup if there is none, and then after twice the time again, but at least
// once an hour. So an operator hears of a wait before it fails the job, and a wait without a limit has deadlines too.
//
// A task that is there but doesn't answer isn't absent. deadlines.h bounds the wait for such a task.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "chiefd/core/awaited.h"
#include "chiefd/core/job/turn.h"

namespace disttrain::chiefd {

class Candidates;
class Condition;
class Ending;
class EventLog;
class Gathering;
class Pauses;
class Quorum;
class Regathering;
class Rollbacks;
class StageWait;
class WorkClock;
struct JobParts;
struct JobSetup;

class Absences {
 public:
  explicit Absences(JobParts& parts);

  // Called at each tick, after the parts that go on as soon as enough tasks are there. Returns true if the wait has
  // failed the job.
  bool review(Turn& turn);
  // The waits of the last tick, those for ps tasks first.
  const std::vector<Absence>& current() const { return current_; }
  // What ends the wait: "the job fails if this takes 120 s (job.ps_timeout)". REQUIRES: current() isn't empty.
  std::string limit_text() const;
  // Workers don't join while the chief's own disk hangs. So this pause doesn't count.
  void excuse(Duration pause);

 private:
  std::vector<Role> lacking(const Turn& turn) const;
  std::optional<Duration> limit_of(Role role) const;
  void begin(Turn& turn);
  void end(Turn& turn);
  bool fail_overdue(Turn& turn);
  void report(Turn& turn);
  void set_deadline(Turn& turn);

  const JobSetup& setup_;
  StageWait& stage_;
  const Condition& condition_;
  EventLog& events_;
  const Rollbacks& rollbacks_;
  const Candidates& candidates_;
  const Pauses& pauses_;
  const WorkClock& work_clock_;
  const Gathering& gathering_;
  const Regathering& regathering_;
  const Quorum& quorum_;
  Ending& ending_;

  std::vector<Absence> current_;
  std::map<Role, Instant> since_;  // when the job began to wait for tasks of this role
  std::optional<Instant> next_report_;
  Duration until_next_{};  // from a report to the next one
};

}  // namespace disttrain::chiefd
