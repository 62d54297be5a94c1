// Which chiefs a task obeys: those of the highest term it has seen, and of one term only one process. A chief may run
// on a copy of another's journal; both have the journal's id, and they may reach the same term.
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
    kObeyAnew,  // it doesn't: it has another journal, or its journal parted from the one that this task obeyed
    kRefuse,    // nothing has changed
  };
  struct Answer {
    Verdict verdict = Verdict::kObey;
    std::string why;  // kRefuse: a sentence
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
