// Makes token ids of the texts, or of the sequences of whole numbers, of a column. The tokens of a column of bytes are
// the bytes of its values.
#pragma once

#include <cstdint>
#include <vector>

#include "common/config/job_config.h"
#include "common/result.h"
#include "input/columns.h"
#include "input/table.h"
#include "input/token_rows.h"
#include "input/tokens/tokenizer.h"

namespace disttrain::input {

// Reads the tokenizers that `columns` name into `fitted`, which has an entry for each column. Errors: those of
// load_tokenizer(); kConfig: data.columns.NAME.pad or length doesn't fit the tokenizer.
Status load_tokenizers(const std::vector<ColumnSection>& columns, FittedColumns& fitted);

// All ids of the column are below this.
std::int64_t token_limit(const ColumnSection& section, const Tokenizer* tokenizer);

// The most tokens or bytes of a record.
std::uint32_t most_tokens(const ColumnSection& section);

// Appends the sequences of the records of one column, each at most most_tokens(section) long, to `rows`. `tokenizer` is
// null if the records have ids or bytes. Errors, kData: a value is missing, a text isn't UTF-8, an id is out of range,
// or a record is too long and may not be cut (truncate = "none", or bytes without a length).
Status encode_tokens(const ColumnSection& section, const Tokenizer* tokenizer, const TableColumn& from,
                     std::uint64_t records, const PlaceOf& place_of, TokenRows& rows);

}  // namespace disttrain::input
