// Compares token ids with those of the Python packages tokenizers and sentencepiece, which tests/data/tokens/make.py
// has written, and checks what is refused.
#include "workerd/input/tokens/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace disttrain::input {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

const std::string kFolder = DISTTRAIN_TEST_DATA "/tokens/";

std::string content_of(const std::string& name) {
  std::ifstream file(kFolder + name, std::ios::binary);
  EXPECT_TRUE(file) << name;
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

Result<std::shared_ptr<const Tokenizer>> read(const std::string& name) {
  return name.ends_with(".json") ? read_tokenizer_json(content_of(name)) : read_sentencepiece_model(content_of(name));
}

std::vector<std::int32_t> with_those_around(const Tokenizer& tokenizer, const std::string& text) {
  std::vector<std::int32_t> ids = tokenizer.before();
  const Status ok = tokenizer.encode(text, ids);
  EXPECT_TRUE(ok) << ok.error().message;
  ids.insert(ids.end(), tokenizer.after().begin(), tokenizer.after().end());
  return ids;
}

class TokenizerFile : public testing::TestWithParam<std::string> {};

TEST_P(TokenizerFile, GivesTheIdsOfTheOriginal) {
  const auto tokenizer = read(GetParam());
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  std::ifstream lines(kFolder + "expected.jsonl");
  std::string line;
  int texts = 0;
  for (; std::getline(lines, line); ++texts) {
    const json expected = json::parse(line);
    const std::string text = expected.at("text");
    const auto ids = with_those_around(**tokenizer, text);
    EXPECT_EQ(json(ids), expected.at("ids").at(GetParam())) << "the text " << expected.at("text").dump();
    for (const std::int32_t id : ids) EXPECT_LT(id, (*tokenizer)->size());
  }
  EXPECT_GT(texts, 150);
}

INSTANTIATE_TEST_SUITE_P(, TokenizerFile,
                         testing::Values("gpt2.json", "roberta.json", "llama3.json", "llama2.json", "bert.json",
                                         "bert_cased.json", "unigram.json", "mixed.json", "unigram.model", "bpe.model",
                                         "bpe_symbols.model", "unigram_bytes.model"),
                         [](const auto& file) {
                           std::string name = file.param;
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

// A valid tokenizer, to which `patch` (RFC 7386) is applied.
json patched(const json& patch) {
  json file = json::parse(R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}})");
  file.merge_patch(patch);
  return file;
}
std::string why_refused(const json& patch) {
  const auto tokenizer = read_tokenizer_json(patched(patch).dump());
  return tokenizer ? "accepted" : tokenizer.error().message;
}

TEST(TokenizerJson, UnknownPartsAreRefusedByName) {
  EXPECT_EQ(why_refused(json::object()), "accepted");
  EXPECT_THAT(why_refused({{"model", {{"type", "WordLevel"}}}}), HasSubstr("model \"WordLevel\" isn't supported"));
  EXPECT_THAT(why_refused({{"model", {{"end_of_word_suffix", "</w>"}}}}), HasSubstr("end_of_word_suffix \"</w>\""));
  EXPECT_THAT(why_refused({{"model", {{"dropout", 0.1}}}}), HasSubstr("dropout \"0.1\""));
  EXPECT_THAT(why_refused({{"normalizer", {{"type", "Precompiled"}}}}),
              HasSubstr("take the tokenizer's SentencePiece"));
  EXPECT_THAT(why_refused({{"normalizer", {{"type", "Nmt"}}}}), HasSubstr("normalizer \"Nmt\""));
  EXPECT_THAT(why_refused({{"pre_tokenizer", {{"type", "UnicodeScripts"}}}}), HasSubstr("\"UnicodeScripts\""));
  EXPECT_THAT(why_refused({{"post_processor", {{"type", "Other"}}}}), HasSubstr("post_processor \"Other\""));
  EXPECT_THAT(why_refused({{"added_tokens", {{{"id", 3}, {"content", "<x>"}, {"single_word", true}}}}}),
              HasSubstr("single_word of \"<x>\""));
  EXPECT_THAT(why_refused({{"pre_tokenizer",
                            {{"type", "Split"}, {"behavior", "Isolated"}, {"pattern", {{"Regex", "(unclosed"}}}}}}),
              HasSubstr("the regular expression \"(unclosed\" can't be used"));
}

TEST(TokenizerJson, CorruptFilesAreRefused) {
  for (const char* text :
       {"", "[]", "{", "{\"model\": 3}", "{\"model\": {\"type\": \"BPE\", \"vocab\": [], \"merges\": []}}"})
    EXPECT_FALSE(read_tokenizer_json(text)) << text;
  EXPECT_THAT(why_refused({{"model", {{"merges", {"a c"}}}}}), HasSubstr("\"c\" isn't in the vocabulary"));
  EXPECT_THAT(why_refused({{"model", {{"merges", {"a b c"}}}}}), HasSubstr("doesn't consist of two pieces"));
  EXPECT_THAT(why_refused({{"model", {{"vocab", {{"a", -1}}}}}}), HasSubstr("the id -1"));
  EXPECT_THAT(why_refused({{"model", {{"vocab", {{"a", 1.5}}}}}}), HasSubstr("the id 1.5"));
  json nested = {{"type", "NFC"}};
  for (int i = 0; i < 100; ++i) nested = {{"type", "Sequence"}, {"normalizers", {nested}}};
  EXPECT_THAT(why_refused({{"normalizer", nested}}), HasSubstr("inside each other"));
}

TEST(TokenizerJson, MergesMayBePairs) {
  const auto tokenizer = read_tokenizer_json(patched(json::parse(R"({"model": {"merges": [["a", "b"]]}})")).dump());
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_THAT(with_those_around(**tokenizer, "abba"), ElementsAre(2, 1, 0));
}

TEST(TokenizerText, ThatIsNotUtf8IsRefused) {
  const auto tokenizer = read("gpt2.json");
  std::vector<std::int32_t> ids;
  const Status ok = (*tokenizer)->encode("ab\xff", ids);
  ASSERT_FALSE(ok);
  EXPECT_THAT(ok.error().message, HasSubstr("isn't UTF-8 at its byte 2"));
}

TEST(SentencePieceModel, CorruptFilesAreRefused) {
  const std::string model = content_of("unigram.model");
  EXPECT_FALSE(read_sentencepiece_model(""));
  EXPECT_FALSE(read_sentencepiece_model("no model"));
  EXPECT_FALSE(read_sentencepiece_model(std::string_view(model).substr(0, model.size() / 2)));
}

}  // namespace
}  // namespace disttrain::input
