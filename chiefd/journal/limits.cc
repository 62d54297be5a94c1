#include "chiefd/journal/limits.h"

#include <string>

namespace disttrain::chiefd {
namespace {

void cut(std::string& text) {
  if (text.size() <= kMaxJournalTextBytes) return;
  const std::string note = " ... (" + std::to_string(text.size()) + " bytes in all)";
  std::size_t end = kMaxJournalTextBytes - note.size();
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;  // not within a character
  text = text.substr(0, end) + note;
}

struct Bounder {
  void operator()(StateRecord& record) const { cut(record.reason); }
  void operator()(EventRecord& record) const {
    cut(record.kind);
    cut(record.task);
    cut(record.text);
    cut(record.cause);
  }
  void operator()(EndRecord& record) const {
    cut(record.reason);
    if (record.root_cause) cut(record.root_cause->reason);
  }
  void operator()(EvaluationsRecord& record) const { cut(record.early_end); }
  template <typename Other>
  void operator()(Other&) const {}
};

}  // namespace

Record bounded(Record record) {
  std::visit(Bounder(), record);
  return record;
}

}  // namespace disttrain::chiefd
