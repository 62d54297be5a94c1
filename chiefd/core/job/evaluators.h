// Lets the cluster's evaluators evaluate a job's checkpoints while the job trains. Also notes the results of all
// evaluations, those of workers too, and draws the conclusions: the job finishes early, or a checkpoint is one of the
// best (evaluation_book.h).
//
// The checkpoints that wait for an evaluation are those in the job's folder that the book doesn't have. So retention
// bounds their number, and nothing is lost when an evaluator or the chief is restarted. They are evaluated in their
// order, the oldest first. An evaluator gets one order at a time. Its loss doesn't count for job.max_restarts: the
// checkpoint waits for the next free evaluator. An evaluation that fails is repeated kMostFailures times, and then
// given up with a warning.
//
// When the job has done all its steps, it waits until all checkpoints in the folder are evaluated. If no evaluator
// makes progress any more, a worker evaluates the final parameters, as in a cluster without evaluators.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "chiefd/core/evaluation_book.h"
#include "chiefd/core/job/turn.h"
#include "common/messages/session.h"
#include "common/time.h"

namespace disttrain::chiefd {

class CheckpointFolder;
class Condition;
class Ending;
class EventLog;
class GenerationPlan;
class Progress;
class StageWait;
struct JobParts;
struct JobSetup;

class Evaluators {
 public:
  explicit Evaluators(JobParts& parts);

  const EvaluationBook& book() const { return book_; }
  // The paths of the checkpoints that retention mustn't remove.
  std::vector<std::string> pinned() const;
  bool has_order(const Member& member) const;
  // The number of checkpoints that wait for an evaluation or are being evaluated.
  std::size_t waiting() const;

  // Called after a restart of the chief, with the journal's record.
  void take_up(const std::optional<EvaluationsRecord>& record);
  // The shell has opened the folder for the first time. Takes over what evaluations of earlier jobs in it found.
  void resume(Turn& turn, const FolderAnswer& answer);
  // The shell has listed the folder.
  void on_kept(Turn& turn, const FolderAnswer& answer);
  // Returns false if the work wasn't this part's.
  bool on_folder(Turn& turn, const FolderDone& done);
  // Messages, findings and hellos of evaluators.
  void on_message(Turn& turn, const Member& from, const FromTask& message);
  void on_finding(Turn& turn, const Finding& finding);
  void on_reconnect(Turn& turn, const Member& member);
  void on_evaluated_by_worker(Turn& turn, const Evaluated& evaluated);
  // Called at each tick: orders evaluations, and ends orders that are late. May end the job's training early.
  void advance(Turn& turn);

  // Called in stage kEvaluate. If a checkpoint waits for an evaluation, begins to wait for the evaluators and returns
  // true. Ending::finish_evaluation() follows.
  bool await_all(Turn& turn);
  // True while the job waits for evaluators in stage kEvaluate.
  bool is_awaited() const;
  std::vector<Member> awaited(const Tasks& tasks) const;
  // When an evaluator last made progress with this job.
  Instant newest_work(const Tasks& tasks) const;
  void give_up_waiting(Turn& turn, const std::string& why);
  // True if the parameters of the job's last step were evaluated.
  bool has_evaluated_last() const;
  // The job ends. Lets the folder keep what it doesn't keep yet. Nobody waits for the folder's answer.
  void keep_last(Turn& turn);
  // Tells the evaluators to release the job.
  void close(Turn& turn);

 private:
  struct Order {
    KeptCheckpoint checkpoint;
    Instant since;
  };
  struct Failures {
    std::uint32_t count = 0;
    Instant next_try;
  };

  bool is_at_work() const;
  EvaluationRules rules() const;
  const KeptCheckpoint* find(const std::string& path) const;
  bool is_waiting(const KeptCheckpoint& checkpoint) const;
  bool are_all_evaluated() const;
  void on_evaluated(Turn& turn, const Evaluated& evaluated);
  void warn_once(const std::string& notice);
  void on_failed(Turn& turn, TaskId task, const KeptCheckpoint& checkpoint, const std::string& why);
  void show(Turn& turn, const EvaluationStatus& evaluation);
  void order(Turn& turn);
  void end_late_orders(Turn& turn);
  void drop_order(Turn& turn, TaskId task, const std::string& why);
  void note_listed(Turn& turn, bool is_listed);
  void keep_best(Turn& turn);
  void list_folder(Turn& turn, const std::string& best);
  void check_final(Turn& turn);
  void persist(Turn& turn);

  const JobSetup& setup_;
  StageWait& stage_;
  EventLog& events_;
  Condition& condition_;
  Progress& progress_;
  const GenerationPlan& generation_;
  const CheckpointFolder& folder_;
  Ending& ending_;

  EvaluationBook book_;
  std::vector<KeptCheckpoint> kept_;                // in the folder, ascending
  bool is_listed_ = true;                           // false: the folder couldn't be listed, so kept_ may lack some
  std::string folder_problem_;                      // why the newest listing failed; "" if it didn't
  Instant list_again_;                              // if it couldn't: when the chief tries again
  std::optional<std::set<std::string>> inherited_;  // paths of those in it when this chief first listed it
  std::map<Member, Order> orders_;
  std::map<std::string, Failures> failures_;  // by path
  // The newest evaluation by a worker, if a checkpoint of the same step has the same parameters.
  std::optional<std::pair<Generation, EvaluationStatus>> by_worker_;
  std::optional<Ticket> listing_;  // of the KeepBest that is under way
  bool is_kept_ = true;            // the folder keeps the book as it is now, or will when the listing is done
  bool awaits_all_ = false;
  Instant awaits_since_;
  std::uint32_t lost_at_end_ = 0;  // evaluators that were lost with an order while the job waited for them
};

}  // namespace disttrain::chiefd
