// disttrain doctor: the conclusions that it draws from what it has found.
#include "tools/disttrain/doctor/checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace disttrain::cli {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr TaskId kChief{Role::kChief, 0};
constexpr TaskId kPs{Role::kPs, 0};
constexpr TaskId kWorker{Role::kWorker, 1};

void expect(const Finding& finding, CheckState state, const std::string& word) {
  EXPECT_EQ(to_string(finding.state), to_string(state)) << finding.found;
  EXPECT_THAT(finding.found, HasSubstr(word));
  const bool needs_advice = state == CheckState::kWarn || state == CheckState::kFail;
  EXPECT_EQ(!finding.advice.empty(), needs_advice) << finding.found << ": " << finding.advice;
}

TEST(MemlockCheck, LowLimitIsOkWithoutRdma) {
  expect(judge(Memlock{64 * 1024, {}, RdmaWish::kNone}), CheckState::kOk,
         "64.0 KiB for this process; only RDMA needs more");
}

TEST(MemlockCheck, RdmaNeedsNoLimit) {
  expect(judge(Memlock{64 * 1024, {}, RdmaWish::kRequired}), CheckState::kFail, "64.0 KiB");
  expect(judge(Memlock{64 * 1024, {}, RdmaWish::kIfPossible}), CheckState::kWarn, "64.0 KiB");
  expect(judge(Memlock{std::nullopt, {}, RdmaWish::kRequired}), CheckState::kOk, "no limit");
}

TEST(MemlockCheck, UnitsCountMoreThanThisProcess) {
  expect(judge(Memlock{64 * 1024, {{"psd.service", "infinity"}}, RdmaWish::kRequired}), CheckState::kOk,
         "psd.service: infinity");
  expect(judge(Memlock{std::nullopt, {{"psd.service", ""}}, RdmaWish::kRequired}), CheckState::kFail,
         "psd.service: systemd's default");
  // A drop-in is for the unit or for its template.
  expect(judge(Memlock{std::nullopt, {{"psd.service", ""}, {"psd@.service", "infinity"}}, RdmaWish::kRequired}),
         CheckState::kOk, "psd@.service: infinity");
  expect(judge(Memlock{std::nullopt, {{"psd.service", "infinity"}, {"workerd.service", ""}}, RdmaWish::kRequired}),
         CheckState::kFail, "workerd.service: systemd's default");
}

Link ethernet() {
  return Link{"eth0", "up", 25000, 9000, false};
}

TEST(NicCheck, LinkIsDescribed) {
  expect(judge(OwnHost{"10.0.0.1", "ps/0", "10.0.0.1", ethernet(), true}), CheckState::kOk,
         "eth0 is up, 25 Gbit/s, MTU 9000");
}

TEST(NicCheck, LinkThatIsDownFailsAndASlowLinkWarns) {
  Link link = ethernet();
  link.megabits_per_second = 100;
  expect(judge(OwnHost{"10.0.0.1", "ps/0", "10.0.0.1", link, true}), CheckState::kWarn, "100 Mbit/s");
  link.state = "down";
  expect(judge(OwnHost{"10.0.0.1", "ps/0", "10.0.0.1", link, true}), CheckState::kFail, "eth0 is down");
}

TEST(NicCheck, VirtualLinkWithoutSpeedIsOk) {
  expect(judge(OwnHost{"10.0.0.1", "ps/0", "10.0.0.1", Link{"veth1", "unknown", {}, 1500, false}, true}),
         CheckState::kOk, "veth1 is unknown, MTU 1500");
}

TEST(NicCheck, LoopbackIsForClustersOfOneHost) {
  const Link loopback{"lo", "unknown", {}, 65536, true};
  expect(judge(OwnHost{"127.0.0.1", "ps/0", "127.0.0.1", loopback, false}), CheckState::kOk, "loopback");
  expect(judge(OwnHost{"127.0.0.1", "ps/0", "127.0.0.1", loopback, true}), CheckState::kWarn, "can't reach ps/0");
  const Finding named = judge(OwnHost{"node1", "ps/0", "127.0.1.1", loopback, true});
  expect(named, CheckState::kWarn, "node1 is 127.0.1.1");
  EXPECT_THAT(named.advice, HasSubstr("/etc/hosts"));
}

