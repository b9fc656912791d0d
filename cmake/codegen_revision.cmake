# Script: writes a header with LLVM's release and a hash of the lowering's sources. Machine code of an older lowering
# must not be taken from the cache.
string(REPLACE "|" ";" files "${FILES}")
set(all "")
foreach(file IN LISTS files)
  file(SHA256 "${file}" hash)
  string(APPEND all "${hash}")
endforeach()
string(SHA256 revision "${all}")
string(SUBSTRING "${revision}" 0 12 revision)
file(WRITE "${OUT}" "#pragma once\n\n#define BOLTBEAM_COMPILER_VERSION \"${VERSION}-${revision}\"\n")
