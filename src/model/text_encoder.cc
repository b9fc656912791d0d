#include "model/text_encoder.h"

#include <utility>

#include "model/bpe.h"
#include "model/pretokenizer.h"
#include "model/scored_pieces.h"

namespace boltbeam::model {
namespace {

class MergeEncoder final : public TextEncoder {
 public:
  MergeEncoder(const Vocabulary& vocabulary, Pretokenizer&& cut, Bpe&& bpe)
      : vocabulary_(vocabulary), pretokenizer_(std::move(cut)), bpe_(std::move(bpe)) {}

  Result<void> Encode(std::string_view text, bool /*opens*/, std::vector<std::int32_t>& ids) const override {
    return pretokenizer_.Split(text,
                               [&](std::string_view piece) { return bpe_.Encode(piece, vocabulary_.unknown, ids); });
  }
  std::string Bytes(std::string_view token) const override { return BytesOfText(token); }
  std::int32_t Find(std::string_view token) const override { return bpe_.Find(token); }
  bool adds_bos() const override { return pretokenizer_.adds_bos(); }
  bool adds_space() const override { return false; }
  std::size_t unknown_merges() const override { return bpe_.unknown_merges(); }

 private:
  const Vocabulary& vocabulary_;
  Pretokenizer pretokenizer_;
  Bpe bpe_;
};

class ScoreEncoder final : public TextEncoder {
 public:
  explicit ScoreEncoder(const Vocabulary& vocabulary)
      : vocabulary_(vocabulary),
        pieces_(vocabulary.tokens, vocabulary.scores),
        adds_space_(vocabulary.add_space_prefix.value_or(vocabulary.kind.add_space_prefix)) {}

  Result<void> Encode(std::string_view text, bool opens, std::vector<std::int32_t>& ids) const override {
    return pieces_.Encode(EscapeSpaces(text, opens && adds_space_), vocabulary_.unknown, ids);
  }
  std::string Bytes(std::string_view token) const override { return UnescapeSpaces(token); }
  std::int32_t Find(std::string_view token) const override { return pieces_.Find(token); }
  bool adds_bos() const override { return vocabulary_.kind.add_bos; }
  bool adds_space() const override { return adds_space_; }
  std::size_t unknown_merges() const override { return 0; }

 private:
  const Vocabulary& vocabulary_;
  ScoredPieces pieces_;
  bool adds_space_;
};

}  // namespace

Result<std::unique_ptr<TextEncoder>> MakeTextEncoder(const Vocabulary& vocabulary) {
  if (vocabulary.kind.by_score) return std::make_unique<ScoreEncoder>(vocabulary);
  BOLTBEAM_ASSIGN(Pretokenizer pretokenizer, Pretokenizer::Make(vocabulary.pre));
  BOLTBEAM_ASSIGN(Bpe bpe, Bpe::Make(vocabulary.tokens, vocabulary.merges, pretokenizer.ignore_merges()));
  return std::make_unique<MergeEncoder>(vocabulary, std::move(pretokenizer), std::move(bpe));
}

}  // namespace boltbeam::model
