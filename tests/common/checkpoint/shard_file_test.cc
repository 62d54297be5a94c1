#include "common/checkpoint/shard_file.h"

#include <gtest/gtest.h>

#include "common/checkpoint/safetensors.h"
#include "tests/common/checkpoint/memory_files.h"
#include "tests/common/checkpoint/small_job.h"

namespace disttrain::checkpoint {
namespace {

class ShardFileTest : public testing::Test {
 protected:
  ShardFileTest() { EXPECT_TRUE(files_.make_directory("/job")); }
  OpenCheckpoint save_small(const Layout& layout, std::uint32_t slots = 1) {
    const Result<std::string> path = save(files_, "/job", layout, 1, 100, slots);
    EXPECT_TRUE(path) << path.error().message;
    return std::move(*open_checkpoint(files_, *path));
  }
  MemoryFiles files_;
};

TEST_F(ShardFileTest, AnyLayoutReadsWhatAnyOtherWrote) {
  const std::vector<Layout> layouts = {layout_of(small_model(), 1, 1000), layout_of(small_model(), 1, 4),
                                       layout_of(small_model(), 2, 5), layout_of(small_model(), 3, 7),
                                       layout_of(small_model(), 5, 1)};
  for (std::size_t from = 0; from < layouts.size(); ++from) {
    const std::string folder = "/job" + std::to_string(from);
    ASSERT_TRUE(files_.make_directory(folder));
    const Result<std::string> path = save(files_, folder, layouts[from], 1, 100, 2);
    ASSERT_TRUE(path) << path.error().message;
    const Result<OpenCheckpoint> open = open_checkpoint(files_, *path);
    ASSERT_TRUE(open) << open.error().message;
    for (std::size_t to = 0; to < layouts.size(); ++to) {
      const Status loaded = load(files_, *open, layouts[to], 2);
      EXPECT_TRUE(loaded) << from << " to " << to << ": " << loaded.error().message;
    }
  }
}

TEST_F(ShardFileTest, ParametersAloneCanBeRead) {
  const Layout layout = layout_of(small_model(), 2, 5);
  const OpenCheckpoint open = save_small(layout, 2);
  Held held = empty_shard(layout, 1, 0);
  ASSERT_TRUE(read_shard(files_, open.path, open.manifest, layout, ShardId(1), held.parameters, {}));
  EXPECT_EQ(held, held_by(layout, 1, 100.0F, 0));
}

TEST_F(ShardFileTest, FilesLargerThanAChunkAreReadInAnyPieces) {
  ModelSpec model;
  model.variables = {VariableSpec{"a", {1000, 777}, VariableKind::kTrainable, {}, 1, 1},
                     VariableSpec{"b", {300'001}, VariableKind::kTrainable, {}, 1, 1}};
  const Layout from = layout_of(model, 2, kMaxBucketWords);
  const OpenCheckpoint open = save_small(from);
  EXPECT_GT(open.manifest.files[0].chunks.size(), 3u);
  for (const Layout& to : {from, layout_of(model, 3, 100'003), layout_of(model, 1, kMaxBucketWords)}) {
    const Status loaded = load(files_, open, to);
    EXPECT_TRUE(loaded) << loaded.error().message;
  }
}

TEST_F(ShardFileTest, AFileIsSafetensorsOfWholeVariablesAndNamedRanges) {
  // w1 has 15 elements and fits into one bucket. The other variables are cut.
  const Layout layout = layout_of(small_model(), 2, 15);
  const OpenCheckpoint open = save_small(layout);
  const std::string path = open.path + "/shard-0-of-2.safetensors";
  const Result<TensorTable> table = read_header(**files_.open(path), path);
  ASSERT_TRUE(table) << table.error().message;
  std::vector<std::string> names;
  for (const Tensor& tensor : table->tensors) names.push_back(tensor.name);
  EXPECT_EQ(names, (std::vector<std::string>{"w1", "w0[12:21]", "slot0/w1", "slot0/w0[12:21]"}));
  EXPECT_EQ(table->tensors[0].shape, (std::vector<std::uint64_t>{3, 5}));
  EXPECT_EQ(table->data_begin, open.manifest.files[0].data_begin);
}

TEST_F(ShardFileTest, AnyFlippedBitIsFound) {
  const OpenCheckpoint open = save_small(layout_of(small_model(), 2, 5));
  ASSERT_TRUE(verify_files(files_, open.path, open.manifest));
  for (const FileEntry& file : open.manifest.files) {
    std::vector<std::byte>& content = files_.content(open.path + "/" + file.name);
    for (std::size_t i = 0; i < content.size(); ++i) {
      content[i] ^= std::byte{0x10};
      const Status verified = verify_files(files_, open.path, open.manifest);
      ASSERT_FALSE(verified) << file.name << " byte " << i;
      EXPECT_EQ(verified.error().code, ErrorCode::kData);
      content[i] ^= std::byte{0x10};
    }
  }
}

TEST_F(ShardFileTest, DamageIsFoundWhileItIsRead) {
  const Layout layout = layout_of(small_model(), 2, 5);
  const OpenCheckpoint open = save_small(layout);
  std::vector<std::byte>& content = files_.content(open.path + "/" + open.manifest.files[1].name);
  content.back() ^= std::byte{1};
  const Status loaded = load(files_, open, layout);
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, ErrorCode::kData);
  EXPECT_NE(loaded.error().message.find(open.manifest.files[1].name), std::string::npos);
  content.pop_back();
  EXPECT_NE(load(files_, open, layout).error().message.find("bytes"), std::string::npos);
}

TEST_F(ShardFileTest, FileThatIsNotThereIsDamage) {
  const Layout layout = layout_of(small_model(), 2, 5);
  const OpenCheckpoint open = save_small(layout);
  ASSERT_TRUE(files_.remove_file(open.path + "/" + open.manifest.files[1].name));
  const Status loaded = load(files_, open, layout);
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, ErrorCode::kData) << "so that the checkpoint before it is tried";
  EXPECT_FALSE(verify_files(files_, open.path, open.manifest));
}

TEST_F(ShardFileTest, AnotherModelIsRefusedWithTheVariable) {
  const OpenCheckpoint open = save_small(layout_of(small_model(), 1, 5));
  ModelSpec other = small_model();
  other.variables[2].shape = {5, 3};
  const Layout layout = layout_of(other, 1, 5);
  const Status loaded = load(files_, open, layout);
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, ErrorCode::kConfig);
  EXPECT_NE(loaded.error().message.find("w1 [5, 3]"), std::string::npos) << loaded.error().message;
}

TEST_F(ShardFileTest, CancelledWritingEnds) {
  const Layout layout = layout_of(small_model(), 1, 5);
  const Held held = held_by(layout, 0, 0.0F, 0);
  const Result<FileEntry> entry =
      write_shard(files_, "/job", layout, ShardId(0), held.content(), {}, [] { return true; });
  ASSERT_FALSE(entry);
  EXPECT_EQ(entry.error().code, ErrorCode::kTemporary);
}

TEST(Manifest, ComesBackAsItWas) {
  MemoryFiles files;
  ASSERT_TRUE(files.make_directory("/job"));
  const Result<std::string> path = save(files, "/job", layout_of(small_model(), 2, 5), 3, 12000);
  ASSERT_TRUE(path);
  EXPECT_EQ(*path, "/job/gen-3-step-00000000000000012000");
  const Manifest manifest = open_checkpoint(files, *path)->manifest;
  const Manifest again = *parse_manifest(to_json(manifest), "again");
  EXPECT_EQ(again.variables, manifest.variables);
  EXPECT_EQ(again.shards, manifest.shards);
  EXPECT_EQ(again.files, manifest.files);
  EXPECT_EQ(again.seed, 0xfedcba9876543210u);
  EXPECT_EQ(again.shards[0].workers[0].worker.incarnation, Incarnation(0xf000000000000001u));
  EXPECT_EQ(again.pacer.ledger[0].visited, (std::vector<Interval>{{0, 10}, {20, 30}}));
  EXPECT_EQ(to_json(again), to_json(manifest));
}

TEST(Manifest, NewerFormatIsRefusedWithASentence) {
  const Result<Manifest> manifest = parse_manifest(R"({"format": 4})", "/m");
  ASSERT_FALSE(manifest);
  EXPECT_EQ(manifest.error().code, ErrorCode::kConfig);
  EXPECT_NE(manifest.error().message.find("format 4"), std::string::npos);
}

TEST(Manifest, AnyBitThatFlipsIsFound) {
  MemoryFiles files;
  ASSERT_TRUE(files.make_directory("/job"));
  const std::string path = *save(files, "/job", layout_of(small_model(), 2, 5), 3, 12000);
  const std::string text = *read_text(files, path + "/" + kManifestName, 1 << 20);
  ASSERT_TRUE(parse_manifest(text, "/m"));
  for (std::size_t bit = 0; bit < 8 * text.size(); ++bit) {
    std::string damaged = text;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    const Result<Manifest> manifest = parse_manifest(damaged, "/m");
    ASSERT_FALSE(manifest) << "bit " << bit % 8 << " of byte " << bit / 8;
    ASSERT_EQ(manifest.error().code, ErrorCode::kData) << "the one before must be tried: bit " << bit;
  }
}

TEST(Manifest, OneOfFormatOneNeedsNoChecksum) {
  MemoryFiles files;
  ASSERT_TRUE(files.make_directory("/job"));
  const std::string path = *save(files, "/job", layout_of(small_model(), 2, 5), 3, 12000);
  std::string text = *read_text(files, path + "/" + kManifestName, 1 << 20);
  text = text.substr(0, text.rfind(",\n")) + "\n}\n";
  EXPECT_FALSE(parse_manifest(text, "/m")) << "of format 2 it needs one";
  text.replace(text.find("\"format\": 2"), 11, "\"format\": 1");
  const Result<Manifest> manifest = parse_manifest(text, "/m");
  ASSERT_TRUE(manifest) << manifest.error().message;
  EXPECT_EQ(manifest->step, Step(12000));
}

TEST(Manifest, SizesThatPass64BitsAreRefused) {
  MemoryFiles files;
  ASSERT_TRUE(files.make_directory("/job"));
  Manifest manifest = open_checkpoint(files, *save(files, "/job", layout_of(small_model(), 1, 50), 3, 12000))->manifest;
  const std::uint64_t elements = std::uint64_t{1} << 61;  // times 4 bytes and two arrays: 0
  manifest.variables = {VariableEntry{"w", {elements}, VariableKind::kTrainable, {{0, elements, 0, 0}}}};
  manifest.shards[0].words = elements;
  manifest.files[0].data_begin = manifest.files[0].bytes;
  const Result<Manifest> parsed = parse_manifest(to_json(manifest), "/m");
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().code, ErrorCode::kData);
}

// Damaged text gives an error or a manifest that is safe to use. It never crashes the program.
TEST(Manifest, DamagedTextIsAnswered) {
  MemoryFiles files;
  ASSERT_TRUE(files.make_directory("/job"));
  const std::string path = *save(files, "/job", layout_of(small_model(), 2, 5), 3, 12000);
  const std::string text = *read_text(files, path + "/" + kManifestName, 1 << 20);
  int refused = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    Random random(seed);
    std::string damaged = text;
    for (int i = 0; i < 3; ++i) {
      const std::size_t at = random.below(damaged.size());
      if (random.below(2) == 0)
        damaged[at] = static_cast<char>(random.below(128));
      else
        damaged.erase(at, 1 + random.below(20));
    }
    const Result<Manifest> manifest = parse_manifest(damaged, "/m");
    if (!manifest) {
      ++refused;
      continue;
    }
    Manifest used = *manifest;
    const Layout layout = layout_of(small_model(), 3, 4);
    const OpenCheckpoint open{path, std::move(used), nullptr};
    if (open.manifest.slots == 1) (void)load(files, open, layout);
  }
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace disttrain::checkpoint
