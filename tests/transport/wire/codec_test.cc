// Encodes and decodes every message with every field. Also tests the bounds, and malformed bytes.
#include "transport/wire/codec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "tests/transport/wire/every_field.h"

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
  EXPECT_TRUE(std::get<Evaluated>(there_and_back(Evaluated{})).metrics.empty());
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
  Evaluated evaluated;
  evaluated.metrics.resize(kMaxMetrics + 1);
  ASSERT_FALSE(encode(evaluated));
  EXPECT_NE(encode(evaluated).error().message.find("its list of metrics has 65 entries; at most 64 are allowed"),
            std::string::npos);
  JobDescribed described;
  described.model.columns.resize(kMaxColumns + 1);
  EXPECT_FALSE(encode(described));
  described.model.columns.clear();
  described.model.metrics.resize(kMaxMetrics + 1);
  EXPECT_FALSE(encode(described));
}

// The fields `hasAccuracy` and `accuracy` of Evaluated are retired, so encode() doesn't write them. This test writes
// them into the encoded message. They are at fixed distances from `loss`.
TEST(ControlCodec, AccuracyOfAnOlderWriterIsAMetric) {
  Evaluated message;
  message.loss = 1.2345;
  std::vector<std::byte> bytes = expect_ok(encode(message)).bytes;
  const auto loss = std::as_bytes(std::span(&message.loss, 1));
  const auto at = std::search(bytes.begin(), bytes.end(), loss.begin(), loss.end());
  ASSERT_NE(at, bytes.end());
  *(at - 20) |= std::byte{2};
  const double accuracy = 0.75;
  std::memcpy(&*(at + 8), &accuracy, sizeof accuracy);
  const auto back = std::get<Evaluated>(expect_ok(decode_control(FrameType::kBlob, {}, bytes)));
  EXPECT_EQ(back.metrics, (std::vector<MetricValue>{{"accuracy", 0.75}}));
  EXPECT_EQ(back.loss, 1.2345);
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
  EXPECT_NE(why_refused(ledger).find("must ascend with gaps"), std::string::npos);
  // The chief would open all epochs before this one.
  for (const std::uint32_t epoch : {UINT32_MAX, UINT32_MAX - 1, std::uint32_t{3 + kMaxEpochs}}) {
    auto far = filled<Heartbeat>();
    far.pacer->complete_epochs = epoch == UINT32_MAX ? UINT32_MAX : 3;
    far.pacer->ledger[0].epoch = epoch;
    EXPECT_NE(why_refused(far).find("complete epochs has epoch"), std::string::npos) << epoch;
  }

  auto model = filled<JobDescribed>();
  model.model.variables[0].shape = {std::uint64_t{1} << 40, std::uint64_t{1} << 40};
  EXPECT_NE(why_refused(model).find("immense"), std::string::npos);

  model = filled<JobDescribed>();
  for (const Bounds bounds : {Bounds{2.0, 1.0}, Bounds{std::nan(""), 1.0}, Bounds{0.0, std::nan("")}}) {
    model.model.variables[0].bounds = bounds;
    EXPECT_NE(why_refused(model).find("has bounds from"), std::string::npos);
  }
  model.model.variables[0].dtype = DType::kFloat32;
  for (const Bounds bounds : {Bounds{0.0, 1e300}, Bounds{-1e39, 0.0}, Bounds{0.1, 1.0}}) {
    model.model.variables[0].bounds = bounds;
    EXPECT_NE(why_refused(model).find("bounds that aren't values of its dtype, float32"), std::string::npos);
  }

  model = filled<JobDescribed>();
  model.model.columns[1].shape = {std::uint64_t{1} << 20, std::uint64_t{1} << 20};
  EXPECT_NE(why_refused(model).find("has an empty or an immense shape"), std::string::npos);
  model.model.columns[1].shape = {kMaxElements};
  EXPECT_NE(why_refused(model).find("a record has more than"), std::string::npos) << "with the other column too many";
  model.model.columns[1].shape = {3, 0};
  EXPECT_NE(why_refused(model).find("has an empty or an immense shape"), std::string::npos);
  model.model.columns[1].shape = {};
  EXPECT_NE(why_refused(model).find("is ragged and has no dimension"), std::string::npos);
  model.model.columns[1] = {.name = "x", .dtype = static_cast<DType>(8), .shape = {}};
  EXPECT_NE(why_refused(model).find("type of a column is 8; expected 0 to 7"), std::string::npos);

  model = filled<JobDescribed>();
  model.model.metrics[1].kind = static_cast<MetricKind>(9);
  EXPECT_NE(why_refused(model).find("kind of metric is 9; expected 0 to 8"), std::string::npos);
  model.model.metrics[1] = {.name = "a metric"};
  EXPECT_NE(why_refused(model).find("can't be named \"a metric\""), std::string::npos);
  model.model.metrics[1] = {.name = model.model.metrics[0].name};
  EXPECT_NE(why_refused(model).find("two metrics are named"), std::string::npos);

  auto metrics = filled<Heartbeat>();
  metrics.metrics[0].name = "a\nb";
  EXPECT_NE(why_refused(metrics).find("name of a metric isn't printable"), std::string::npos);
  metrics.metrics[0].name = "loss";
  EXPECT_NE(why_refused(metrics).find("can't be named \"loss\""), std::string::npos);
  auto evaluated = filled<Evaluated>();
  evaluated.metrics[0] = evaluated.metrics[1];
  EXPECT_NE(why_refused(evaluated).find("two metrics are named"), std::string::npos);

  auto lines = filled<LogLines>();
  lines.lines[1].level = 4;
  EXPECT_NE(why_refused(lines).find("log level 4"), std::string::npos);
}

