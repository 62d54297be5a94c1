// Reads TFRecord files of tf.Example messages. A record is: length (u64), masked CRC-32C of the length (u32), data,
// masked CRC-32C of the data (u32), all little-endian. Source: tensorflow.org/tutorials/load_data/tfrecord.
//
// The functions take the bytes of a file from memory, already decompressed, and trust none of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/result.h"
#include "input/record_block.h"
#include "input/table.h"

namespace disttrain::input {

inline constexpr std::uint64_t kMaxTfRecordBytes = std::uint64_t{1} << 30;

// Replaces `records` by the places of the whole records in the block. Returns how many bytes of the block they cover
// with their lengths and checksums. It doesn't touch the data. Errors, kData: a length has a wrong checksum or is
// larger than kMaxTfRecordBytes, or the file ends within a record.
Result<std::size_t> find_tfrecords(const RecordBlock& block, std::vector<RecordPlace>& records);

// Decodes the block's records, each of which holds one tf.Example, and replaces the content of `table`. `records` comes
// from find_tfrecords(block). A wanted column of floats also takes an int64_list, and a
// bytes_list of texts that are numbers (number_of_text()). In a column of bytes, numbers become texts (number_word()).
// If a feature is there twice, the last one counts, as in protobuf. A record that lacks a feature has no values there.
//
// Errors, kData, with file and record, and the column if there is one: the data has a wrong checksum or isn't a
// tf.Example, or a feature has another type than wanted. `table` is then unusable.
Status decode_examples(const RecordBlock& block, std::span<const RecordPlace> records,
                       const std::vector<WantedColumn>& wanted, Table& table);

}  // namespace disttrain::input
