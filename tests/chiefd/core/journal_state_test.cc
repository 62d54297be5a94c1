// The state that the journal's records add up to.
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
  for (std::uint64_t term = 4; term < 80; ++term)
    apply(state, TermRecord{JournalId(3), Term(term), Incarnation(term % 7 == 0 ? 0 : term)});
  EXPECT_EQ(state.chiefs.size(), kMaxFormerChiefs);
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

TEST(JournalStateTest, AgeOfAnEventIsAtLeastWhatTheTimeSinceTheBootSays) {
  using std::chrono::seconds;
  const auto at = [](std::int64_t wall, std::int64_t uptime) {
    return EventClocks{wall * 1'000'000'000, uptime * 1'000'000'000};
  };
  EventRecord event;
  event.wall_nanoseconds = at(1000, 100).wall_nanoseconds;
  event.uptime_nanoseconds = at(1000, 100).uptime_nanoseconds;
  EXPECT_EQ(age_of(event, at(1030, 130)), Duration(seconds(30)));
  EXPECT_EQ(age_of(event, at(400, 130)), Duration(seconds(30))) << "the wall clock was set back";
  EXPECT_EQ(age_of(event, at(1090, 40)), Duration(seconds(90))) << "the host was booted";
  EXPECT_EQ(age_of(event, at(5000, 130)), Duration(seconds(4000))) << "perhaps it was booted";
  EXPECT_EQ(age_of(event, at(400, 40)), std::nullopt) << "booted, and its clock is wrong";
  event.uptime_nanoseconds = 0;  // of an older version
  EXPECT_EQ(age_of(event, at(1030, 130)), Duration(seconds(30)));
  EXPECT_EQ(age_of(event, at(400, 130)), std::nullopt);
}

TEST(JournalStateTest, SalvagedStateGivesNoNumberAgainAndRollsRunningJobsBack) {
  JournalState state;
  apply(state, TermRecord{JournalId(3), Term(4)});
  for (std::uint32_t i = 1; i <= 3; ++i) {
    apply(state, SubmittedRecord{JobId(i), "job-" + std::to_string(i), "text", 0});
    if (i == 3) continue;
    apply(state, GenerationRecord{JobId(i), Generation(5), 1, {}, Roster(), "", Step(), 0});
    apply(state, GrantRecord{JobId(i), Generation(5), {}, Lease{LeaseId(1), 0, {}, Step(), 0, 0, {}, {}}});
    apply(state, StateRecord{JobId(i), i == 1 ? JobState::kRunning : JobState::kFinished, ""});
  }
  const JournalState after = salvaged(state, 7, Term(6), JournalId(9), "it was damaged");
  EXPECT_EQ(after.journal, JournalId(9));
  EXPECT_EQ(after.term, Term(13));
  EXPECT_EQ(after.last_job, JobId(10));
  EXPECT_EQ(after.jobs.at(JobId(1)).generation.generation, Generation(12));
  EXPECT_TRUE(after.jobs.at(JobId(1)).grants.empty());
  EXPECT_EQ(after.jobs.at(JobId(2)), state.jobs.at(JobId(2)));
  EXPECT_EQ(after.jobs.at(JobId(3)).generation.generation, Generation(7)) << "its generations may be lost";
  ASSERT_EQ(after.events.size(), 1u);
  EXPECT_EQ(after.events[0].kind, kRollsBack);
  EXPECT_EQ(after.events[0].job, JobId(1));
  EXPECT_EQ(after.events[0].cause, "it was damaged");
  EXPECT_EQ(salvaged(state, std::nullopt, Term(2), JournalId(9), "").last_job, JobId(3 + kUnknownLoss));
}

}  // namespace
}  // namespace disttrain::chiefd