TEST(NicCheck, AddressOfNoInterfaceWarns) {
  expect(judge(OwnHost{"10.9.9.9", "ps/0", "10.9.9.9", {}, true}), CheckState::kWarn, "no interface");
}

TEST(RdmaCheck, MissingDeviceFailsOnlyWhereRdmaIsWanted) {
  expect(judge(Rdma{{}}), CheckState::kSkipped, "no device");
  expect(judge(Rdma{.devices = {}, .wish = RdmaWish::kRequired}), CheckState::kFail, "no device");
  expect(judge(Rdma{.devices = {{"mlx5_0 port 1", "1: DOWN", "10 Gb/sec"}}, .wish = RdmaWish::kRequired}),
         CheckState::kFail, "1: DOWN");
  expect(judge(Rdma{.devices = {{"mlx5_0 port 1", "4: ACTIVE", "100 Gb/sec", "eth2"}}, .wish = RdmaWish::kRequired}),
         CheckState::kOk, "mlx5_0 port 1 (4: ACTIVE, 100 Gb/sec, eth2)");
}

TEST(RdmaCheck, DeviceThatCanNotBeUsedFailsOrWarns) {
  Rdma rdma{{{"mlx5_0 port 1", "4: ACTIVE", "100 Gb/sec", "eth2"}}, false, "", RdmaWish::kRequired};
  expect(judge(rdma), CheckState::kFail, "rdma_cm can't be opened");
  rdma.has_manager = true;
  rdma.elsewhere = "ps/0";
  expect(judge(rdma), CheckState::kFail, "no device has the address of ps/0");
  rdma.wish = RdmaWish::kIfPossible;
  expect(judge(rdma), CheckState::kWarn, "no device has the address of ps/0");
  EXPECT_THAT(judge(rdma).advice, HasSubstr("over TCP"));
  rdma.wish = RdmaWish::kNone;
  expect(judge(rdma), CheckState::kOk, "doesn't need one");
}

TEST(ClockCheck, SkewBeyondTheRoundTripIsWarnedOf) {
  expect(judge(Clock{true, "a:7100", 0.002, 0.004}), CheckState::kOk, "at most 4 ms from the chief's");
  expect(judge(Clock{true, "a:7100", 3.0, 0.004}), CheckState::kWarn, "3 s ahead of the chief's");
  expect(judge(Clock{true, "a:7100", -3.0, 0.004}), CheckState::kWarn, "3 s behind the chief's");
  // The answer took so long that nobody can say whether the clocks differ.
  expect(judge(Clock{true, "a:7100", 1.5, 2.0}), CheckState::kOk, "at most 2.5 s");
}

TEST(ClockCheck, WithoutAChiefTheKernelIsAsked) {
  expect(judge(Clock{true, "a:7100", {}}), CheckState::kOk, "no chief answers at a:7100");
  expect(judge(Clock{false, "a:7100", {}}), CheckState::kWarn, "isn't synchronised");
  expect(judge(Clock{false, "", {}}), CheckState::kWarn, "isn't synchronised");
  expect(judge(Clock{std::nullopt, "", {}}), CheckState::kSkipped, "doesn't say");
}

PortAnswer answer_of(const std::string& said) {
  return PortAnswer{.listening = Listening::kOurs, .said = said};
}

PortAnswer welcome() {
  return PortAnswer{.listening = Listening::kOurs, .is_welcome = true};
}

PortAnswer metrics_of(const std::string& task) {
  return PortAnswer{.listening = Listening::kOurs, .said_task = task};
}

TEST(PortCheck, FreePortsAreOk) {
  expect(judge(OwnPort{kPs, "a:7110", {}, "a:8110", {}}), CheckState::kOk,
         "port 7110 is free; port 8110 is free (for its metrics)");
}

