#include "common/checkpoint/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/common/checkpoint/memory_files.h"

namespace disttrain::checkpoint {
namespace {

Result<TensorTable> read(const std::string& content) {
  MemoryFiles files;
  EXPECT_TRUE(write_text(files, "/f", content));
  return read_header(**files.open("/f"), "/f");
}

std::string file_of(const std::string& json, std::size_t data_bytes) {
  std::string content(8, '\0');
  const std::uint64_t length = json.size();
  std::memcpy(content.data(), &length, sizeof(length));
  return content + json + std::string(data_bytes, 'x');
}

TEST(Safetensors, HeaderComesBackAsItWas) {
  const std::vector<Tensor> tensors = {{"b \"quoted\"", DType::kF32, {2, 3}, 0, 24},
                                       {"a", DType::kBF16, {}, 24, 26},
                                       {"empty", DType::kF16, {0, 4}, 26, 26}};
  const std::string header = encode_header(tensors, {{"format", "pt"}});
  EXPECT_EQ(header.size() % 8, 0u);
  const Result<TensorTable> table = read(header + std::string(26, 'x'));
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(table->tensors, tensors);
  EXPECT_EQ(table->data_begin, header.size());
  EXPECT_EQ(table->metadata.at("format"), "pt");
}

TEST(Safetensors, AFileThatHoldsOtherDtypesTooCanBeRead) {
  const Result<TensorTable> table = read(file_of(
      R"({"steps":{"dtype":"I64","shape":[],"data_offsets":[0,8]},"a":{"dtype":"BOOL","shape":[3],"data_offsets":[8,11]}})",
      11));
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(table->tensors[0].dtype, DType::kI64);
  EXPECT_EQ(table->tensors[1].dtype, DType::kBool);
}

// If the time grew with the square of the number of tensors, this test would take ten minutes.
TEST(Safetensors, AHeaderWithManyTensorsIsRead) {
  std::vector<Tensor> tensors;
  for (std::uint64_t i = 0; i < 200'000; ++i) tensors.push_back({"t" + std::to_string(i), DType::kU8, {1}, i, i + 1});
  const Result<TensorTable> table = read(encode_header(tensors, {}) + std::string(tensors.size(), 'x'));
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(table->tensors.size(), tensors.size());
}

TEST(Safetensors, FilesOfTorchSaveAreNamedWithTheWayToConvertThem) {
  const std::string zip("PK\3\4\x14\0\0\0\0\0\0\0", 12);
  const std::string pickle("\x80\2\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19.", 16);
  for (const std::string& content : {zip, pickle}) {
    const Result<TensorTable> table = read(content);
    ASSERT_FALSE(table);
    EXPECT_EQ(table.error().code, ErrorCode::kConfig);
    for (const char* word : {"torch.save()", ".pth", "torch.load(\"f\"", "safetensors.torch.save_file("})
      EXPECT_NE(table.error().message.find(word), std::string::npos) << table.error().message;
  }
  // 640 and 896 are lengths of headers that begin with the bytes of a pickle.
  const Result<TensorTable> table = read(file_of("{" + std::string(639, ' '), 0));
  EXPECT_NE(table.error().message.find("JSON"), std::string::npos) << table.error().message;
}

TEST(Safetensors, EachBrokenRuleIsRefusedWithTheFileAndTheReason) {
  const std::string good = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  ASSERT_TRUE(read(file_of(good, 8)));
  struct Case {
    std::string content;
    const char* word;
  };
  const std::vector<Case> cases = {
      {"short", "short"},
      {std::string(8, '\xff') + good, "header"},
      {file_of(good, 7), "end at byte"},
      {file_of(good, 9), "end at byte"},
      {file_of(" " + good, 8), "begin with {"},
      {file_of("{", 0), "JSON"},
      {file_of(
           R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
           8),
       "twice"},
      {file_of(R"({"a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8), "twice"},
      {file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})", 12), "begins at byte 4"},
      {file_of(
           R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
           8),
       "begins at byte 4"},
      {file_of(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8),
       "its shape needs another number of bytes"},
      {file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", 8),
       "its shape needs another number of bytes"},
      {file_of(R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})", 0),
       "its shape needs another number of bytes"},
      {file_of(R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", 8), "shape"},
      {file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"more":1}})", 8), "and nothing else"},
      {file_of(R"({"a":{"dtype":"F6","shape":[1],"data_offsets":[0,8]}})", 8), "F6"},
      {file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4,8]}})", 8), "two data_offsets"},
      {file_of(R"({"a":{"dtype":"F32","shape":[[2]],"data_offsets":[0,8]}})", 8), "and nothing else"},
      {file_of(R"({"a":{"dtype":["F32"],"shape":[2],"data_offsets":[0,8]}})", 8), "and nothing else"},
      {file_of(R"({"a":{"dtype":"F32","shape":{"b":2},"data_offsets":[0,8]}})", 8), "and nothing else"},
      {file_of(R"({"a":{"dtype":"F32","shape":2,"data_offsets":[0,8]}})", 8), "and nothing else"},
      {file_of(R"({"a":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}})", 8), "and nothing else"},
      {file_of(R"({"a":{"shape":[2],"data_offsets":[0,8]}})", 8), "must have dtype"},
      {file_of(R"({"a":{"dtype":"F32","data_offsets":[0,8]}})", 8), "must have dtype"},
      {file_of(R"({"a":{"dtype":"F32","shape":[2],"shape":[2],"data_offsets":[0,8]}})", 8), "twice"},
      {file_of(R"({"a":[1]})", 8), "must have dtype"},
      {file_of(R"({"a":null})", 8), "must have dtype"},
      {file_of(R"({"a":)" + std::string(100'000, '{'), 0), "JSON"},
      {file_of(R"({"a":)" + std::string(100'000, '['), 0), "nested"},
      {file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}})", 8), "JSON"},
      {file_of(R"({"__metadata__":{},"__metadata__":{}})", 0), "twice"},
      {file_of(R"({"__metadata__":{"n":"1","n":"1"}})", 0), "twice"},
      {file_of(R"({"__metadata__":{"n":{"m":"1"}}})", 0), "string"},
      {file_of(R"({"__metadata__":["n"]})", 0), "object"},
      {file_of(R"({"__metadata__":{"n":1},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8), "string"},
  };
  for (const Case& c : cases) {
    const Result<TensorTable> table = read(c.content);
    ASSERT_FALSE(table) << c.word << ": " << c.content;
    EXPECT_NE(table.error().message.find(c.word), std::string::npos) << table.error().message;
    EXPECT_NE(table.error().message.find("/f"), std::string::npos) << table.error().message;
  }
}

}  // namespace
}  // namespace disttrain::checkpoint
