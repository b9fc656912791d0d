#include "kernel/families/gemv_epilogue.h"

namespace boltbeam::kernel {

std::string_view EpilogueSuffix(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::kStore:
      return "";
    case Epilogue::kResidual:
      return ".residual";
    case Epilogue::kBias:
      return ".bias";
  }
  return "";
}

GemvEpilogue::GemvEpilogue(Builder& builder, Epilogue epilogue) : b_(builder), epilogue_(epilogue) {
  output_ = b_.AddBuffer("output", true);
  if (epilogue == Epilogue::kBias) bias_ = b_.AddBuffer("bias");
}

void GemvEpilogue::Write(Rows sums, Value out, std::int64_t offset, Value group_out) {
  std::int64_t at = 0;  // bytes of the rows before
  for (Value sum : sums.registers()) {
    const Type type = sum.type();
    if (epilogue_ == Epilogue::kResidual) sum = b_.Load(output_, type, Memory::kWord, out, offset + at) + sum;
    if (epilogue_ == Epilogue::kBias) sum = sum + b_.LoadF32(bias_, type.lanes, group_out, at);
    b_.Store(output_, out, sum, Memory::kWord, offset + at);
    at += std::int64_t{4} * type.lanes;
  }
}

}  // namespace boltbeam::kernel
