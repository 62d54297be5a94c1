// Stores the workers that aren't in the roster and may join it. Such a worker first reads the data and builds the
// model, so that no other worker waits for it when it joins. chiefd/core/job/rules/workers.h decides which of
// them join, and chiefd/core/job/rules/failures.h which of them can't take part.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "chiefd/core/tasks.h"
#include "common/messages/session.h"
#include "common/time.h"

namespace disttrain::chiefd {

class Candidates {
 public:
  // The workers that were asked to prepare (to read the data and build the model), each with the time of the request.
  const std::map<Member, Instant>& invited() const { return invited_; }
  bool is_invited(const Member& member) const { return invited_.count(member) != 0; }
  std::vector<Member> invited_members() const;
  void invite(const Member& member, Instant now) { invited_[member] = now; }
  // Returns true if the worker was invited.
  bool end_invitation(const Member& member) { return invited_.erase(member) > 0; }

  // The workers that have read the data and built the model. A worker that joins the roster stays in this set.
  const std::set<Member>& prepared() const { return prepared_; }
  bool is_prepared(const Member& member) const { return prepared_.count(member) != 0; }
  void note_prepared(const Member& member);
  void unprepare(const Member& member) { prepared_.erase(member); }
  void take_up(const std::vector<Member>& prepared) { prepared_ = {prepared.begin(), prepared.end()}; }

  // After a worker has reported that it can't reach a ps, the chief doesn't invite this worker again before the time
  // that ask_again_after() sets. Returns false before that time.
  bool may_be_asked(TaskId worker, Instant now) const;
  void ask_again_after(TaskId worker, Instant when) { ask_after_[worker] = when; }

  // A process that the job needs has failed to prepare, for example because a file system isn't mounted yet. The chief
  // invites it again. The pause before that grows with each failure. Call keep_out() too (J27).
  void retry_later(const Member& worker, Instant now);
  bool awaits_retry(const Member& worker) const;
  std::vector<Member> retries() const;
  bool may_retry(const Member& worker, Instant now) const;

  // Keeps this connected worker out of the job, for the reason `why`. Returns true if the worker wasn't kept out
  // before.
  bool keep_out(TaskId worker, const std::string& why) { return kept_out_.emplace(worker, why).second; }
  void let_in(TaskId worker) { kept_out_.erase(worker); }
  const std::map<TaskId, std::string>& kept_out() const { return kept_out_; }

  // A process that can't take part in the job, because it lacks memory, a device, a library or the data. It stays out,
  // for the reason `why`, until another process of its task joins.
  void leave_out(const Task& task, const std::string& why);
  bool is_left_out(const Task& task) const;
  // The tasks whose newest process is left out.
  std::vector<TaskId> left_out() const;
  // A process of the task has joined. Forgets what kept other processes of the task out.
  void meet(const Task& task);

  // The workers that were lost while a generation started, and haven't trained since. The next generation starts
  // without them if it can, and they join while it trains. So a worker that dies whenever it opens the job doesn't keep
  // the others from training.
  void note_lost_at_start(TaskId worker) { lost_at_start_.insert(worker); }
  void note_trains(TaskId worker) { lost_at_start_.erase(worker); }
  bool was_lost_at_start(TaskId worker) const { return lost_at_start_.count(worker) != 0; }

 private:
  std::map<Member, Instant> invited_;
  std::set<Member> prepared_;
  struct Retry {
    Member worker;
    std::uint32_t failures = 0;
    Instant not_before;
  };
  std::map<TaskId, Instant> ask_after_;
  std::map<TaskId, Retry> retries_;
  // Why: the worker was lost too often, its process can't take part, or the shards lack memory.
  std::map<TaskId, std::string> kept_out_;
  std::map<TaskId, TaskHello> left_out_;  // the newest hello of each process that is left out
  std::set<TaskId> lost_at_start_;
};

}  // namespace disttrain::chiefd
