// Compares token ids with those of the Python packages tokenizers and sentencepiece, which tests/data/tokens/make.py
// has written, and checks what is refused.
#include "input/tokens/tokenizer.h"

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
  const std::string name(1000, 'x');
  EXPECT_THAT(why_refused({{"normalizer", {{"type", name}}}}),
              HasSubstr(std::string(100, 'x') + "...\" isn't supported"));
  EXPECT_THAT(why_refused({{"pre_tokenizer",
                            {{"type", "Split"}, {"behavior", "Isolated"}, {"pattern", {{"Regex", "(" + name}}}}}}),
              HasSubstr("...\" can't be used"));
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
  for (int i = 0; i < 18; ++i) nested = {{"type", "Sequence"}, {"normalizers", {nested}}};
  EXPECT_THAT(why_refused({{"normalizer", nested}}), HasSubstr("inside each other"));
}

json part(const char* type) {
  return {{"type", type}};
}
json doubling() {
  return {{"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", "aa"}};
}
json sequence(const char* key, const json& step, std::size_t count) {
  return {{"type", "Sequence"}, {key, json(std::vector<json>(count, step))}};
}
json unigram(const std::string& piece) {
  const json vocabulary = json::array({json::array({"<unk>", 0.0}), json::array({piece, -1.0})});
  return {{"model", {{"type", "Unigram"}, {"unk_id", 0}, {"vocab", vocabulary}}}};
}

std::string encode_error(const json& file, const std::string& text) {
  const auto tokenizer = read_tokenizer_json(file.dump());
  EXPECT_TRUE(tokenizer) << tokenizer.error().message;
  std::vector<std::int32_t> ids;
  const Status ok = tokenizer ? (*tokenizer)->encode(text, ids) : Status();
  return ok ? "" : ok.error().message;
}

// Twenty steps that double a text would make 20 GB of 20 KB.
TEST(TokenizerJson, TextsThatBecomeMuchLongerAreErrors) {
  const std::string text(20'000, 'a');
  json file = unigram("a");
  file["normalizer"] = sequence("normalizers", doubling(), 6);
  EXPECT_EQ(encode_error(file, text), "");
  file["normalizer"] = sequence("normalizers", doubling(), 24);
  EXPECT_THAT(encode_error(file, text), HasSubstr("bytes of a text of 20000 bytes, expected at most 64 times as many"));
  for (const json& pattern : {json{{"String", "a"}}, json{{"Regex", "a"}}}) {
    file["normalizer"] = {{"type", "Replace"}, {"pattern", pattern}, {"content", std::string(1'000'000, 'b')}};
    EXPECT_THAT(encode_error(file, text), HasSubstr("expected at most 64 times as many"));
  }
  file["normalizer"] = {{"type", "Prepend"}, {"prepend", std::string(1'000'000, 'b')}};
  EXPECT_THAT(encode_error(file, "a"), HasSubstr("expected at most 64 times as many"));
  file.erase("normalizer");
  file["pre_tokenizer"] = sequence("pretokenizers", {{"type", "ByteLevel"}, {"use_regex", false}}, 24);
  EXPECT_THAT(encode_error(file, "\u00e9" + text), HasSubstr("expected at most 64 times as many"));
  file["pre_tokenizer"] = {{"type", "Metaspace"}, {"replacement", std::string(1'000'000, 'b')}};
  EXPECT_THAT(encode_error(file, std::string(20'000, ' ')), HasSubstr("expected at most 64 times as many"));
}

// The parts between added tokens, and what normalising and cutting make of them, count together.
TEST(TokenizerJson, PartsOfATextThatBecomeMuchLongerAreAnError) {
  json file = unigram("a");
  file["added_tokens"] = json::array({{{"id", 2}, {"content", "<s>"}, {"normalized", false}}});
  file["normalizer"] = sequence("normalizers", doubling(), 16);
  EXPECT_EQ(encode_error(file, ""), "");
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "a<s>";
  EXPECT_THAT(encode_error(file, text), HasSubstr("bytes of a text of 4000 bytes, expected at most 64 times as many"));
  file = unigram("a");
  file["normalizer"] = sequence("normalizers", doubling(), 5);
  EXPECT_EQ(encode_error(file, std::string(4000, 'a')), "");
  file["pre_tokenizer"] = {{"type", "Metaspace"}, {"replacement", "bb"}, {"prepend_scheme", "always"}};
  EXPECT_THAT(encode_error(file, std::string(4000, 'a')), HasSubstr("of a text of 4000 bytes"));
}

TEST(TokenizerJson, ManyOrDeepPartsAreRefused) {
  json file = unigram("a");
  file["normalizer"] = sequence("normalizers", part("Lowercase"), 300);
  EXPECT_THAT(read_tokenizer_json(file.dump()).error().message,
              HasSubstr("normalizer has 301 parts, expected at most"));
  const std::string deep(1'000'000, '[');
  EXPECT_THAT(read_tokenizer_json("{\"model\":" + deep).error().message, HasSubstr("isn't JSON, or has more than"));
}

// With such pieces the time to tokenise a word grows with the square of its length.
TEST(TokenizerJson, LongPiecesAreRefused) {
  const std::string piece(1025, 'a');
  const json word_piece = {{"type", "WordPiece"},
                           {"unk_token", "u"},
                           {"continuing_subword_prefix", "##"},
                           {"max_input_chars_per_word", 10'000'000},
                           {"vocab", {{"u", 0}, {piece, 1}}}};
  json added = unigram("a");
  added["added_tokens"] = {{{"id", 2}, {"content", piece}}};
  for (const json& file : {unigram(piece), json{{"model", word_piece}}, added})
    EXPECT_THAT(read_tokenizer_json(file.dump()).error().message,
                HasSubstr("a token has 1025 bytes, expected at most 1024"));
}

// The time is linear in the length. Otherwise this test would take hours.
TEST(TokenizerJson, WordsMayBeLong) {
  const json model = {{"type", "WordPiece"},
                      {"unk_token", "u"},
                      {"continuing_subword_prefix", "##"},
                      {"max_input_chars_per_word", 10'000'000},
                      {"vocab", {{"u", 0}, {"a", 1}, {"##a", 2}, {"##ab", 3}, {"b", 4}}}};
  const auto tokenizer = read_tokenizer_json(json{{"model", model}}.dump());
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  std::vector<std::int32_t> ids;
  ASSERT_TRUE((*tokenizer)->encode(std::string(3'000'000, 'a') + "b", ids));
  ASSERT_EQ(ids.size(), 3'000'000U);
  EXPECT_EQ(ids.front(), 1);
  EXPECT_EQ(ids[1], 2);
  EXPECT_EQ(ids.back(), 3);
  ids.clear();
  ASSERT_TRUE((*tokenizer)->encode(std::string(3'000'000, 'a') + "c", ids));
  EXPECT_THAT(ids, ElementsAre(0));
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
