#include "text.h"

#include <stdarg.h>

enum { COM1 = 0x3f8, DATA_READY = 1, ROOM = 0x20, ALL_SENT = 0x40 };

void console_start(void) {
  out8(COM1 + 1, 0);
  out8(COM1 + 3, 0x80);
  out8(COM1 + 0, 1); /* 115200 baud */
  out8(COM1 + 1, 0);
  out8(COM1 + 3, 3);
  out8(COM1 + 2, 7);    /* queues on, and empty */
  out8(COM1 + 4, 0x0b); /* with its interrupt */
  out8(COM1 + 1, 1);    /* when something was typed */
}

/* Not for ever: a console that nobody reads must not stop the guest. */
static void wait_for(uint8_t state) {
  for (uint32_t patience = 200000; patience && !(in8(COM1 + 5) & state); patience--)
    ;
}

void console_drain(void) { wait_for(ALL_SENT); }
bool console_waiting(void) { return in8(COM1 + 5) & DATA_READY; }

static void put(char letter) {
  if (letter == '\n') put('\r');
  wait_for(ROOM);
  out8(COM1, (uint8_t)letter);
}

static void put_text(const char *text) {
  while (*text) put(*text++);
}

static void put_number(uint32_t number) {
  char digits[11];
  char *at = digits + sizeof digits - 1;
  *at = 0;
  do *--at = (char)('0' + number % 10);
  while (number /= 10);
  put_text(at);
}

static void put_hex(uint32_t number) {
  for (int shift = 28; shift >= 0; shift -= 4) put("0123456789abcdef"[number >> shift & 15]);
}

static void put_size(uint32_t kibibytes) {
  bool whole = kibibytes % 1024 == 0;
  put_number(whole ? kibibytes / 1024 : kibibytes);
  put(whole ? 'M' : 'K');
}

void say(const char *format, ...) {
  va_list values;
  va_start(values, format);
  for (; *format; format++) {
    if (*format != '%') {
      put(*format);
      continue;
    }
    switch (*++format) {
      case 's': put_text(va_arg(values, const char *)); break;
      case 'u': put_number(va_arg(values, uint32_t)); break;
      case 'x': put_hex(va_arg(values, uint32_t)); break;
      case 'm': put_size(va_arg(values, uint32_t)); break;
      default: put(*format);
    }
  }
  va_end(values);
}

bool console_line(char *line, size_t room) {
  static size_t length;
  while (console_waiting()) {
    char letter = (char)in8(COM1);
    if (letter == '\r' || letter == '\n') {
      line[length] = 0;
      bool something = length > 0; /* the second half of \r\n is no line of its own */
      length = 0;
      if (something) return true;
    } else if (length + 1 < room) {
      line[length++] = letter;
    }
  }
  return false;
}

bool starts_with(const char *text, const char *beginning) {
  while (*beginning)
    if (*text++ != *beginning++) return false;
  return true;
}

bool same(const char *left, const char *right) {
  while (*left && *left == *right) left++, right++;
  return *left == *right;
}
