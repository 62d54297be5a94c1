// Every message, every field, there and back; bounds; bytes that make no sense.
#include "transport/wire/codec.h"

#include <gtest/gtest.h>

#include "tests/transport/every_field.h"

namespace disttrain::wire {
namespace {

template <typename T>
T expect_ok(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(*result);
}

ControlMessage there_and_back(const ControlMessage& message) {
  const EncodedControl encoded = expect_ok(encode(message));
  return expect_ok(decode_control(encoded.type, encoded.control(), encoded.payload()));
}

template <typename Message>
class ControlMessages : public testing::Test {};

template <typename Variant>
struct TypesOf;
template <typename... Messages>
struct TypesOf<std::variant<Messages...>> {
  using type = testing::Types<Messages...>;
};
TYPED_TEST_SUITE(ControlMessages, TypesOf<ControlMessage>::type, );

TYPED_TEST(ControlMessages, FilledOnesComeBackTheSame) {
  const auto message = filled<TypeParam>();
  const ControlMessage back = there_and_back(message);
  ASSERT_TRUE(std::holds_alternative<TypeParam>(back));
  EXPECT_TRUE(same(message, std::get<TypeParam>(back))) << name_of(message);
}

TYPED_TEST(ControlMessages, FillingChangesEveryFieldSoThatALostOneShows) {
  TypeParam full = filled<TypeParam>(), empty{};
  with_fields(full, empty, [](const auto& a, const auto& b) { EXPECT_FALSE(same(a, b)); });
}

TEST(ControlCodec, AbsentOptionalsStayAbsent) {
  const auto heartbeat = std::get<Heartbeat>(there_and_back(Heartbeat{}));
  EXPECT_FALSE(heartbeat.pacer.has_value());
  EXPECT_FALSE(std::get<LeaseGrant>(there_and_back(LeaseGrant{})).lease.has_value());
  EXPECT_FALSE(std::get<Evaluated>(there_and_back(Evaluated{})).accuracy.has_value());
}

TEST(ControlCodec, BigMessagesTravelAsBlobs) {
  StatusAnswer answer{std::string(kMaxControlBytes, 'x')};
  const EncodedControl encoded = expect_ok(encode(answer));
  EXPECT_EQ(encoded.type, FrameType::kBlob);
  EXPECT_TRUE(encoded.control().empty());
  EXPECT_TRUE(same(answer, std::get<StatusAnswer>(there_and_back(answer))));
}

TEST(ControlCodec, MessagesOverSixtyFourMebibytesAreRefusedWithASentence) {
  const auto encoded = encode(StatusAnswer{std::string(kMaxBlobBytes, 'x')});
  ASSERT_FALSE(encoded);
  EXPECT_NE(encoded.error().message.find("at most 64 MiB"), std::string::npos) << encoded.error().message;
}

TEST(ControlCodec, ListsOverTheirBoundAreRefusedByTheWriter) {
  SetRoster message;
  message.roster.members.resize(kMaxMembers + 1);
  const auto encoded = encode(message);
  ASSERT_FALSE(encoded);
  EXPECT_EQ(encoded.error().message,
            "can't write message SetRoster: its list of members has 1025 entries; at most 1024 are allowed");
}

template <typename Message>
std::string why_refused(const Message& message) {
  const EncodedControl encoded = expect_ok(encode(ControlMessage(message)));
  const auto decoded = decode_control(encoded.type, encoded.control(), encoded.payload());
  return decoded ? "" : decoded.error().message;
}

TEST(ControlCodec, ValuesThatMakeNoSenseAreRefusedByTheReader) {
  auto layout = filled<OpenJob>();
  layout.layout.buckets[1].flat_begin += 1;
  EXPECT_NE(why_refused(layout).find("buckets leave a gap"), std::string::npos);

  auto owners = filled<CreateShards>();
  owners.owners.pop_back();
  EXPECT_NE(why_refused(owners).find("1 owners of 2 shards"), std::string::npos);

  auto lease = filled<LeaseGrant>();
  lease.lease->positions = {{5, 4}};
  EXPECT_NE(why_refused(lease).find("ends at 4 before it begins at 5"), std::string::npos);

  auto heartbeat = filled<Heartbeat>();
  heartbeat.phase = static_cast<Phase>(7);
  EXPECT_NE(why_refused(heartbeat).find("phase is 7; expected 0 to 6"), std::string::npos);

  auto ledger = filled<Heartbeat>();
  ledger.pacer->ledger[0].visited = {{0, 5}, {5, 9}};
  EXPECT_NE(why_refused(ledger).find("don't ascend with gaps"), std::string::npos);

  auto model = filled<JobDescribed>();
  model.model.variables[0].shape = {std::uint64_t{1} << 40, std::uint64_t{1} << 40};
  EXPECT_NE(why_refused(model).find("immense"), std::string::npos);

  auto lines = filled<LogLines>();
  lines.lines[1].level = 4;
  EXPECT_NE(why_refused(lines).find("log level 4"), std::string::npos);
}

TEST(SessionCodec, HellosOfEachKindComeBackTheSame) {
  const auto check = [](const auto& who) {
    Hello hello;
    hello.oldest_version = 3;
    hello.newest_version = 4;
    hello.cluster = "mine";
    hello.cluster_hash = 5;
    hello.who = who;
    const Hello back = expect_ok(decode_hello(encode(hello)));
    EXPECT_EQ(back.oldest_version, 3);
    EXPECT_EQ(back.newest_version, 4);
    EXPECT_EQ(back.cluster, "mine");
    EXPECT_EQ(back.cluster_hash, 5u);
    using Who = std::decay_t<decltype(who)>;
    ASSERT_TRUE(std::holds_alternative<Who>(back.who));
    EXPECT_TRUE(same(who, std::get<Who>(back.who)));
  };
  check(filled<TaskHello>());
  check(filled<ClientHello>());
  check(filled<ChannelHello>());
  check(filled<ShardPeerHello>());
}

TEST(SessionCodec, AnswersComeBackTheSame) {
  const auto welcome = filled<Welcome>();
  EXPECT_TRUE(same(welcome, std::get<Welcome>(expect_ok(decode_hello_answer(FrameType::kWelcome, encode(welcome))))));
  const auto refused = filled<Refused>();
  EXPECT_TRUE(same(refused, std::get<Refused>(expect_ok(decode_hello_answer(FrameType::kRefused, encode(refused))))));
  EXPECT_FALSE(decode_hello_answer(FrameType::kPush, encode(welcome)));
}

TEST(SessionCodec, AnOverlongRefusalLosesItsEndAndStillFits) {
  EXPECT_LE(encode(Refused{ErrorCode::kConfig, std::string(1 << 20, 'x')}).size(), kMaxControlBytes);
}

TEST(DataCodec, EveryMessageComesBackTheSameFromOneScratchBuffer) {
  ScratchBuffer scratch;
  for (int round = 0; round < 2; ++round) {  // what one message leaves behind must not show in the next
    EXPECT_TRUE(same(filled<Push>(), expect_ok(decode_push(encode(filled<Push>(), scratch)))));
    EXPECT_TRUE(same(filled<Pull>(), expect_ok(decode_pull(encode(filled<Pull>(), scratch)))));
    EXPECT_TRUE(same(filled<Parameters>(), expect_ok(decode_parameters(encode(filled<Parameters>(), scratch)))));
    EXPECT_TRUE(same(filled<Acknowledge>(), expect_ok(decode_acknowledge(encode(filled<Acknowledge>(), scratch)))));
    EXPECT_TRUE(same(filled<Staged>(), expect_ok(decode_staged(encode(filled<Staged>(), scratch)))));
    EXPECT_TRUE(same(filled<Commit>(), expect_ok(decode_commit(encode(filled<Commit>(), scratch)))));
    EXPECT_TRUE(same(filled<PacerNews>(), expect_ok(decode_pacer_news(encode(filled<PacerNews>(), scratch)))));
    EXPECT_TRUE(same(filled<Mark>(), expect_ok(decode_mark(encode(filled<Mark>(), scratch)))));
    EXPECT_TRUE(same(filled<MarkTaken>(), expect_ok(decode_mark_taken(encode(filled<MarkTaken>(), scratch)))));
    EXPECT_TRUE(same(filled<Cut>(), expect_ok(decode_cut(encode(filled<Cut>(), scratch)))));
    EXPECT_TRUE(same(Acknowledge{}, expect_ok(decode_acknowledge(encode(Acknowledge{}, scratch)))));
  }
}

TEST(DataCodec, TheLargestMessagesFitTheControlPart) {
  ScratchBuffer scratch;
  Push push;
  for (std::size_t i = 0; i < kMaxVisited; ++i) push.visited.push_back(Interval{i, i + 1});
  EXPECT_EQ(expect_ok(decode_push(encode(push, scratch))).visited.size(), kMaxVisited);
  Commit commit;
  for (std::uint32_t rank = 0; rank < kMaxRoster; ++rank) commit.members.insert(Rank(rank));
  EXPECT_EQ(expect_ok(decode_commit(encode(commit, scratch))).members, commit.members);
  EXPECT_LE(encode(commit, scratch).size(), 256U) << "a commit goes to every shard at each step";
  PacerNews news;
  news.roster.members.resize(kMaxMembers);
  EXPECT_EQ(expect_ok(decode_pacer_news(encode(news, scratch))).roster.members.size(), kMaxMembers);
}

TEST(DataCodec, APushIsReadIntoOneThatWasThereBefore) {
  ScratchBuffer scratch;
  Push push = filled<Push>();
  push.visited = {{0, 1}, {2, 3}, {4, 5}};
  Push fewer = filled<Push>();
  fewer.visited = {{6, 7}};
  ASSERT_TRUE(decode_push(encode(fewer, scratch), push));
  EXPECT_TRUE(same(fewer, push));
}

TEST(DataCodec, MessagesAreReadFromAnyAlignment) {
  ScratchBuffer scratch;
  const auto push = filled<Push>();
  const Bytes bytes = encode(push, scratch);
  for (std::size_t shift = 0; shift < 8; ++shift) {
    std::vector<std::byte> shifted(bytes.size() + shift);
    std::copy(bytes.begin(), bytes.end(), shifted.begin() + static_cast<std::ptrdiff_t>(shift));
    EXPECT_TRUE(same(push, expect_ok(decode_push(Bytes(shifted).subspan(shift)))));
  }
}

TEST(DataCodec, EnumsOutOfRangeAreRefused) {
  ScratchBuffer scratch;
  Parameters parameters;
  parameters.outcome = static_cast<PushOutcome>(7);
  EXPECT_FALSE(decode_parameters(encode(parameters, scratch)));
}

}  // namespace
}  // namespace disttrain::wire
