// Stores the results of a job's evaluations, the checkpoints in its folder, and the orders that evaluators have.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "chiefd/core/evaluation_book.h"
#include "chiefd/core/events.h"
#include "common/messages/session.h"
#include "common/time.h"

namespace disttrain::chiefd {

struct EvaluationFacts {
  struct Order {
    KeptCheckpoint checkpoint;
    Instant since;
  };
  struct Failures {
    std::uint32_t count = 0;
    Instant next_try;
  };

  EvaluationBook book;
  std::vector<KeptCheckpoint> kept;                // in the folder, ascending
  bool is_listed = true;                           // false: the folder couldn't be listed, so `kept` may lack some
  std::string folder_problem;                      // why the newest listing failed; "" if it didn't
  Instant list_again;                              // if it couldn't: when the chief tries again
  std::optional<std::set<std::string>> inherited;  // paths of those in it when this chief first listed it
  std::map<Member, Order> orders;
  std::map<std::string, Failures> failures;  // by path
  // The newest evaluation by a worker, if a checkpoint of the same step has the same parameters.
  std::optional<std::pair<Generation, EvaluationStatus>> by_worker;
  std::optional<Ticket> listing;  // of the KeepBest that is under way
  bool is_kept = true;            // the folder keeps the book as it is now, or will when the listing is done
  bool awaits_all = false;        // the job has done its steps and waits for the evaluators
  bool is_given_up = false;       // the job has done its steps and waits for no evaluator any more
  Instant awaits_since;
  std::uint32_t lost_at_end = 0;  // evaluators that were lost with an order while the job waited for them

  bool has_order(const Member& member) const { return orders.count(member) != 0; }
};

}  // namespace disttrain::chiefd
