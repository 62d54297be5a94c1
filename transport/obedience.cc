// A copy of a journal's folder may start a second chief, so the term and the journal's id alone don't say which chief
// to obey. The alternative was to bind a journal to its inode or its host. Then a journal that was restored from a
// backup would be refused too.
#include "transport/obedience.h"

#include "common/mutant.h"

namespace disttrain::transport {

Obedience::Answer Obedience::hear(const Welcome& welcome) {
  const bool is_other_journal = journal_.value != 0 && journal_ != welcome.journal;
  if (!is_other_journal && welcome.term < term_)
    return {Verdict::kRefuse, "the chief has term " + std::to_string(welcome.term.value) +
                                  ", but this task has obeyed a chief of term " + std::to_string(term_.value) +
                                  "; check whether a second chief is running"};
  const bool is_known = chief_.value != 0 && welcome.chief.value != 0;
  if (!is_other_journal && is_known && welcome.term == term_ && welcome.chief != chief_ &&
      !DISTTRAIN_MUTANT(kTwoChiefsOfOneTerm))
    return {Verdict::kRefuse, "this task obeys another chief process of the same term " + std::to_string(term_.value) +
                                  ": two chiefs run on copies of one journal; stop one of them and restart the other"};
  const bool is_anew = is_other_journal || !knows_us(welcome);
  journal_ = welcome.journal;
  term_ = welcome.term;
  chief_ = welcome.chief;
  return {is_anew ? Verdict::kObeyAnew : Verdict::kObey, ""};
}

// Returns true if this chief is the one that the task obeyed before, or continues the journal of that one.
bool Obedience::knows_us(const Welcome& welcome) const {
  if (journal_.value == 0 || chief_.value == 0 || welcome.chief.value == 0) return true;
  if (welcome.term == term_) return true;
  const std::uint64_t before = welcome.term.value - term_.value;
  return before <= welcome.former.size() && welcome.former[before - 1] == chief_;
}

}  // namespace disttrain::transport