// A text as another peer would send it. Our own encoder would truncate or refuse this text. In messages of many kinds,
// a text has the same place. So this function encodes a message of one kind, and replaces only the kind's number.
Result<ControlMessage> read_text_as(std::uint16_t kind, const std::string& text) {
  std::vector<std::byte> bytes = expect_ok(encode(StatusAnswer{text})).bytes;
  // The bytes begin with the segment table: one number for each segment and one more, rounded up to whole words. Behind
  // it come the root pointer and the word with the message's kind.
  const std::size_t segments = std::to_integer<std::size_t>(bytes[0]) + 1;
  const std::size_t kind_at = (segments / 2 + 1) * 8 + 8;
  bytes[kind_at] = static_cast<std::byte>(kind & 0xff);
  bytes[kind_at + 1] = static_cast<std::byte>(kind >> 8);
  return decode_control(FrameType::kBlob, {}, bytes);
}

constexpr std::uint16_t kSubmitJob = 25, kCloseJob = 18, kTaskFailed = 20, kAccusation = 21, kStatusRequest = 27,
                        kStopRequest = 29, kRefused = 32, kPauseJob = 33, kCheckpointFailed = 40, kSaveRequest = 41,
                        kCheckpointSaved = 42, kEventsRequest = 43, kResubmitRequest = 51;

TEST(ControlCodec, TextsOverTheirBoundAreRefusedByTheReader) {
  const std::pair<std::uint16_t, std::size_t> bounds[] = {
      {kSubmitJob, kMaxJobTomlBytes},   {kCloseJob, kMaxTextBytes},        {kTaskFailed, kMaxTextBytes},
      {kAccusation, kMaxTextBytes},     {kStatusRequest, kMaxTextBytes},   {kStopRequest, kMaxTextBytes},
      {kRefused, kMaxProblemsBytes},    {kPauseJob, kMaxTextBytes},        {kCheckpointFailed, kMaxTextBytes},
      {kSaveRequest, kMaxTextBytes},    {kCheckpointSaved, kMaxTextBytes}, {kEventsRequest, kMaxTextBytes},
      {kResubmitRequest, kMaxTextBytes}};
  for (const auto& [kind, most] : bounds) {
    EXPECT_TRUE(read_text_as(kind, std::string(most, 'x'))) << kind;
    const auto over = read_text_as(kind, std::string(most + 1, 'x'));
    ASSERT_FALSE(over) << kind;
    EXPECT_NE(over.error().message.find("has " + std::to_string(most + 1) + " bytes; at most " + std::to_string(most)),
              std::string::npos)
        << over.error().message;
  }
}

TEST(ControlCodec, OnesOwnSentencesAreCutRatherThanRefused) {
  const auto back = std::get<TaskFailed>(there_and_back(TaskFailed{JobId(1), {}, {}, std::string(64 << 20, 'x')}));
  EXPECT_EQ(back.reason.size(), kMaxTextBytes);
}

