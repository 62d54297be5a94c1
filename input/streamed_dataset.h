// A data set whose records are read from their files for each batch, because they don't fit into memory or have blocks
// that are worth keeping.
//
// If records are read by blocks (shuffle = "blocks", compressed files, or Parquet), a block is decoded as a whole, and
// the blocks that were used last are kept. If all blocks fit into memory, each is read once. Otherwise the records of a
// batch are read one by one, those beside each other together. Images are always read one by one: their pixels take
// much more memory than their files, and change in each epoch.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "input/block_cache.h"
#include "input/column_parts.h"
#include "input/columns.h"
#include "input/data_figures.h"
#include "input/dataset.h"
#include "input/record_source.h"

namespace disttrain::input {

struct StreamedOptions {
  std::vector<ColumnSection> columns;
  std::vector<std::string> missing;  // data.missing
  std::string target_taker;          // Source::target_taker
  bool takes_probabilities = false;  // Source::takes_probabilities()
  std::shared_ptr<const FittedColumns> fitted;
  std::vector<std::uint32_t> lengths;  // of each record in the column Source::bucket_by; empty without one
  std::uint64_t begin = 0;             // records [begin, end) of the source
  std::uint64_t end = 0;
  // The first record of each block of the source; empty: records may be read in any order.
  std::vector<std::uint64_t> blocks;
  // Whole blocks are decoded and kept. Otherwise records are read one by one; those of a block are beside each other.
  bool keeps_blocks = false;
  double scale = 1.0;        // pixels that become floats are multiplied by this
  std::uint64_t memory = 0;  // the most memory for decoded blocks, in bytes
};

class StreamedDataset final : public Dataset {
 public:
  StreamedDataset(std::unique_ptr<RecordSource> source, StreamedOptions options);
  ~StreamedDataset() override;

  std::uint64_t records() const override { return options_.end - options_.begin; }
  const std::vector<DatasetColumn>& columns() const override { return columns_; }
  std::uint64_t bytes_read() const override { return figures_.bytes_read; }
  const std::vector<std::string>& label_names() const override { return label_names_; }
  std::shared_ptr<const FittedColumns> fitted_columns() const override { return options_.fitted; }
  std::vector<std::uint64_t> blocks() const override;
  std::span<const std::uint32_t> lengths() const override { return options_.lengths; }
  std::uint64_t hash() const override;
  std::string notice() const override { return source_->notice(); }
  std::vector<UnknownWords> unknown_words() const override;
  const DataFigures* figures() const override { return &figures_; }

  Status gather(std::span<const std::uint64_t> indices, std::span<const ColumnOut> columns,
                const Draw& draw) const override;

  // Makes all blocks now, by several threads. options.memory must be enough for them, and options.keeps_blocks set. So
  // errors of the records are found before the first batch. Errors: those of gather(); kTemporary: is_cancelled() has
  // returned true.
  Status preload(const IsCancelled& is_cancelled) const;

 private:
  void add_labels(const Parts& parts);
  struct Scratch;
  // A record of a batch: a row of decoded records.
  struct Row {
    const EncodedRows* rows = nullptr;
    std::uint64_t row = 0;
  };

  // These set scratch.rows, one row for each index.
  Status find_records(std::span<const std::uint64_t> indices, const Draw& draw, Scratch& scratch) const;
  Status find_in_blocks(std::span<const std::uint64_t> indices, Scratch& scratch) const;
  // Makes the block, unless it is there or another thread makes it. Then the result is null.
  Result<BlockOfRows> make_if_missing(std::size_t number, Scratch& scratch) const;
  Result<BlockOfRows> make_block(std::size_t number, Scratch& scratch) const;
  std::uint64_t end_of_block(std::size_t number) const;
  std::size_t block_of(std::uint64_t record) const;
  Status check_limit(std::span<const std::uint64_t> indices, const std::vector<Row>& rows, const ColumnSpec& as) const;
  template <typename T>
  void copy_column(const ColumnOut& to, Scratch& scratch, std::span<T> out) const;
  void copy_tokens(const ColumnOut& to, const std::vector<Row>& rows) const;

  std::unique_ptr<Scratch> take_scratch() const;
  void give_back(std::unique_ptr<Scratch> scratch) const;

  const std::unique_ptr<RecordSource> source_;
  const StreamedOptions options_;
  const ColumnEncoder encoder_;
  std::vector<DatasetColumn> columns_;
  std::size_t first_tokens_ = 0;  // index of the first column of tokens
  std::vector<std::string> label_names_;
  mutable DataFigures figures_;
  mutable BlockCache blocks_;
  mutable SpareRows spares_;

  void note_unknown(std::span<const std::uint64_t> indices, const std::vector<Row>& rows) const;

  mutable std::mutex mutex_;                                 // guards the members below
  mutable std::vector<std::unique_ptr<Scratch>> scratches_;  // those that no thread uses
  mutable std::vector<std::uint64_t> unknown_;               // of the first counted_ records
  mutable std::uint64_t counted_ = 0;
};

}  // namespace disttrain::input
