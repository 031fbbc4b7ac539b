/* Interrupts only wake the guest up; what time it is says the ACPI clock. QEMU carries that over in a migration and stops it
   with the guest, so no tick is lost or doubled, however late an interrupt comes. */
#include "machine.h"
#include "text.h"

enum { MASTER = 0x20, SLAVE = 0xa0, DONE = 0x20, CONSOLE_INTERRUPT = 4, TIMER = 0x40, SPURIOUS = 0xff, FLAT_CODE = 0x08 };

struct frame;
struct gate {
  uint16_t low, selector, kind, high;
};
struct gate gates[256];

static volatile uint32_t *const apic = (volatile uint32_t *)0xfee00000;
#define APIC(offset) apic[(offset) / 4]

__attribute__((interrupt)) static void on_timer(struct frame *frame) {
  (void)frame;
  APIC(0xb0) = 0;
}

__attribute__((interrupt)) static void on_device(struct frame *frame) {
  (void)frame;
  out8(SLAVE, DONE);
  out8(MASTER, DONE);
}

/* A press must be taken back here, or its interrupt would never end. */
static volatile bool pressed;
__attribute__((interrupt)) static void on_power(struct frame *frame) {
  (void)frame;
  pressed |= power_button_pressed();
  out8(SLAVE, DONE);
  out8(MASTER, DONE);
}

bool power_button_waiting(void) { return pressed; }

bool power_button_seen(void) {
  bool seen = pressed;
  pressed = false;
  return seen || power_button_pressed();
}

__attribute__((interrupt)) static void on_fault(struct frame *frame) {
  (void)frame;
  say("fault: the guest itself is broken\n");
  crash_hard();
}

static void on(uint8_t vector, void (*handler)(struct frame *)) {
  uint32_t address = (uint32_t)handler;
  gates[vector] = (struct gate){(uint16_t)address, FLAT_CODE, 0x8e00, (uint16_t)(address >> 16)};
}

static void controllers_start(void) {
  static const uint8_t steps[][2] = {{0, 0x11}, {1, 0x20}, {1, 4}, {1, 1}};
  for (unsigned step = 0; step < 4; step++) {
    out8(MASTER + steps[step][0], steps[step][1]);
    out8(SLAVE + steps[step][0], step == 1 ? 0x28 : step == 2 ? 2 : steps[step][1]);
  }
  uint16_t wanted = (uint16_t)(1 << CONSOLE_INTERRUPT | 1 << 2 | 1 << power_interrupt);
  out8(MASTER + 1, (uint8_t)~wanted);
  out8(SLAVE + 1, (uint8_t)(~wanted >> 8));
}

static void apic_start(void) {
  APIC(0xf0) = 0x100 | SPURIOUS;
  APIC(0x350) = 0x700; /* the old controllers, which have the console and the power button */
  APIC(0x3e0) = 0xa;   /* 1 GHz by 128 */
  APIC(0x320) = TIMER;
}

void interrupts_start(void) {
  for (unsigned vector = 0; vector < 256; vector++) on((uint8_t)vector, vector < 0x20 ? on_fault : on_device);
  on((uint8_t)(0x20 + power_interrupt), on_power);
  on(TIMER, on_timer);
  struct {
    uint16_t limit;
    struct gate *start;
  } __attribute__((packed)) pointer = {sizeof gates - 1, gates};
  __asm__ volatile("lidt %0" ::"m"(pointer));
  controllers_start();
  apic_start();
}

uint64_t clock_now(void) {
  static uint64_t now;
  static uint32_t last;
  uint32_t reading = in32(clock_port) & 0xffffff;
  now += (reading - last) & 0xffffff;
  last = reading;
  return now;
}

/* 2.2 of its beats for one of the clock: a hair late rather than early, which would need a second sleep. */
void wake_up_in(uint32_t duration) { APIC(0x380) = duration * 2 + duration / 5 + 1; }