TEST(ControlCodec, SentencesAreMadePrintableAndNamesRefused) {
  const std::string evil = "\x1b]0;pwned\x07\n2026-01-01 00:00:00.000 info  chief/0 all is well";
  EXPECT_EQ(std::get<TaskFailed>(expect_ok(read_text_as(kTaskFailed, evil))).reason,
            "\\x1b]0;pwned\\x07\\n2026-01-01 00:00:00.000 info  chief/0 all is well");
  EXPECT_FALSE(read_text_as(kStopRequest, evil));
  EXPECT_FALSE(read_text_as(kCheckpointSaved, std::string("/a\0b", 4)));
  auto lines = filled<LogLines>();
  lines.lines[0].text = evil;
  EXPECT_EQ(std::get<LogLines>(there_and_back(lines)).lines[0].text,
            "\\x1b]0;pwned\\x07\n2026-01-01 00:00:00.000 info  chief/0 all is well")
      << "a line of a log may have lines of its own, which are indented where it is shown";
}

TEST(ControlCodec, TimesAndCountsOutOfBoundsAreRefusedByTheReader) {
  auto times = filled<Heartbeat>();
  times.in_phase = Duration(-1);
  EXPECT_NE(why_refused(times).find("the time in a phase is -1 ns"), std::string::npos);
  times.in_phase = Duration::max();
  EXPECT_NE(why_refused(times).find("the time in a phase"), std::string::npos);
  auto request = filled<StatusRequest>();
  request.wait_for_end = Duration::min();
  EXPECT_NE(why_refused(request).find("the time to wait"), std::string::npos);
  auto described = filled<JobDescribed>();
  described.train_records = kMaxRecords + 1;
  EXPECT_NE(why_refused(described).find("the number of records"), std::string::npos);
  described = filled<JobDescribed>();
  described.model.variables[0].shape = {kMaxElements};
  EXPECT_NE(why_refused(described).find("elements"), std::string::npos) << "with the other variable too many";
  auto shards = filled<CreateShards>();
  shards.layout.shards = 0xffffffff;
  EXPECT_NE(why_refused(shards).find("more shards than buckets"), std::string::npos);
  auto lease = filled<LeaseRequest>();
  lease.records_per_second = std::numeric_limits<double>::infinity();
  EXPECT_EQ(std::get<LeaseRequest>(there_and_back(lease)).records_per_second, 0.0) << "as one that isn't known";
}

// Many log lines whose pointers all lead to the same text. The message has 200 KB. If the decoder had no limit, the
// decoded lines would take 32 MB.
TEST(ControlCodec, PointersThatShareATargetAreRefused) {
  constexpr std::uint64_t kLines = 8000, kTextWords = kMaxTextBytes / 8;
  const auto struct_pointer = [](std::uint64_t offset, std::uint64_t data, std::uint64_t pointers) {
    return offset << 2 | data << 32 | pointers << 48;
  };
  std::vector<std::uint64_t> words = {0,
                                      struct_pointer(0, 1, 1),
                                      24 /* logLines */,
                                      struct_pointer(0, 1, 1),
                                      0,
                                      1 | std::uint64_t{7} << 32 | kLines * 3 << 35,
                                      kLines << 2 | std::uint64_t{2} << 32 | std::uint64_t{1} << 48};
  for (std::uint64_t line = 0; line < kLines; ++line) {
    const std::uint64_t behind_lines = (kLines - line - 1) * 3;
    words.insert(words.end(), {0, 0, 1 | behind_lines << 2 | std::uint64_t{2} << 32 | (kMaxTextBytes) << 35});
  }
  words.insert(words.end(), kTextWords, 0x7878787878787878);
  words.back() &= ~std::uint64_t{0} >> 8;
  words[0] = static_cast<std::uint64_t>(words.size() - 1) << 32;
  const auto one_line = decode_control(FrameType::kBlob, {}, std::as_bytes(std::span(words)));
  ASSERT_FALSE(one_line);
  EXPECT_NE(one_line.error().message.find("limit"), std::string::npos) << one_line.error().message;
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
  const auto bytes = encode(Refused{ErrorCode::kConfig, std::string(1 << 20, 'x')});
  EXPECT_LE(bytes.size(), kMaxControlBytes);
  EXPECT_TRUE(decode_hello_answer(FrameType::kRefused, bytes));
}

TEST(DataCodec, EveryMessageComesBackTheSameFromOneScratchBuffer) {
  ScratchBuffer scratch;
  for (int round = 0; round < 2; ++round) {  // one message must not leave content that shows up in the next
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
