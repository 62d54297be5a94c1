#include "transport/obedience.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>

#include "common/random.h"

namespace disttrain::transport {
namespace {

using Verdict = Obedience::Verdict;

Welcome chief(std::uint64_t term, std::uint64_t incarnation, std::vector<std::uint64_t> former = {}) {
  Welcome welcome;
  welcome.journal = JournalId(7);
  welcome.term = Term(term);
  welcome.chief = Incarnation(incarnation);
  for (const std::uint64_t one : former) welcome.former.push_back(Incarnation(one));
  return welcome;
}

TEST(ObedienceTest, SuccessorIsObeyedAndGoesOn) {
  Obedience task;
  EXPECT_EQ(task.hear(chief(4, 40)).verdict, Verdict::kObey);
  EXPECT_EQ(task.hear(chief(4, 40)).verdict, Verdict::kObey) << "a connection that was lost";
  EXPECT_EQ(task.hear(chief(6, 60, {50, 40, 30})).verdict, Verdict::kObey);
  EXPECT_EQ(task.hear(chief(5, 50, {40})).verdict, Verdict::kRefuse);
  EXPECT_EQ(task.term(), Term(6));
}

TEST(ObedienceTest, OfTwoChiefsOfOneTermTheSecondIsRefused) {
  Obedience task;
  task.hear(chief(4, 40, {30}));
  const Obedience::Answer answer = task.hear(chief(4, 41, {30}));
  EXPECT_EQ(answer.verdict, Verdict::kRefuse);
  EXPECT_NE(answer.why.find("copies of one journal"), std::string::npos) << answer.why;
  EXPECT_EQ(task.hear(chief(4, 40, {30})).verdict, Verdict::kObey) << "nothing has changed";
}

TEST(ObedienceTest, ChiefThatDoesNotKnowWhomWeObeyedBeginsAnew) {
  Obedience task;
  task.hear(chief(4, 41, {30}));
  EXPECT_EQ(task.hear(chief(5, 50, {40, 30})).verdict, Verdict::kObeyAnew);
  EXPECT_EQ(task.hear(chief(5, 50, {40, 30})).verdict, Verdict::kObey);
  EXPECT_EQ(task.hear(chief(90, 900, std::vector<std::uint64_t>(kMaxFormerChiefs, 1))).verdict, Verdict::kObeyAnew);
}

TEST(ObedienceTest, OtherJournalBeginsAnewAtWhateverTerm) {
  Obedience task;
  task.hear(chief(4, 40));
  Welcome other = chief(1, 10);
  other.journal = JournalId(8);
  EXPECT_EQ(task.hear(other).verdict, Verdict::kObeyAnew);
  EXPECT_EQ(task.term(), Term(1));
}

TEST(ObedienceTest, ChiefOfAnOlderVersionIsObeyedByItsTerm) {
  Obedience task;
  EXPECT_EQ(task.hear(chief(4, 0)).verdict, Verdict::kObey);
  EXPECT_EQ(task.hear(chief(5, 50)).verdict, Verdict::kObey);
  EXPECT_EQ(task.hear(chief(6, 0)).verdict, Verdict::kObey);
  EXPECT_EQ(task.hear(chief(5, 0)).verdict, Verdict::kRefuse);
}

// A random sequence of events: chiefs start, an operator copies chiefs' folders, and tasks connect to the chief that
// runs. The test checks I25. It also checks this: if a task obeys a chief, the chief knows what the task holds.
TEST(ObedienceTest, NoTaskObeysTwoChiefsOfOneTermOrHoldsWhatItsChiefDoesNotKnow) {
  struct Folder {
    std::uint64_t term = 0;
    std::vector<Incarnation> chiefs;  // of the terms 1, 2, ...
  };
  struct Task {
    Obedience rule;
    Term newest;
    std::map<Term, Incarnation> obeyed;
    std::optional<std::pair<Term, Incarnation>> holds;  // orders of this chief
  };
  std::uint64_t refused = 0;
  std::uint64_t anew = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    Random random(seed);
    std::vector<Folder> folders(1);
    std::vector<Welcome> alive;
    std::vector<Task> tasks(3);
    for (int turn = 0; turn < 60; ++turn) {
      if (random.below(8) == 0) folders.push_back(folders[random.below(folders.size())]);
      if (alive.empty() || random.below(4) == 0) {
        Folder& folder = folders[random.below(folders.size())];
        Welcome welcome = chief(++folder.term, 1000 * seed + 1 + static_cast<std::uint64_t>(turn));
        welcome.former.assign(folder.chiefs.rbegin(), folder.chiefs.rend());
        folder.chiefs.push_back(welcome.chief);
        alive.push_back(welcome);
      }
      if (alive.size() > 3) alive.erase(alive.begin() + random.below(3));
      const Welcome& met = alive[random.below(alive.size())];
      Task& task = tasks[random.below(tasks.size())];
      const Verdict verdict = task.rule.hear(met).verdict;
      refused += verdict == Verdict::kRefuse ? 1 : 0;
      anew += verdict == Verdict::kObeyAnew ? 1 : 0;
      if (verdict == Verdict::kRefuse) {
        ASSERT_TRUE(met.term < task.newest || (met.term == task.newest && task.obeyed.at(met.term) != met.chief))
            << "seed " << seed;
        continue;
      }
      ASSERT_GE(met.term, task.newest) << "seed " << seed;
      task.newest = met.term;
      ASSERT_EQ(task.obeyed.try_emplace(met.term, met.chief).first->second, met.chief) << "seed " << seed;
      const auto knows = [&met](const std::pair<Term, Incarnation>& held) {
        if (held.second == met.chief) return true;
        const std::uint64_t before = met.term.value - held.first.value;
        return before >= 1 && before <= met.former.size() && met.former[before - 1] == held.second;
      };
      if (verdict == Verdict::kObeyAnew) {
        ASSERT_FALSE(task.holds && knows(*task.holds))
            << "seed " << seed << ": a task must not drop what its chief knows";
        task.holds.reset();
      }
      ASSERT_TRUE(!task.holds || knows(*task.holds)) << "seed " << seed;
      task.holds = {met.term, met.chief};
    }
  }
  EXPECT_GT(refused, 1000u);
  EXPECT_GT(anew, 100u);
}

}  // namespace
}  // namespace disttrain::transport
