# boltbeam_pch(TARGET [HEADER...]): the headers that most files include are read once for all files of the target, and
# more HEADERs with them. A file still names every header that it uses: BOLTBEAM_PCH=OFF builds without.
option(BOLTBEAM_PCH "Precompile the headers that most files include" ON)
set(BOLTBEAM_COMMON_HEADERS
    <algorithm>
    <cstdint>
    <expected>
    <filesystem>
    <functional>
    <map>
    <memory>
    <optional>
    <span>
    <string>
    <string_view>
    <vector>
    <fmt/format.h>
    <nlohmann/json.hpp>)
function(boltbeam_pch target)
  if(BOLTBEAM_PCH)
    target_precompile_headers(${target} PRIVATE ${BOLTBEAM_COMMON_HEADERS} ${ARGN})
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>) # ccache asks for it
  endif()
endfunction()