TEST(PortCheck, DaemonsThatAnswerAreOk) {
  expect(judge(OwnPort{kPs, "a:7110", answer_of("this is ps/0; the chief is at a:7100"), "a:8110", metrics_of("ps/0")}),
         CheckState::kOk, "port 7110: ps/0 answers; its metrics are at port 8110");
  expect(judge(OwnPort{kWorker, "a:7120", answer_of("worker/1 takes no connections"), ""}), CheckState::kOk,
         "worker/1");
  expect(judge(OwnPort{kChief, "a:7100", welcome(), ""}), CheckState::kOk, "chief/0 answers");
  PortAnswer busy = answer_of("the chief already serves 64 clients");
  busy.is_busy = true;
  expect(judge(OwnPort{kChief, "a:7100", busy, ""}), CheckState::kOk, "chief/0 answers");
}

TEST(PortCheck, DaemonWithAnotherClusterFileWarns) {
  PortAnswer page = metrics_of("chief/0");
  page.said_hash = "12ab";
  expect(judge(OwnPort{kChief, "a:7100", welcome(), "a:8100", page, "12ab"}), CheckState::kOk,
         "its metrics are at port 8100");
  expect(judge(OwnPort{kChief, "a:7100", welcome(), "a:8100", page, "34cd"}), CheckState::kWarn,
         "another cluster file");
}

TEST(PortCheck, AnotherProgramFailsAndIsNamed) {
  const PortAnswer stranger{.listening = Listening::kSilent, .holder = "python3 (pid 4711)"};
  const Finding finding = judge(OwnPort{kPs, "a:7110", stranger, "a:8110", {}});
  expect(finding, CheckState::kFail, "port 7110 is held by python3 (pid 4711)");
  expect(judge(OwnPort{kPs, "a:7110", {}, "a:8110", stranger}), CheckState::kFail,
         "port 8110 is held by python3 (pid 4711)");
}

TEST(PortCheck, DaemonThatHangsIsNotTakenForAnotherProgram) {
  const PortAnswer silent{.listening = Listening::kSilent, .holder = "psd (pid 12)"};
  const Finding finding = judge(OwnPort{kPs, "a:7110", silent, "a:8110", silent});
  expect(finding, CheckState::kFail, "port 7110 is held by psd (pid 12), which doesn't answer; port 8110 is held by");
  EXPECT_EQ(finding.advice, "read its log, check whether it hangs or is stopped, and restart it");
  EXPECT_THAT(judge(OwnPort{kWorker, "a:7120", silent, ""}).advice, HasSubstr("stop that process"));
}

TEST(PortCheck, AnotherTaskOrClusterFails) {
  expect(judge(OwnPort{kPs, "a:7110", answer_of("this is ps/3; the chief is at a:7100"), ""}), CheckState::kFail,
         "ps/3");
  expect(judge(OwnPort{kPs, "a:7110", welcome(), ""}), CheckState::kFail, "the chief of this cluster");
  expect(judge(OwnPort{kChief, "a:7100", answer_of("this is the chief of cluster \"b\""), ""}), CheckState::kFail,
         "cluster \"b\"");
  expect(judge(OwnPort{kPs, "a:7110", {}, "a:8110", metrics_of("worker/0")}), CheckState::kFail, "worker/0");
}

TEST(PortCheck, PortThatCantBeBoundFails) {
  const PortAnswer held{.unbindable = "the address is in use", .holder = "ssh (pid 12)"};
  expect(judge(OwnPort{kPs, "a:7110", held, ""}), CheckState::kFail, "in use; it is held by ssh (pid 12)");
}

TEST(PortCheck, RunningDaemonWithoutMetricsWarns) {
  expect(judge(OwnPort{kWorker, "a:7120", answer_of("worker/1 takes no connections"), "a:8120", {}}), CheckState::kWarn,
         "no metrics at port 8120");
}

TEST(HostCheck, NamesTasksThatAnswerAndTasksThatAreAbsent) {
  expect(judge(OtherHost{"b", {{kChief, welcome()}, {kWorker, {}}}}), CheckState::kOk,
         "chief/0 answers, the host is up, but no daemon listens for worker/1");
}

