// Which chiefs a task obeys: those of the highest term that it has seen, and only one process of each term. A chief may
// run on a copy of another chief's journal: both journals have the same id, and both chiefs may reach the same term.
//
// Example, a task that obeys chief A of term 5:
// 1. A restarts from its journal as chief B of term 6 and names A among its former chiefs: kObey.
// 2. Chief C runs on a copy of the journal made at term 5 and is also of term 6: kRefuse.
// 3. C restarts as D of term 7. D's former chiefs are C and A, not B: kObeyAnew, since D's journal has diverged.
//
// Pure. A value of the control connection.
#pragma once

#include <string>

#include "common/ids.h"
#include "common/messages/session.h"

namespace disttrain::transport {

class Obedience {
 public:
  enum class Verdict {
    kObey,      // the chief knows what this task was told before
    kObeyAnew,  // the chief doesn't: it has another journal, or its journal diverged from that of the chief this task
                // obeyed
    kRefuse,    // the task goes on as before
  };
  struct Answer {
    Verdict verdict = Verdict::kObey;
    std::string why;  // for kRefuse: the reason
  };
  Answer hear(const Welcome& welcome);

  JournalId journal() const { return journal_; }
  Term term() const { return term_; }
  Incarnation chief() const { return chief_; }

 private:
  bool knows_us(const Welcome& welcome) const;

  JournalId journal_;
  Term term_;
  Incarnation chief_;
};

}  // namespace disttrain::transport
