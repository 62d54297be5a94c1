// Damages messages. For any bytes, every decoder must return either an error with a text, or a value that can be
// encoded and decoded again.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <type_traits>

#include "tests/transport/wire/every_field.h"
#include "transport/wire/codec.h"

namespace disttrain::wire {
namespace {

using Message = std::vector<std::byte>;

constexpr int kRoundsPerMessage = 400;

// How many inputs the decoders have refused, and how many they have read.
struct Tally {
  int refused = 0;
  int read = 0;
};

Message copy_of(Bytes bytes) {
  return {bytes.begin(), bytes.end()};
}

// Checks what codec.h promises for any bytes: either an error that says what is wrong, or a value that doesn't change
// when it is encoded and decoded. The error is kData; for a control message that only a later version knows, it is
// kConfig.
template <typename Decode, typename Encode>
void expect_error_or_value(Tally& tally, const char* what, Bytes bytes, const Decode& decode, const Encode& encode) {
  const auto value = decode(bytes);
  if (!value) {
    const bool is_of_control = std::is_same_v<std::decay_t<decltype(*value)>, ControlMessage>;
    const bool is_newer = is_of_control && value.error().message.ends_with("which this version doesn't know");
    EXPECT_EQ(value.error().code, is_newer ? ErrorCode::kConfig : ErrorCode::kData)
        << what << ": " << value.error().message;
    EXPECT_GT(value.error().message.size(), 10u) << what;
    ++tally.refused;
    return;
  }
  ++tally.read;
  const Message once = encode(*value);
  const auto again = decode(Bytes(once));
  ASSERT_TRUE(again) << what << " was read once and not twice: " << again.error().message;
  EXPECT_TRUE(encode(*again) == once) << what << " is another one when it is read twice";
}

Tally decode_as_everything(Bytes bytes) {
  Tally tally;
  const auto expect = [&](const char* what, const auto& decode, const auto& encode) {
    expect_error_or_value(tally, what, bytes, decode, encode);
  };
  expect(
      "a control message", [](Bytes b) { return decode_control(FrameType::kBlob, {}, b); },
      [](const ControlMessage& m) { return encode(m)->bytes; });
  expect("a hello", decode_hello, [](const Hello& m) { return encode(m); });
  const auto encode_answer = [](const HelloAnswer& answer) {
    return std::visit([](const auto& m) { return encode(m); }, answer);
  };
  for (const FrameType type : {FrameType::kWelcome, FrameType::kRefused})
    expect(
        "an answer to a hello", [type](Bytes b) { return decode_hello_answer(type, b); }, encode_answer);
  static ScratchBuffer scratch;
  const auto encode_data = [](const auto& m) { return copy_of(encode(m, scratch)); };
  expect(
      "a push", [](Bytes b) { return decode_push(b); }, encode_data);
  expect("a pull", decode_pull, encode_data);
  expect("parameters", decode_parameters, encode_data);
  expect("an acknowledgement", decode_acknowledge, encode_data);
  expect("a staged set", decode_staged, encode_data);
  expect("a commit", decode_commit, encode_data);
  expect("pacer's news", decode_pacer_news, encode_data);
  expect("a mark", decode_mark, encode_data);
  expect("a mark's answer", decode_mark_taken, encode_data);
  expect("a cut", decode_cut, encode_data);
  return tally;
}

template <std::size_t... I>
std::vector<Message> all_control_messages(std::index_sequence<I...>) {
  return {encode(ControlMessage(filled<std::variant_alternative_t<I, ControlMessage>>()))->bytes...};
}

std::vector<Message> all_messages() {
  auto all = all_control_messages(std::make_index_sequence<std::variant_size_v<ControlMessage>>());
  Hello hello;
  hello.who = filled<TaskHello>();
  all.push_back(encode(hello));
  hello.who = filled<ShardPeerHello>();
  all.push_back(encode(hello));
  all.push_back(encode(filled<Welcome>()));
  ScratchBuffer scratch;
  const auto add = [&all](Bytes bytes) { all.emplace_back(bytes.begin(), bytes.end()); };
  add(encode(filled<Push>(), scratch));
  add(encode(filled<Parameters>(), scratch));
  add(encode(filled<Staged>(), scratch));
  add(encode(filled<Commit>(), scratch));
  add(encode(filled<PacerNews>(), scratch));
  add(encode(filled<Pull>(), scratch));
  add(encode(filled<Acknowledge>(), scratch));
  add(encode(filled<Mark>(), scratch));
  add(encode(filled<MarkTaken>(), scratch));
  add(encode(filled<Cut>(), scratch));
  return all;
}

TEST(WireFuzz, DamagedMessagesAreAnErrorOrAValue) {
  std::mt19937_64 random(3);  // a failing round repeats with the same seed
  for (const Message& good : all_messages()) {
    Tally tally;
    for (int round = 0; round < kRoundsPerMessage; ++round) {
      Message bad = good;
      switch (random() % 4) {
        case 0:
          bad.resize(random() % (bad.size() + 1));
          break;
        case 1:
          bad.resize(bad.size() + random() % 64, static_cast<std::byte>(random()));
          break;
        default:
          break;
      }
      // Half of the damage flips single bits anywhere. The other half hits the first words, which hold pointers and
      // sizes.
      for (unsigned n = 1 + random() % 6; n > 0 && !bad.empty(); --n) {
        if (random() % 2 == 0)
          bad[random() % bad.size()] ^= static_cast<std::byte>(1u << (random() % 8));
        else
          bad[random() % std::min<std::size_t>(bad.size(), 64)] = static_cast<std::byte>(random());
      }
      const Tally round_tally = decode_as_everything(bad);
      tally.refused += round_tally.refused;
      tally.read += round_tally.read;
      if (testing::Test::HasFailure()) FAIL() << "round " << round << " of a message of " << good.size() << " bytes";
    }
    // Some damaged inputs must be refused, and others must be read. Otherwise the damage is too heavy or too light for
    // a useful test.
    EXPECT_GT(tally.read, 0) << "of a message of " << good.size() << " bytes";
    EXPECT_GT(tally.refused, 0) << "of a message of " << good.size() << " bytes";
  }
}

TEST(WireFuzz, RandomBytesAreAnErrorOrAValue) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 5000; ++round) {
    Message bytes(random() % 256);
    for (std::byte& b : bytes) b = static_cast<std::byte>(random());
    // With a valid segment table, the decoder reads more of the bytes before it refuses them.
    if (bytes.size() > 16 && round % 2 == 0) {
      const std::uint64_t table = static_cast<std::uint64_t>(bytes.size() / 8 - 1) << 32;
      for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<std::byte>(table >> (8 * i));
      bytes.resize(bytes.size() / 8 * 8);
    }
    decode_as_everything(bytes);
    if (testing::Test::HasFailure()) FAIL() << "round " << round;
  }
}

// A small message that claims to hold a huge list. A decoder without limits would build this list in memory.
TEST(WireFuzz, SmallBytesDoNotMakeBigValues) {
  Message bytes(4096);
  // The words are the segment table, the root pointer to a struct of 1 data word and 1 pointer, and this struct. Its
  // pointer leads to a list of 2^29 - 1 structs without any bytes: a composite list, whose tag names this number.
  const std::uint64_t words[] = {static_cast<std::uint64_t>(4096 / 8 - 1) << 32,
                                 0x0001'0001'0000'0000,
                                 25 /* logLines */,
                                 0x0001'0001'0000'0000,
                                 0,
                                 0x0000'0007'0000'0001,
                                 (std::uint64_t{0x1fff'ffff} << 2)};
  std::memcpy(bytes.data(), words, sizeof words);
  decode_as_everything(bytes);
  const auto message = decode_control(FrameType::kControl, bytes, {});
  ASSERT_FALSE(message) << "read as " << name_of(*message);
  EXPECT_EQ(message.error().code, ErrorCode::kData);
}

}  // namespace
}  // namespace disttrain::wire