TEST(HostCheck, HostThatCantBeReachedFails) {
  const PortAnswer away{.listening = Listening::kUnreachable, .said = "can't connect to b:7110: no answer in time"};
  expect(judge(OtherHost{"b", {{kPs, away}}}), CheckState::kFail, "no answer in time");
  expect(judge(OtherHost{"b", {{kPs, PortAnswer{.listening = Listening::kSilent}}}}), CheckState::kFail, "ps/0");
  expect(judge(OtherHost{"b", {}, "host name \"b\" can't be resolved"}), CheckState::kFail, "can't be resolved");
}

TEST(GpuCheck, MissingGpuFailsOnlyWhereAWorkerWantsIt) {
  expect(judge(Gpus{}), CheckState::kSkipped, "no worker of this host uses a GPU");
  expect(judge(Gpus{"", 0, {{kWorker, "cuda:0"}}}), CheckState::kFail, "no NVIDIA driver");
  expect(judge(Gpus{"535.54", 1, {{kWorker, "cuda:0"}}}), CheckState::kOk, "1 device; wanted: worker/1 cuda:0");
  expect(judge(Gpus{"535.54", 1, {{kWorker, "cuda:1"}}}), CheckState::kFail, "1 device");
}

constexpr double kGiB = 1024.0 * 1024 * 1024;

Folder folder(FolderUse use) {
  Folder folder;
  folder.use = use;
  folder.path = "/srv/it";
  folder.is_there = folder.is_folder = folder.may_read = folder.may_write = true;
  folder.owner = folder.caller = "ada";
  folder.mode = 0755;
  folder.disk = metrics::DiskSize{10 * kGiB, 100 * kGiB};
  return folder;
}

TEST(DiskCheck, FolderIsDescribed) {
  expect(judge(folder(FolderUse::kState)), CheckState::kOk, "/srv/it of ada, mode 0755, 10.00 GiB free");
}

TEST(DiskCheck, CheckpointsNeedRoomForTwo) {
  Folder checkpoints = folder(FolderUse::kCheckpoints);
  checkpoints.checkpoint_bytes = static_cast<std::uint64_t>(4 * kGiB);
  expect(judge(checkpoints), CheckState::kOk, "a checkpoint needs 4.00 GiB");
  checkpoints.checkpoint_bytes = static_cast<std::uint64_t>(8 * kGiB);
  expect(judge(checkpoints), CheckState::kWarn, "room for one more only");
  checkpoints.checkpoint_bytes = static_cast<std::uint64_t>(11 * kGiB);
  expect(judge(checkpoints), CheckState::kFail, "11.00 GiB");
}

TEST(DiskCheck, NearlyFullDiskWarns) {
  Folder state = folder(FolderUse::kState);
  state.disk = metrics::DiskSize{4 * kGiB, 100 * kGiB};
  expect(judge(state), CheckState::kWarn, "nearly full");
}

TEST(DiskCheck, MissingFolderFailsUnlessTheChiefMakesIt) {
  Folder missing = folder(FolderUse::kState);
  missing.is_there = missing.is_folder = missing.may_write = false;
  missing.may_make = true;
  expect(judge(missing), CheckState::kOk, "chiefd makes it");
  missing.may_make = false;
  expect(judge(missing), CheckState::kWarn, "ada can't make it");
  missing.use = FolderUse::kCheckpoints;
  expect(judge(missing), CheckState::kFail, "/srv/it isn't there");
  missing.use = FolderUse::kData;
  expect(judge(missing), CheckState::kFail, "/srv/it isn't there");
}

TEST(DiskCheck, AccessIsJudgedForTheDaemonsUserNotTheCaller) {
  Folder state = folder(FolderUse::kState);
  state.may_write = false;
  expect(judge(state), CheckState::kWarn, "ada may not write there");
  state.daemon_user = state.owner = "disttrain";
  expect(judge(state), CheckState::kOk, "of disttrain");
  state.owner = "root";
  expect(judge(state), CheckState::kWarn, "can't tell from here whether disttrain, the daemons' user, may write there");
  state.use = FolderUse::kData;
  expect(judge(state), CheckState::kOk, "of root");  // everybody may read it
}

