// The keys of the messages between a worker and its trainer belong to kTrainerProtocol: a package disttrain of another
// version may have other keys. protocol_keys.json lists them for each number of the protocol.
// tests/python/fake_worker.py compares what the package sends with the same list.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "common/layout.h"
#include "engine/trainer/trainer_protocol.h"

namespace disttrain::workerd::test {
namespace {

using nlohmann::json;

constexpr char kAdvice[] =
    "the keys of a message have changed: add 1 to kTrainerProtocol and to PROTOCOL in "
    "python/disttrain/connection.py, and add the new keys to protocol_keys.json under the new number";

json keys_of_this_protocol() {
  std::ifstream file(DISTTRAIN_PROTOCOL_KEYS);
  const json all = json::parse(file);
  return all.at(std::to_string(kTrainerProtocol));
}

std::vector<std::string> keys_of(const json& message) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : message.items())
    if (key != "type") keys.push_back(key);
  return keys;
}

TEST(ProtocolKeys, OfTheWorkersMessagesAreThoseOfTheProtocol) {
  Layout layout;
  TrainerStart start;
  start.spare_gradients = Arena::Place();
  start.next = SharedColumn();
  json sent = json::object();
  for (const json& message :
       {welcome_message({}, 1, 1), open_message(layout), values_message({}), start_message(start), end_message()})
    sent[message.at("type").get<std::string>()] = keys_of(message);
  EXPECT_EQ(sent, keys_of_this_protocol().at("worker")) << kAdvice;
}

TEST(ProtocolKeys, OfTheTrainersMessagesAreThoseOfTheProtocol) {
  const json values = {{"protocol", kTrainerProtocol},
                       {"sdk", "1"},
                       {"variables", json::array({json::array({"w", json::array({1}), "trainable"})})},
                       {"metrics", json::array()},
                       {"records", 1},
                       {"evaluation_records", 0},
                       {"evaluates", false},
                       {"predicts", false},
                       {"clears_ahead", false},
                       {"number", 1},
                       {"end", 1},
                       {"loss_sum", 1.0},
                       {"message", "why"}};
  const json messages = keys_of_this_protocol().at("trainer");
  ASSERT_FALSE(messages.empty());
  for (const auto& [type, keys] : messages.items()) {
    json message = {{"type", type}};
    for (const json& key : keys) message[key.get<std::string>()] = values.at(key.get<std::string>());
    const auto parsed = parse_trainer_message({message.dump(), {}});
    EXPECT_TRUE(parsed.has_value()) << parsed.error().message << "; " << kAdvice;
    for (const json& key : keys) {
      json lacking = message;
      lacking.erase(key.get<std::string>());
      EXPECT_FALSE(parse_trainer_message({lacking.dump(), {}}).has_value())
          << type << " without " << key << "; " << kAdvice;
    }
  }
}

}  // namespace
}  // namespace disttrain::workerd::test
