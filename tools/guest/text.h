/* Words on the serial port, and what is typed there. */
#pragma once
#include "hardware.h"

void console_start(void);
void console_drain(void);                     /* returns when the last character has left */
bool console_waiting(void);                   /* something was typed */
bool console_line(char *line, size_t room);   /* true when a whole line has been typed */
void say(const char *format, ...);            /* knows %s, %u, %x (eight digits) and %m: KiB with a suffix, as in 16M */

bool starts_with(const char *text, const char *beginning);
bool same(const char *left, const char *right);
