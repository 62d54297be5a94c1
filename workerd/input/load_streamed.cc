#include <algorithm>
#include <utility>

#include "workerd/input/columns.h"
#include "workerd/input/fit_files.h"
#include "workerd/input/load.h"
#include "workerd/input/memory_budget.h"
#include "workerd/input/record_format.h"
#include "workerd/input/record_index.h"
#include "workerd/input/streamed_dataset.h"

namespace disttrain::input {

namespace {

// About as much as a disk reads in 10 ms. Smaller blocks cost seeks, larger ones memory.
constexpr std::uint64_t kStreamedBlockBytes = std::uint64_t{4} << 20;

std::string mebibytes(std::uint64_t bytes) {
  return std::to_string((bytes + (1 << 20) - 1) >> 20) + " MiB";
}

// Two windows must fit into memory: batches of the next one are made while those of this one are used.
Status check_window(const Source& source, const RecordIndex& index, const std::vector<std::uint64_t>& blocks,
                    const ColumnEncoder& encoder, std::uint64_t memory) {
  const std::uint64_t record_bytes = (encoder.inputs() + encoder.categories()) * 4 + 8;
  std::uint64_t largest = 0;
  for (std::size_t i = 0; i < blocks.size(); ++i)
    largest = std::max(largest, (i + 1 < blocks.size() ? blocks[i + 1] : index.records()) - blocks[i]);
  const bool shuffles = source.shuffle == ShuffleKind::kBlocks;
  const std::uint64_t window = shuffles ? std::min<std::uint64_t>(source.shuffle_window, blocks.size()) : 1;
  const std::uint64_t needed = 2 * window * largest * record_bytes;
  if (needed <= memory) return {};
  return fail(ErrorCode::kConfig,
              source.path + "/" + source.files + ": the records of " + std::to_string(2 * window) +
                  " blocks take up to " + mebibytes(needed) + ", but " + source.section + " may use " +
                  mebibytes(memory) + " of memory: raise data.memory" +
                  (shuffles ? ", lower data.shuffle_window" : "") +
                  (index.files().front().is_packed ? ", or divide the compressed files into smaller ones" : ""));
}

}  // namespace

Result<std::unique_ptr<Dataset>> load_streamed(const Source& source, const std::vector<std::string>& paths) {
  std::unique_ptr<RecordFormat> format = make_record_format({source.format, source.columns, source.missing});
  if (Status ok = format->prepare(paths.front()); !ok) return tl::unexpected(std::move(ok.error()));
  Result<std::unique_ptr<RecordIndex>> index = RecordIndex::open({.format = source.format,
                                                                  .data_folder = source.path,
                                                                  .index_folder = source.index,
                                                                  .paths = paths,
                                                                  .is_cancelled = source.is_cancelled},
                                                                 *format);
  if (!index) return tl::unexpected(std::move(index.error()));
  StreamedOptions options{.columns = source.columns,
                          .fitted = source.fitted,
                          .begin = source.begin,
                          .end = source.end == 0 ? (*index)->records() : source.end,
                          .blocks = {},
                          .memory = memory_budget(source.memory)};
  if (Status ok = check_range(source, options.begin, options.end, (*index)->records()); !ok)
    return tl::unexpected(std::move(ok.error()));
  if (options.fitted == nullptr) {
    Result<FittedColumns> found = fit_files(source, paths);
    if (!found) return tl::unexpected(std::move(found.error()));
    options.fitted = std::make_shared<const FittedColumns>(std::move(*found));
  }
  const auto& files = (*index)->files();
  const bool has_packed =
      std::any_of(files.begin(), files.end(), [](const IndexedFile& file) { return file.is_packed; });
  const bool in_file_order = source.shuffle == ShuffleKind::kNone || source.shuffle == ShuffleKind::kBlocks;
  if (has_packed && !in_file_order)
    return fail(
        ErrorCode::kConfig,
        source.path + "/" + source.files + ": has " + mebibytes(bytes_of(paths)) +
            " of compressed files, which are too large for memory (data.memory) and whose records can't be read "
            "one by one: set data.shuffle = \"blocks\", or decompress the files");
  if (has_packed || source.shuffle == ShuffleKind::kBlocks) options.blocks = (*index)->blocks(kStreamedBlockBytes);
  const ColumnEncoder encoder(source.columns, *options.fitted);
  if (has_packed && encoder.has_pixels())
    return fail(ErrorCode::kConfig, source.path + "/" + source.files +
                                        ": the images are in compressed files, in which they can't be read one by one: "
                                        "decompress the files; images are compressed themselves");
  options.keeps_blocks = !options.blocks.empty() && !encoder.has_pixels();
  options.scale = source.scale;
  if (options.keeps_blocks)
    if (Status ok = check_window(source, **index, options.blocks, encoder, options.memory); !ok)
      return tl::unexpected(std::move(ok.error()));
  return std::make_unique<StreamedDataset>(std::move(*index), std::move(format), std::move(options));
}

}  // namespace disttrain::input
