// What the journal adds up to.
#include "tests/chiefd/core/cluster_fixture.h"

namespace disttrain::chiefd {
namespace {

TEST(Journal, EventsOfCheckpointsDoNotPushOutTheOthers) {
  JournalState state;
  apply(state, EventRecord{0, JobId(1), "task_lost", "ps/0", 0, "died"});
  for (std::uint32_t i = 1; i <= 5000; ++i)
    apply(state, EventRecord{i, JobId(1), i % 2 == 0 ? "checkpoint" : "checkpoint_failed", "", i, "text"});
  ASSERT_EQ(state.events.size(), 1 + kMaxCheckpointEvents);
  EXPECT_EQ(state.events.front().kind, "task_lost");
  EXPECT_EQ(state.events.back().step, 5000u);
  for (std::uint32_t i = 0; i < 3000; ++i) apply(state, EventRecord{i, JobId(1), "task_lost", "ps/0", i, "died"});
  EXPECT_EQ(state.events.size(), kMaxEvents);
}

TEST(JournalStateTest, CompactedRecordsAddUpToTheSameState) {
  JournalState state;
  apply(state, TermRecord{JournalId(3), Term(4)});
  for (std::uint32_t i = 1; i < 120; ++i) {
    apply(state, SubmittedRecord{JobId(i), "job-" + std::to_string(i), "text", i});
    const Roster roster{RosterVersion(i), {Member{worker(0), Incarnation(i)}}};
    apply(state, DescribedRecord{JobDescribed{JobId(i), {}, i, 0}});
    apply(state, GenerationRecord{JobId(i), Generation(1), i, {}, roster, "/checkpoint", Step(i), i});
    if (i % 2 == 0) apply(state, TrainingRecord{JobId(i), Generation(1)});
    apply(state, RosterRecord{JobId(i), Generation(1), Roster{RosterVersion(i + 1), {}}});
    apply(state, CheckpointRecord{JobId(i), Generation(1), Step(i), "/checkpoint"});
    apply(state, EventRecord{i, JobId(i), "kind", "ps/0", i, "text"});
    apply(state, StateRecord{JobId(i), i % 3 == 0 ? JobState::kRunning : JobState::kFinished, "why"});
  }
  JournalState again;
  for (const Record& record : compacted(state)) apply(again, record);
  EXPECT_EQ(state, again);
}

}  // namespace
}  // namespace disttrain::chiefd
