// Damaged messages: every decoder answers any bytes with a value or an error. What is read can be written again.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "tests/transport/every_field.h"
#include "transport/wire/codec.h"

namespace disttrain::wire {
namespace {

using Message = std::vector<std::byte>;

constexpr int kRoundsPerMessage = 400;

void decode_as_everything(Bytes bytes) {
  if (const auto message = decode_control(FrameType::kControl, bytes, {})) {
    EXPECT_TRUE(encode(*message));
  }
  if (const auto hello = decode_hello(bytes)) encode(*hello);
  static_cast<void>(decode_hello_answer(FrameType::kWelcome, bytes));
  static_cast<void>(decode_hello_answer(FrameType::kRefused, bytes));
  static ScratchBuffer scratch;
  if (const auto m = decode_push(bytes)) encode(*m, scratch);
  if (const auto m = decode_pull(bytes)) encode(*m, scratch);
  if (const auto m = decode_parameters(bytes)) encode(*m, scratch);
  if (const auto m = decode_acknowledge(bytes)) encode(*m, scratch);
  if (const auto m = decode_staged(bytes)) encode(*m, scratch);
  if (const auto m = decode_commit(bytes)) encode(*m, scratch);
  if (const auto m = decode_pacer_news(bytes)) encode(*m, scratch);
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
  return all;
}

TEST(WireFuzz, DamagedMessagesAreAnErrorOrAValue) {
  std::mt19937_64 random(3);  // a failing round repeats with the same seed
  for (const Message& good : all_messages()) {
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
      // Half of the damage is to single bits, half to the words that hold pointers and sizes.
      for (unsigned n = 1 + random() % 6; n > 0 && !bad.empty(); --n) {
        if (random() % 2 == 0)
          bad[random() % bad.size()] ^= static_cast<std::byte>(1u << (random() % 8));
        else
          bad[random() % std::min<std::size_t>(bad.size(), 64)] = static_cast<std::byte>(random());
      }
      decode_as_everything(bad);
    }
  }
}

TEST(WireFuzz, RandomBytesAreAnErrorOrAValue) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 5000; ++round) {
    Message bytes(random() % 256);
    for (std::byte& b : bytes) b = static_cast<std::byte>(random());
    if (bytes.size() > 16 && round % 2 == 0) {  // with a good segment table more of them get further
      const std::uint64_t table = static_cast<std::uint64_t>(bytes.size() / 8 - 1) << 32;
      for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<std::byte>(table >> (8 * i));
      bytes.resize(bytes.size() / 8 * 8);
    }
    decode_as_everything(bytes);
  }
}

// A message whose list pointers all name the same few words: read naively it would grow beyond all bounds.
TEST(WireFuzz, SmallBytesDoNotMakeBigValues) {
  Message bytes(4096);
  // Segment table, a root pointer to a struct of 1 data word and 1 pointer, that pointer: a list of 2^29 - 1 structs of
  // no size (composite, tag says so many elements).
  const std::uint64_t words[] = {static_cast<std::uint64_t>(4096 / 8 - 1) << 32,
                                 0x0001'0001'0000'0000,
                                 25 /* logLines */,
                                 0x0001'0001'0000'0000,
                                 0,
                                 0x0000'0007'0000'0001,
                                 (std::uint64_t{0x1fff'ffff} << 2)};
  std::memcpy(bytes.data(), words, sizeof words);
  decode_as_everything(bytes);
}

}  // namespace
}  // namespace disttrain::wire
