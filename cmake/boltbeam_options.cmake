# Compile options shared by every target of the project, and only by those.
add_library(boltbeam_options INTERFACE)
target_compile_options(
  boltbeam_options INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wvla -Wold-style-cast
                             -Werror=unused-result $<$<BOOL:${BOLTBEAM_WERROR}>:-Werror>)
if(BOLTBEAM_WERROR AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 sees overlapping copies inside std::string where there are none (its bug 105651).
  target_compile_options(boltbeam_options INTERFACE -Wno-error=restrict)
endif()
if(BOLTBEAM_SANITIZE)
  target_compile_options(
    boltbeam_options INTERFACE -fsanitize=${BOLTBEAM_SANITIZE} -fno-sanitize-recover=all
                               -fno-omit-frame-pointer)
  target_link_options(boltbeam_options INTERFACE -fsanitize=${BOLTBEAM_SANITIZE})
endif()
