/* Ports and the few instructions that C has no words for. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAGE 4096u

static inline void out8(uint16_t port, uint8_t value) { __asm__ volatile("outb %0, %1" ::"a"(value), "Nd"(port)); }
static inline void out16(uint16_t port, uint16_t value) { __asm__ volatile("outw %0, %1" ::"a"(value), "Nd"(port)); }
static inline void out32(uint16_t port, uint32_t value) { __asm__ volatile("outl %0, %1" ::"a"(value), "Nd"(port)); }

static inline uint8_t in8(uint16_t port) {
  uint8_t value;
  __asm__ volatile("inb %1, %0" : "=a"(value) : "Nd"(port));
  return value;
}

static inline uint16_t in16(uint16_t port) {
  uint16_t value;
  __asm__ volatile("inw %1, %0" : "=a"(value) : "Nd"(port));
  return value;
}

static inline uint32_t in32(uint16_t port) {
  uint32_t value;
  __asm__ volatile("inl %1, %0" : "=a"(value) : "Nd"(port));
  return value;
}

static inline void cpuid(uint32_t leaf, uint32_t out[4]) {
  __asm__ volatile("cpuid" : "=a"(out[0]), "=b"(out[1]), "=c"(out[2]), "=d"(out[3]) : "a"(leaf), "c"(0));
}

static inline void interrupts_off(void) { __asm__ volatile("cli" ::: "memory"); }
static inline void interrupts_on(void) { __asm__ volatile("sti" ::: "memory"); }
/* One step: an interrupt that came since interrupts_off() still ends the sleep. */
static inline void sleep_with_interrupts_on(void) { __asm__ volatile("sti\n\thlt" ::: "memory"); }

_Noreturn void crash_hard(void);
