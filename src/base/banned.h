/* Included by the compiler's -include for every product file: unsafe calls become compile errors. */
#ifndef OPENETL_BASE_BANNED_H
#define OPENETL_BASE_BANNED_H

#include <stdio.h>
#include <string.h>
#include <stdlib.h>
#include <time.h>

#undef strcpy
#undef strcat
#undef strncat
#undef sprintf
#undef vsprintf
#undef gets
#undef strtok
#undef atoi
#undef atol
#undef gmtime
#undef localtime
#pragma GCC poison strcpy strcat strncat sprintf vsprintf gets strtok atoi atol gmtime localtime asctime ctime

#endif
