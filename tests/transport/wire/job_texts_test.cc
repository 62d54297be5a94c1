// A job that the config reader accepts fits into a message. Otherwise tasks would drop the order to begin it, and the
// job would stand at the head of the queue.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "common/bounds.h"
#include "common/config/reader/reader.h"
#include "tests/transport/wire/every_field.h"
#include "transport/wire/codec.h"

namespace disttrain::wire {
namespace {

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const std::size_t at = text.find(what);
  return at == std::string::npos ? text : replaced(text.replace(at, what.size(), by), what, by);
}

constexpr char kMlp[] = "[model]\nbuiltin = \"mlp\"\nlayers = [4, 2]\n";
constexpr char kProgram[] = "[model]\nprogram = \"/step.pt2\"\n";
constexpr char kData[] = "[data]\npath = \"/d\"\nfiles = \"x*\"\n";
constexpr char kCsv[] = "[data]\nformat = \"csv\"\npath = \"/d\"\nfiles = \"x*\"\n";
constexpr char kLabelled[] = "[data.columns]\nx = { kind = \"numeric\" }\ny = { kind = \"label\" }\n";
constexpr char kCheckpoint[] = "[checkpoint]\ndirectory = \"/c\"\n";

// A job with the text TEXT at one place, as TOML writes it.
struct Place {
  const char* key;
  std::string toml;
};

std::vector<Place> places() {
  const std::string mlp = std::string(kMlp) + kData;
  const std::string columns = std::string(kProgram) + kCsv + "[data.columns]\ny = { kind = \"label\" }\n";
  const std::string tokens = std::string(kProgram) + replaced(kCsv, "csv", "jsonl") + "[data.columns]\n";
  const std::string evaluate = std::string(kMlp) + kData + kCheckpoint + "[evaluate]\n";
  return {
      {"job.name", mlp + "[job]\nname = \"TEXT\"\n"},
      {"model.builtin", std::string("[model]\nbuiltin = \"TEXT\"\n") + kData},
      {"model.program", std::string("[model]\nprogram = \"/TEXT\"\n") + kData},
      {"model.trainer", "[model]\ntrainer = [\"python3\", \"TEXT\"]\n"},
      {"model.folder", "[model]\ntrainer = [\"python3\"]\nfolder = \"/TEXT\"\n"},
      {"model.metrics", std::string(kMlp) + "metrics = { \"TEXT\" = \"top_1\" }\n" + kData},
      {"model.metrics.NAME", std::string(kMlp) + "metrics = { \"a\" = \"TEXT\" }\n" + kData},
      {"data.path", std::string(kMlp) + "[data]\npath = \"/TEXT\"\nfiles = \"x*\"\n"},
      {"data.files", std::string(kMlp) + "[data]\npath = \"/d\"\nfiles = \"TEXT\"\n"},
      {"data.labels", mlp + "labels = \"TEXT\"\n"},
      {"data.index", std::string(kProgram) + kCsv + "index = \"/TEXT\"\n" + kLabelled},
      {"data.tokenizer", std::string(kProgram) + replaced(kCsv, "csv", "text") + "window = 9\ntokenizer = \"/TEXT\"\n"},
      {"data.bucket_by", std::string(kProgram) + replaced(kCsv, "csv", "jsonl") +
                             "bucket_by = \"TEXT\"\n[data.columns]\n"
                             "\"TEXT\" = { kind = \"tokens\", limit = 9, length = 4 }\n"},
      {"data.missing", std::string(kProgram) + kCsv + "missing = [\"TEXT\"]\n" + kLabelled},
      {"data.columns", columns + "\"TEXT\" = { kind = \"numeric\" }\n"},
      {"data.columns.NAME of tokens",
       tokens + "\"TEXT\" = { kind = \"tokens\", limit = 9, length = 4, with_length = true }\n"},
      {"data.columns.NAME.from", columns + "x = { kind = \"numeric\", from = \"TEXT\" }\n"},
      {"data.columns.NAME.vocabulary", columns + "x = { kind = \"category\", vocabulary = [\"TEXT\"] }\n"},
      {"data.columns.NAME.strip",
       std::string(kProgram) + kCsv +
           "[data.columns]\nx = { kind = \"numeric\" }\ny = { kind = \"label\", strip = \"TEXT\" }\n"},
      {"data.columns.NAME.tokenizer", columns + "x = { kind = \"tokens\", length = 4, tokenizer = \"/TEXT\" }\n"},
      {"checkpoint.directory", mlp + "[checkpoint]\ndirectory = \"/TEXT\"\n"},
      {"checkpoint.init_from", mlp + "[checkpoint]\ninit_from = \"/TEXT\"\n"},
      {"checkpoint.init_map", mlp + "[checkpoint]\ninit_from = \"/i\"\ninit_map = { \"TEXT\" = \"b\" }\n"},
      {"checkpoint.init_map.NAME", mlp + "[checkpoint]\ninit_from = \"/i\"\ninit_map = { \"a\" = \"TEXT\" }\n"},
      {"evaluate.path", evaluate + "files = \"y*\"\npath = \"/TEXT\"\n"},
      {"evaluate.files", evaluate + "files = \"TEXT\"\n"},
      {"evaluate.labels", evaluate + "files = \"y*\"\nlabels = \"TEXT\"\n"},
      {"evaluate.metric", evaluate + "files = \"y*\"\nkeep_best = 1\nmetric = \"TEXT\"\n"},
  };
}

Result<JobConfig> read_with(const Place& place, const std::string& text) {
  const std::string job = place.key == std::string("job.name") ? "" : "[job]\nname = \"a\"\n";
  return config::read_job(replaced(job + "[train]\nbatch_size = 8\nsteps = 5\n" + place.toml, "TEXT", text));
}

Result<ControlMessage> there_and_back(const JobConfig& job) {
  EvaluateCheckpoint order;
  order.config = std::make_shared<const JobConfig>(job);
  const Result<EncodedControl> encoded = encode(ControlMessage(order));
  if (!encoded) return tl::unexpected(encoded.error());
  return decode_control(encoded->type, encoded->control(), encoded->payload());
}

TEST(JobTexts, WhatTheReaderAcceptsComesBackTheSame) {
  const std::string ordinary = "aB1";
  const std::vector<std::string> texts = {ordinary,
                                          "\\u0000",
                                          "a\\u001Bb",
                                          "a\\u009Bb",
                                          "a\\u200Eb",
                                          "a\\u2028b",
                                          "a\\u202Eb",
                                          "a\\u2066b",
                                          "\\uFEFFa",
                                          "a\\u00E4\\u6F22",
                                          std::string(kMaxTextBytes - 8, 'a'),
                                          std::string(kMaxTextBytes, 'a'),
                                          std::string(kMaxTextBytes + 1, 'a')};
  for (const Place& place : places()) {
    for (const std::string& text : texts) {
      const Result<JobConfig> job = read_with(place, text);
      if (!job) continue;
      const Result<ControlMessage> back = there_and_back(*job);
      ASSERT_TRUE(back) << place.key << ", " << text.substr(0, 20) << ": " << back.error().message;
      EXPECT_TRUE(same(*std::get<EvaluateCheckpoint>(*back).config, *job)) << place.key;
    }
    const bool is_a_choice = std::string(place.key).starts_with("model.builtin") ||
                             place.key == std::string("model.metrics.NAME") || place.key == std::string("job.name") ||
                             place.key == std::string("evaluate.metric");
    if (is_a_choice) continue;
    const Result<JobConfig> job = read_with(place, ordinary);
    EXPECT_TRUE(job) << place.key << " takes no text at all, so this test shows nothing: " << job.error().message;
  }
}

// The reader's own check, not the codec's, refuses these.
TEST(JobTexts, NamesThatHideTheirTextAreRefused) {
  for (const Place& place : places()) {
    const std::string key = place.key;
    if (key != "data.columns" && key != "checkpoint.init_map" && key != "checkpoint.init_map.NAME" &&
        key != "evaluate.metric")
      continue;
    for (const char* text : {"a\\u200Fb", "a\\u2029b", "a\\u202Ab", "a\\u2069b", "a\\uFEFFb"}) {
      const Result<JobConfig> job = read_with(place, text);
      ASSERT_FALSE(job) << key << " takes " << text;
      EXPECT_EQ(job.error().code, ErrorCode::kConfig);
      EXPECT_NE(job.error().message.find("without characters that are invisible or turn the direction"),
                std::string::npos)
          << job.error().message;
    }
    const Result<JobConfig> too_long = read_with(place, std::string(kMaxTextBytes + 1, 'a'));
    ASSERT_FALSE(too_long) << key << " takes too long a name";
  }
}

TEST(JobTexts, AShapeHasNoMoreDimensionsThanAMessageTakes) {
  std::string shape = "1";
  for (std::size_t i = 1; i <= kMaxDimensions; ++i) shape += ", 1";
  const Place place{"", std::string(kProgram) + kCsv +
                            "[data.columns]\nx = { kind = \"numeric\", shape = [TEXT] }\ny = { kind = \"label\" }\n"};
  const Result<JobConfig> job = read_with(place, shape);
  ASSERT_FALSE(job);
  EXPECT_NE(job.error().message.find("data.columns.x.shape"), std::string::npos) << job.error().message;
}

}  // namespace
}  // namespace disttrain::wire
