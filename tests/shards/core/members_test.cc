#include "shards/core/members.h"

#include <gtest/gtest.h>

namespace disttrain::shards {
namespace {

Member worker(std::uint32_t index, std::uint64_t incarnation) {
  return Member{TaskId{Role::kWorker, index}, Incarnation(incarnation)};
}

TEST(MemberTable, WorkersThatComeAndGoForWeeksAreForgottenTheOldestFirst) {
  MemberTable table(2);
  MemberTable::Leavings leavings;
  Roster roster{RosterVersion(1), {worker(0, 1), worker(1, 1)}};
  ASSERT_TRUE(table.set_roster(roster, leavings));
  // The table forgets fenced workers, but not those in the roster. worker/0 is fenced before all others and stays in
  // the roster, so the table must keep it.
  table.fence(worker(0, 1));
  constexpr std::uint64_t kLosses = 5000;
  for (std::uint64_t i = 2; i <= kLosses; ++i) {
    table.fence(roster.members[1]);
    roster.members[1] = worker(1, i);
    roster.version = roster.version.next();
    ASSERT_TRUE(table.set_roster(roster, leavings));
  }
  EXPECT_EQ(table.find(worker(1, 1)), nullptr);
  EXPECT_EQ(table.find(worker(1, kLosses - 1000)), nullptr);
  ASSERT_NE(table.find(worker(1, kLosses - 1)), nullptr);
  EXPECT_TRUE(table.find(worker(1, kLosses - 1))->fenced);
  EXPECT_TRUE(table.find(worker(0, 1))->in_roster);
  EXPECT_EQ(table.active(), std::vector<MemberState*>{table.find(worker(1, kLosses))});
}

TEST(MemberTable, ChannelIsFoundByItsOwnNumberAlone) {
  MemberTable table(3);
  MemberTable::Leavings leavings;
  ASSERT_TRUE(table.set_roster(Roster{RosterVersion(1), {worker(0, 1), worker(1, 1), worker(2, 1)}}, leavings));
  constexpr std::uint64_t kChannels[] = {2, 4, 6};
  for (std::uint32_t i = 0; i < 3; ++i) table.open_channel(*table.find(worker(i, 1)), ChannelId(kChannels[i]));
  table.close_channel(*table.find(worker(1, 1)));
  for (std::uint64_t channel = 0; channel < 8; ++channel) {
    const MemberState* found = table.find(ChannelId(channel));
    const MemberState* expected = channel == 2   ? table.find(worker(0, 1))
                                  : channel == 6 ? table.find(worker(2, 1))
                                                 : nullptr;
    EXPECT_EQ(found, expected) << channel;
  }
}

}  // namespace
}  // namespace disttrain::shards
