// Bits of a block: where they lie, reading them, writing them.
#include <fmt/format.h>

#include <algorithm>

#include "formats/format.h"
#include "formats/scale_word.h"

namespace boltbeam::formats {

std::uint32_t Piece::BitAddress(std::uint32_t index) const {
  std::uint32_t address = base_bit;
  for (const auto& [radix, stride] : digits) {
    address += index % radix * stride;
    index /= radix;
  }
  return address;
}

std::int32_t LowestOf(const Field& field) {
  const std::int32_t raw = field.is_signed ? -(std::int32_t{1} << (field.bits - 1)) : 0;
  return raw - field.bias;
}

std::int32_t HighestOf(const Field& field) {
  const std::uint32_t magnitude_bits = field.is_signed ? field.bits - 1 : field.bits;
  return static_cast<std::int32_t>((std::uint32_t{1} << magnitude_bits) - 1) - field.bias;
}

std::int32_t ReadField(const Field& field, std::span<const std::byte> block, std::uint32_t index) {
  std::uint32_t value = 0;
  for (const Piece& piece : field.pieces) {
    const std::uint32_t address = piece.BitAddress(index);
    const auto byte = std::to_integer<std::uint32_t>(block[address / 8]);
    value |= ((byte >> (address % 8)) & ((1U << piece.width) - 1)) << piece.shift;
  }
  auto number = static_cast<std::int32_t>(value);
  if (field.is_signed && (value >> (field.bits - 1)) != 0) number -= std::int32_t{1} << field.bits;
  return number - field.bias;
}

Packer::Places Packer::PlacesOf(const Field& field, std::uint32_t count) {
  Places places{{}, count, field.bias, LowestOf(field), HighestOf(field)};
  places.slots.reserve(count * field.pieces.size());
  for (std::uint32_t i = 0; i < count; ++i) {
    for (const Piece& piece : field.pieces) {
      const std::uint32_t address = piece.BitAddress(i);
      places.slots.push_back({address / 8, address % 8, (1U << piece.width) - 1, piece.shift});
    }
  }
  return places;
}

Result<Packer> Packer::For(const Format& format) {
  if (!format.layout || format.layout->encoding) {
    return Fail(Code::kUnsupportedFormat, format.name, "no bit layout of blocks", "a format with a row in rows.json");
  }
  const Layout& layout = *format.layout;
  const std::uint32_t scale_count = format.elements / layout.elements_per_scale;
  Packer packer;
  packer.name_ = format.name;
  packer.bytes_ = format.bytes;
  packer.codes_ = PlacesOf(layout.codes, format.elements);
  if (layout.scales) packer.scales_ = PlacesOf(*layout.scales, scale_count);
  if (layout.minimums) packer.minimums_ = PlacesOf(*layout.minimums, scale_count);
  packer.d_ = layout.d;
  packer.m_ = layout.m;
  return packer;
}

Result<void> Packer::Put(const Places& places, std::string_view what, std::span<const std::int32_t> numbers,
                         std::span<std::byte> block) {
  if (numbers.size() != places.count) {
    return Fail(Code::kFormatBlocks, std::string(what), fmt::format("{} numbers", numbers.size()),
                fmt::format("{}", places.count));
  }
  const std::size_t pieces = places.count == 0 ? 0 : places.slots.size() / places.count;
  const Slot* slot = places.slots.data();
  for (const std::int32_t number : numbers) {
    if (number < places.lowest || number > places.highest) {
      return Fail(Code::kFormatValue, std::string(what), fmt::format("{}", number),
                  fmt::format("{} to {}", places.lowest, places.highest));
    }
    const auto raw = static_cast<std::uint32_t>(number + places.bias);
    for (std::size_t p = 0; p < pieces; ++p, ++slot) {
      block[slot->byte] |= static_cast<std::byte>(((raw >> slot->shift) & slot->mask) << slot->position);
    }
  }
  return {};
}

Result<void> Packer::Pack(const BlockParts& parts, std::span<std::byte> block) const {
  if (block.size() != bytes_) {
    return Fail(Code::kFormatBlocks, name_, fmt::format("a block of {} bytes", block.size()),
                fmt::format("{} bytes", bytes_));
  }
  std::ranges::fill(block, std::byte{0});
  BOLTBEAM_TRY(Put(codes_, "codes", parts.codes, block));
  BOLTBEAM_TRY(Put(scales_, "scales", parts.scales, block));
  BOLTBEAM_TRY(Put(minimums_, "minimums", parts.minimums, block));
  EncodeFloat(d_.encoding, parts.d, block.subspan(d_.base_bit / 8));
  if (m_) EncodeFloat(m_->encoding, parts.m, block.subspan(m_->base_bit / 8));
  return {};
}

}  // namespace boltbeam::formats
