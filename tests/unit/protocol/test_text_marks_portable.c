/* test_text_marks_portable.c: the same without SSE2, as another machine would build it. */
#undef __SSE2__
#include "tests/unit/protocol/test_text_marks.c"
