// Decides whether a task obeys a chief that welcomes it. Two rules apply to chiefs whose journals have the same id:
// once the task has obeyed a chief, it never obeys one with a lower term; and in each term it obeys only one process.
// The second rule is needed because somebody may start a second chief on a copy of the journal. Both journals have the
// same id then, and both chiefs may have the same term.
//
// Example: a task obeys chief A of term 5.
// 1. A restarts. The new process B has term 6, and its journal names A as the chief of term 5. The task obeys: kObey.
// 2. Chief C was started on a copy of the journal that was made in term 5, so C has term 6, too. The task refuses C,
//    because it obeys B in term 6: kRefuse.
// 3. C restarts as D with term 7. D's journal names C and A as the chiefs before D, but not B. So D doesn't know what B
//    told the task: kObeyAnew.
//
// This class is pure.
#pragma once

#include <string>

#include "common/ids.h"
#include "common/messages/session.h"

namespace disttrain::transport {

class Obedience {
 public:
  enum class Verdict {
    // The task obeys, and the chief knows what earlier chiefs told the task.
    kObey,
    // The task obeys, but the chief doesn't know what earlier chiefs told the task. It has another journal, or its
    // journal has diverged from that of the chief that the task obeyed before.
    kObeyAnew,
    // The task doesn't obey this chief.
    kRefuse,
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
