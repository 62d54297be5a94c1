#include <algorithm>
#include <utility>

#include "input/columns.h"
#include "input/fit_files.h"
#include "input/indexed_records.h"
#include "input/load.h"
#include "input/memory_budget.h"
#include "input/streamed_dataset.h"

namespace disttrain::input {

namespace {

// Two sizes in the same unit, so that the larger one also has the larger number: `needed` is rounded up, and `memory`
// down.
struct MemoryTexts {
  std::string needed;
  std::string memory;
};

MemoryTexts memory_texts(std::uint64_t needed, std::uint64_t memory) {
  const bool is_small = memory < std::uint64_t{10} << 20;
  const std::uint64_t unit = is_small ? 1 << 10 : 1 << 20;
  const std::string name = is_small ? " KiB" : " MiB";
  return {std::to_string((needed + unit - 1) / unit) + name, std::to_string(memory / unit) + name};
}

// The blocks with records of the data set, and the memory that their encoded records take.
struct BlockSizes {
  std::uint64_t count = 0;
  std::uint64_t largest_bytes = 0;
  std::uint64_t all_bytes = 0;
};

Result<BlockSizes> sizes_of(const StreamedOptions& options, const RecordSource& source, const ColumnEncoder& encoder) {
  BlockSizes sizes;
  for (std::size_t i = 0; i < options.blocks.size(); ++i) {
    const std::uint64_t begin = options.blocks[i];
    const std::uint64_t end = i + 1 < options.blocks.size() ? options.blocks[i + 1] : source.records();
    if (begin >= options.end || end <= options.begin) continue;
    ++sizes.count;
    const Result<std::uint64_t> content = source.content_bytes(begin, end - begin);
    if (!content) return tl::unexpected(content.error());
    const std::uint64_t bytes = encoder.most_bytes(end - begin, *content);
    sizes.largest_bytes = std::max(sizes.largest_bytes, bytes);
    sizes.all_bytes += bytes;
  }
  return sizes;
}

// Two windows must fit into memory: batches of the next one are made while those of this one are used.
Status check_window(const Source& source, const RecordSource& records, const BlockSizes& sizes, std::uint64_t memory) {
  const bool shuffles = source.shuffle == ShuffleKind::kBlocks;
  const std::uint64_t window = shuffles ? source.shuffle_window : 1;
  const std::uint64_t blocks = std::min(2 * window, sizes.count);
  const std::uint64_t needed = std::min(blocks * sizes.largest_bytes, sizes.all_bytes);
  if (needed <= memory) return {};
  const std::string smaller = records.smaller_blocks();
  const MemoryTexts texts = memory_texts(needed, memory);
  return fail(ErrorCode::kConfig, source.path + "/" + source.files + ": the records of " + std::to_string(blocks) +
                                      (blocks == 1 ? " block take up to " : " blocks take up to ") + texts.needed +
                                      ", but " + source.section + " may use " + texts.memory +
                                      " of memory: raise data.memory" +
                                      (shuffles && blocks > 2 ? ", lower data.shuffle_window" : "") +
                                      (smaller.empty() ? "" : ", or " + smaller));
}

Result<std::unique_ptr<RecordSource>> open_records(const Source& source, const std::vector<std::string>& paths) {
  if (source.format != DataFormat::kParquet) return IndexedRecords::open(source, paths);
  if (source.parquet != nullptr) return source.parquet->open_records(source, paths);
  return fail(ErrorCode::kConfig, paths.front() + ": this program doesn't read parquet files");
}

}  // namespace

Result<std::unique_ptr<Dataset>> load_streamed(const Source& source, const std::vector<std::string>& paths) {
  Result<std::unique_ptr<RecordSource>> records = open_records(source, paths);
  if (!records) return tl::unexpected(std::move(records.error()));
  StreamedOptions options{.columns = source.columns,
                          .missing = source.missing,
                          .target_taker = source.target_taker,
                          .takes_probabilities = source.takes_probabilities(),
                          .fitted = source.fitted,
                          .lengths = {},
                          .begin = source.begin,
                          .end = source.end == 0 ? (*records)->records() : source.end,
                          .blocks = {},
                          .scale = source.scale,
                          .memory = memory_budget(source.memory)};
  if (Status ok = check_range(source, options.begin, options.end, (*records)->records()); !ok)
    return tl::unexpected(std::move(ok.error()));
  if (options.fitted == nullptr) {
    Result<FittedFiles> found = fit_files(source, paths, FindLengths::kYes);
    if (!found) return tl::unexpected(std::move(found.error()));
    options.fitted = std::make_shared<const FittedColumns>(std::move(found->columns));
    options.lengths = std::move(found->lengths);
    if (!source.bucket_by.empty() && options.lengths.size() != options.end - options.begin)
      return fail(ErrorCode::kData, source.path + "/" + source.files +
                                        ": a file was changed while it was read: start the job again when the files "
                                        "are complete");
  }
  const ColumnEncoder encoder(source.columns, *options.fitted, source.missing, source.target_taker,
                              source.takes_probabilities());
  const std::string why_blocks = (*records)->needs_blocks();
  const bool needs_blocks = !why_blocks.empty();
  if (needs_blocks && encoder.has_pixels())
    return fail(ErrorCode::kConfig, source.path + "/" + source.files + ": images must be read one by one, but " +
                                        why_blocks +
                                        ": decompress the files, or use one of the formats images, webdataset, "
                                        "tfrecord and jsonl; images are compressed themselves");
  if (needs_blocks || source.shuffle == ShuffleKind::kBlocks) options.blocks = (*records)->blocks();
  options.keeps_blocks = !options.blocks.empty() && !encoder.has_pixels();
  const Result<BlockSizes> sizes = sizes_of(options, **records, encoder);
  if (!sizes) return tl::unexpected(sizes.error());
  const bool by_blocks = source.shuffle == ShuffleKind::kNone || source.shuffle == ShuffleKind::kBlocks;
  const bool is_random = needs_blocks && !by_blocks;  // any block may be needed at any time
  if (is_random && sizes->all_bytes > options.memory) {
    const MemoryTexts texts = memory_texts(sizes->all_bytes, options.memory);
    return fail(ErrorCode::kConfig, source.path + "/" + source.files + ": the records take " + texts.needed + ", but " +
                                        source.section + " may use " + texts.memory + " of memory (data.memory), and " +
                                        why_blocks + ": set data.shuffle = \"blocks\", " +
                                        (source.format == DataFormat::kParquet ? "" : "or decompress the files, ") +
                                        "or raise data.memory");
  }
  if (options.keeps_blocks)
    if (Status ok = check_window(source, **records, *sizes, options.memory); !ok)
      return tl::unexpected(std::move(ok.error()));
  auto dataset = std::make_unique<StreamedDataset>(std::move(*records), std::move(options));
  if (is_random)
    if (Status ok = dataset->preload(source.is_cancelled); !ok) return tl::unexpected(std::move(ok.error()));
  return dataset;
}

}  // namespace disttrain::input