TEST(DiskCheck, FileSystemThatHangsFails) {
  Folder state = folder(FolderUse::kState);
  state.hangs = true;
  expect(judge(state), CheckState::kFail, "doesn't answer");
}

TEST(HasFailed, OnlyAFailureCounts) {
  EXPECT_FALSE(has_failed({skipped("nic", "x"), Finding{"gpu", "", CheckState::kWarn, "x"}}));
  EXPECT_TRUE(has_failed({skipped("nic", "x"), Finding{"gpu", "", CheckState::kFail, "x"}}));
}

TEST(UnitSetting, LastValueCounts) {
  EXPECT_EQ(unit_setting("[Service]\nUser=a\n# User=b\nUser=c\nUserX=d\n", "User"), "c");
  EXPECT_EQ(unit_setting("[Service]\n", "User"), std::nullopt);
}

// /proc/net/tcp, as Linux prints it: a listener at 127.0.0.1:7110 (port 1BC6), and connections to it. The last
// connection belongs to no process any more.
constexpr char kProcNetTcp[] =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
    "   0: 0100007F:1BC6 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0 100 0 0 10 0\n"
    "   1: 0100007F:1BC6 0100007F:9C40 01 00000000:00000000 00:00000000 00000000  1000        0 4712 1 0 20 4 30 10 "
    "-1\n"
    "   2: 0100007F:9C40 0100007F:1BC6 01 00000000:00000000 00:00000000 00000000     7        0 4713 1 0 20 4 30 10 "
    "-1\n"
    "   3: 0100007F:9C41 0100007F:1BC6 06 00000000:00000000 03:00000C1E 00000000     0        0 0 3 0\n";

TEST(OwnersOfPort, ListenerComesFirst) {
  const auto owners = owners_of_port(kProcNetTcp, 0x1BC6);
  ASSERT_EQ(owners.size(), 1u);
  EXPECT_EQ(owners[0].inode, 4711u);
  EXPECT_EQ(owners[0].user, 1000u);
}

TEST(OwnersOfPort, ConnectionCountsWithoutAListener) {
  ASSERT_EQ(owners_of_port(kProcNetTcp, 0x9C40).size(), 1u);
  EXPECT_EQ(owners_of_port(kProcNetTcp, 0x9C40)[0].inode, 4713u);
  EXPECT_THAT(owners_of_port(kProcNetTcp, 0x9C41), IsEmpty());
  EXPECT_THAT(owners_of_port("", 7110), IsEmpty());
}

TEST(PageOfMetrics, SaysItsTaskAndItsClusterFilesHash) {
  const std::string page =
      "# TYPE disttrain_build_info gauge\ndisttrain_build_info{task=\"ps/0\",version=\"0.1.0\"} 1\n"
      "disttrain_config_info{task=\"ps/0\",hash=\"00ff\"} 1\n";
  EXPECT_EQ(task_of_metrics(page), "ps/0");
  EXPECT_EQ(hash_of_metrics(page), "00ff");
  EXPECT_EQ(task_of_metrics("HTTP/1.0 200 OK\r\n\r\nok"), "");
}

// Any process may listen at the port.
TEST(PageOfMetrics, AStrangersPageTakesLittleTimeAndStack) {
  constexpr std::size_t kBytes = std::size_t{1} << 20;
  const std::string metric = "disttrain_build_info{";
  EXPECT_EQ(task_of_metrics(metric + std::string(kBytes, 'x')), "");
  EXPECT_EQ(task_of_metrics(metric + "task=\"" + std::string(kBytes, 'x')), "");
  std::string many;
  while (many.size() < kBytes) many += metric;
  EXPECT_EQ(task_of_metrics(many), "");
  EXPECT_EQ(task_of_metrics(many + "\n" + metric + "subtask=\"a\",task=\"ps/0\"}"), "ps/0");
  EXPECT_EQ(task_of_metrics(metric + "task=\"" + std::string(kBytes, 'x') + "\"}").size(), 100u);
}

}  // namespace
}  // namespace disttrain::cli
